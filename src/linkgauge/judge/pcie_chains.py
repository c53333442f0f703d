"""Collects the known facts about each PCIe link, for the checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from statistics import median

from msgspec.structs import replace

from linkgauge.judge.blame.cases import cases_of
from linkgauge.judge.blame.counters import pci_errors, replays
from linkgauge.judge.expected.readings import is_confirmed, most_carried
from linkgauge.judge.findings import Evidence
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.gaps import Gap
from linkgauge.model.hardware.inventory import Accelerator, PciFunction, PciLink, Reading
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.part import Part

_LATEST = 3
"""The number of latest readings whose highest counts: a link may be waking up at one reading."""
_CLEAR = 0.97
"""The share of the peers' figure below which cells are clearly slower than their peers."""


class PcieChain:
    """A PCIe link between `function` and the `port` above (None if invisible). `speed` (GT/s) and
    `width` (lanes) are the most that the known ends support; `both_*` say if both are known.
    `loaded_*` are the highest of the latest readings under load. `rose` are the errors that the
    ends counted during the run, by severity, and `again` is the number of packets sent again."""

    def __init__(
        self,
        name: str,
        function: PciFunction,
        port: PciFunction | None,
        loaded: Sequence[Reading] = (),
        reported: PciLink = PciLink(),  # noqa: B008  # frozen
        is_confirmed: bool = False,
        counted: Mapping[str, dict[str, int]] = {},
        again: int = 0,
    ) -> None:
        self.name = name
        self.function = function
        self.port = port
        self.link = function.link
        above = port.link if port else PciLink()
        ends = (self.link, above, reported)
        self.speed = min([e.max_speed for e in ends if e.max_speed is not None], default=None)
        self.width = min([e.max_width for e in ends if e.max_width is not None], default=None)
        self.is_confirmed = is_confirmed
        self.both_speeds = above.max_speed is not None or reported.max_speed is not None
        self.both_widths = above.max_width is not None or reported.max_width is not None
        speeds = [r.link_speed for r in loaded if r.link_speed]
        widths = [r.link_width for r in loaded[-_LATEST:] if r.link_width]
        self.fastest = max(speeds, default=None)
        self.loaded_speed = max(speeds[-_LATEST:], default=None)
        self.loaded_width = max(widths, default=None)
        self.again, self.rose = again, dict[str, dict[str, int]]()
        for end, of in (("AER", function), ("AER of the port above", port)):
            if of is not None and of.address in counted:
                self.rose[end] = counted[of.address]

    @property
    def is_slow(self) -> bool | None:
        """Whether the link is below its maximum; None if unknown, such as an idle link's speed."""
        width, speed = self.loaded_width or self.link.width, self.loaded_speed or self.link.speed
        if width is not None and self.width is not None and width < self.width:
            return True
        if speed is None or self.speed is None:
            return None
        is_awake = self.loaded_speed is not None or self.is_confirmed
        return speed < self.speed if is_awake or speed >= self.speed else None

    @property
    def part(self) -> Part:
        return Part.device(self.name, self.function.address)


def shown(evidence: Evidence) -> Iterator[tuple[Part, PciFunction]]:
    for name, address in evidence.machine.addresses.items():
        if function := evidence.machine.functions.get(address):
            yield Part.device(name, address), function


@lru_cache(maxsize=1)
def hops(evidence: Evidence) -> tuple[PcieChain, ...]:
    """Returns the PCIe links of accelerators and RDMA adapters, and of the switches above them."""
    found: list[PcieChain] = []
    machine = evidence.machine
    named = machine.named | {one.pci: one.device for one in machine.known.adapters if one.pci}
    adapters = {one.pci for one in machine.known.adapters}
    after = evidence.after.pci if evidence.after else ()
    loaded, latest = _under_load(evidence), machine.functions | {one.address: one for one in after}
    accelerators = latest_accelerators(evidence)
    counted = pci_errors(evidence)
    again = {machine.addresses.get(of, of): count for of, count in replays(evidence).items()}
    carried = most_carried(machine, evidence.results).values()
    confirmed = {wire.lower.address for wire, rate, narrowest in carried
                 if wire.lower and is_confirmed(wire, rate, narrowest=narrowest)}  # fmt: skip
    # What libraries report of a card's link is that of its slot.
    slots = {machine.pci_tree.slot(address): name for address, name in named.items()}
    names = named | slots
    seen: set[str] = set()
    for address in named:
        for function in machine.pci_line(address) or (_hidden(machine, address),):
            ends = function.address == address or function.port == "upstream port"
            if ends and function.address not in seen:
                seen.add(function.address)
                name = names.get(function.address, function.address)
                own = slots.get(function.address, "")
                link = accelerators[own].link if own in accelerators else PciLink()
                lower = _completed(latest.get(function.address, function), link)
                port = None if machine.is_virtual else latest.get(function.parent or "")
                at = function.address
                is_sure = at in confirmed or at in adapters  # adapters' links do not slow down
                sent_again = again.get(at, 0)
                found.append(PcieChain(
                    name, lower, port, loaded.get(own, ()), link, is_sure, counted, sent_again
                ))  # fmt: skip
    return tuple(found)


def _hidden(machine: Machine, address: str) -> PciFunction:
    gaps = [Gap(one.why) for one in machine.known.unknown if "PCI functions" in one.fields]
    return PciFunction(address=address, unknown=tuple(gaps))


def latest_accelerators(evidence: Evidence) -> dict[str, Accelerator]:
    """Returns accelerators by memory name (`cuda:0`), as read after the run if possible."""
    after = evidence.after.accelerators if evidence.after else ()
    return evidence.machine.accelerators | {device.memory: device for device in after}


def _under_load(evidence: Evidence) -> dict[str, list[Reading]]:
    own = cache(lambda memory: (Part.pcie_link(memory), Part.hidden_link(memory)))
    return grouped(
        (reading.memory, reading)
        for case in cases_of(evidence)
        for reading in case.cell.readings
        if not case.touched.isdisjoint(own(reading.memory))
    )


def _completed(function: PciFunction, reported: PciLink) -> PciFunction:
    missing = {
        name: value
        for name in PciLink.__struct_fields__
        if getattr(function.link, name) is None and (value := getattr(reported, name)) is not None
    }
    return replace(function, link=replace(function.link, **missing)) if missing else function


def share_of_peers(evidence: Evidence, link: Part) -> float | None:
    """Returns the best figure over `link` as a share of its peers' median on other links. Returns
    None unless two or more cells are all clearly below this median, or if one is already low."""
    cases = [case for case in cases_of(evidence) if case.equivalent is not None and case.figure]
    others = grouped((case.equivalent, case.figure) for case in cases if link not in case.timed)
    own = [case for case in cases if link in case.timed]
    usual = ((one.cell, median(others.get(one.equivalent, [0.0]))) for one in own)
    shares = [share for cell, of in usual if (share := cell.share(of)) is not None]
    is_low = any(case.cell.verdict == "low" for case in own)
    most = max(shares, default=1.0)
    return most if len(shares) > 1 and most < _CLEAR and not is_low else None
