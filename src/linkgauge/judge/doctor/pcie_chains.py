"""Links of PCI Express, as checks look at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from linkgauge.judge.cases import cases_of
from linkgauge.judge.findings import Evidence
from linkgauge.judge.wiring import pcie_name
from linkgauge.model.inventory import Accelerator, PciFunction, PciLink, Reading

_LATEST = 3
"""Cells from whose readings the state of a link is told: one alone may have caught it waking up."""


class PcieChain:
    """A link as its lower end sees it: the function, the port above it, if that shows, and what
    was read under load, at last (`loaded_speed`, `loaded_width`) and at best (`fastest`). `told` is
    what the vendor's library says: its highest figures are those that both ends can do.
    `both_speeds` and `both_widths`: whether more than the function's own end is known."""

    def __init__(
        self,
        name: str,
        function: PciFunction,
        port: PciFunction | None,
        loaded: Sequence[Reading] = (),
        told: PciLink = PciLink(),  # noqa: B008  # frozen
    ) -> None:
        self.name = name
        self.function = function
        self.port = port
        self.link = function.link
        above = port.link if port else PciLink()
        self.speed = _least(self.link.max_speed, above.max_speed, told.max_speed)
        self.width = _least(self.link.max_width, above.max_width, told.max_width)
        self.both_speeds = above.max_speed is not None or told.max_speed is not None
        self.both_widths = above.max_width is not None or told.max_width is not None
        speeds = [r.link_speed for r in loaded if r.link_speed]
        self.fastest = max(speeds, default=None)
        self.loaded_speed = max(speeds[-_LATEST:], default=None)
        self.loaded_width = max(
            (r.link_width for r in loaded[-_LATEST:] if r.link_width), default=None
        )

    @property
    def is_slow(self) -> bool | None:
        """None where it cannot be told: an idle device may rest at a low speed."""
        width, speed = self.loaded_width or self.link.width, self.loaded_speed or self.link.speed
        if width is not None and self.width is not None and width < self.width:
            return True
        if speed is None or self.speed is None:
            return None
        is_awake = self.loaded_speed is not None or self.function.port == "upstream port"
        return speed < self.speed if is_awake or speed >= self.speed else None

    @property
    def subject(self) -> str:
        return subject(self.name, self.function.address)


def subject(name: str, address: str) -> str:
    """A device and where it is; what has no other name, by its address alone."""
    return address if name == address else f"{name} ({address})"


def shown(evidence: Evidence) -> Iterator[tuple[str, PciFunction]]:
    """The devices that PCI shows: how they are called, and their functions."""
    for name, address in evidence.addresses.items():
        if function := evidence.functions.get(address):
            yield subject(name, address), function


def is_virtual(evidence: Evidence) -> bool:
    """Whether bridges may be a hypervisor's: what they say need not be so."""
    return evidence.inventory.host.hypervisor is not None


def _least(*values: float | None) -> float | None:
    return min((value for value in values if value is not None), default=None)


def ways(evidence: Evidence) -> Iterator[PcieChain]:
    """The link of each accelerator and RDMA adapter, and of each switch above one."""
    named = {address: name for name, address in evidence.addresses.items()}
    named |= {adapter.pci: adapter.name for adapter in evidence.inventory.adapters if adapter.pci}
    loaded, latest = _under_load(evidence), _latest_functions(evidence)
    told = latest_accelerators(evidence)
    seen: set[str] = set()
    for address in named:
        functions = chain(evidence, address) or (_hidden(evidence, address),)
        for function in functions:
            ends = function.address == address or function.port == "upstream port"
            if ends and function.address not in seen:
                seen.add(function.address)
                name = named.get(function.address, function.address)
                link = told[name].link if name in told else PciLink()
                lower = _completed(latest.get(function.address, function), link)
                port = latest.get(function.parent or "")
                yield PcieChain(name, lower, port, loaded.get(name, ()), link)


def _latest_functions(evidence: Evidence) -> dict[str, PciFunction]:
    """By address, as they were after the run, where that is known."""
    after = evidence.after.pci if evidence.after else ()
    return evidence.functions | {function.address: function for function in after}


def latest_accelerators(evidence: Evidence) -> dict[str, Accelerator]:
    """By the notation of their memory, as they were after the run, where that is known."""
    after = evidence.after.accelerators if evidence.after else ()
    return evidence.accelerators | {device.memory: device for device in after}


def _under_load(evidence: Evidence) -> dict[str, list[Reading]]:
    """What was read of each device in cells that cross its PCIe link: in others it may rest."""
    found: dict[str, list[Reading]] = {}
    for case in cases_of(evidence):
        for reading in case.cell.readings:
            if not case.touched.isdisjoint(
                {pcie_name(reading.memory), f"link of {reading.memory}"}
            ):
                found.setdefault(reading.memory, []).append(reading)
    return found


def _hidden(evidence: Evidence, address: str) -> PciFunction:
    """What is known of a device of which PCI shows nothing."""
    return PciFunction(address=address, unknown=evidence.inventory.unknown)


def _completed(function: PciFunction, told: PciLink) -> PciFunction:
    """With what the vendor's library tells of the link where PCI does not."""
    missing = {
        name: value
        for name in PciLink.__struct_fields__
        if getattr(function.link, name) is None and (value := getattr(told, name)) is not None
    }
    return replace(function, link=replace(function.link, **missing)) if missing else function


def chain(evidence: Evidence, address: str) -> tuple[PciFunction, ...]:
    """A function and each bridge above it; empty for one that is unknown."""
    function = evidence.functions.get(address)
    return (function, *evidence.pci_tree.above(address)) if function else ()
