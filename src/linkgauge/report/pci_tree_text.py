"""The PCI tree as rblnBandwidthLatencyTest prints it: devices below their switches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from linkgauge.model.inventory import Adapter, Inventory, PciFunction, PciLink
from linkgauge.model.pcie import generation

from .subjects import Subject

_STEP = " " * 4
_DETAIL = " " * 35
_UNKNOWN = "unknown"


def tree_lines(inventory: Inventory, subjects: Iterable[Subject]) -> Iterator[Text]:
    """A line for each bridge with something below it (chained ports joined by a slash, as in `lspci
    -PP`), three for each device."""
    yield from _TreePrinter(inventory, subjects).lines()


class _TreePrinter:
    def __init__(self, inventory: Inventory, subjects: Iterable[Subject]) -> None:
        known = {function.address for function in inventory.pci}
        self._below: dict[str | None, list[PciFunction]] = {}
        for function in inventory.pci:
            parent = function.parent if function.parent in known else None
            self._below.setdefault(parent, []).append(function)
        self._numbered = {one.pci: (number, one) for number, one in enumerate(subjects) if one.pci}
        self._adapters: dict[str, list[Adapter]] = {}
        for adapter in inventory.adapters:
            if adapter.pci:
                self._adapters.setdefault(adapter.pci, []).append(adapter)

    def lines(self) -> Iterator[Text]:
        for function in self._below.get(None, ()):
            yield from self._function(function, (), 0)

    def _function(
        self, function: PciFunction, above: tuple[PciFunction, ...], depth: int
    ) -> Iterator[Text]:
        below = self._below.get(function.address, [])
        if not below:
            yield from self._device(function, depth)
            return
        line = (*above, function)
        if len(below) == 1 and self._below.get(below[0].address):
            yield from self._function(below[0], line, depth)
            return
        yield _bridge(line, depth)
        for child in below:
            only = self._below.get(child.address, ())
            # A switch port above a single device adds no information.
            if len(only) == 1 and not self._below.get(only[0].address):
                yield from self._device(only[0], depth + 1)
            else:
                yield from self._function(child, (), depth + 1)

    def _device(self, function: PciFunction, depth: int) -> Iterator[Text]:
        step = _STEP * depth
        line = Text(f"{step}{function.address} ")
        number, subject = self._numbered.get(function.address, (None, None))
        if subject is not None:
            line.append(f"NODE {number}, ")
        line.append(self._label(function, subject), "bold")
        name = subject.model if subject else None
        line.append(
            f", {name or _name(function)}(rev-{_or(function.revision, '02x')}), "
            f"pciDevID: {_or(function.device, '#06x')}, NUMA: {_or(function.numa_node)}, "
            f"IOMMU: {_or(function.iommu_group)}"
        )
        yield line
        link = function.link
        yield Text(f"{step}{_DETAIL}PCIe full bandwidth {_rates(link)}, {_trained(link)}", "dim")
        yield Text(
            f"{step}{_DETAIL}MaxPayload {_bytes(function.max_payload)}, "
            f"MaxReadReq {_bytes(function.max_read_request)}",
            "dim",
        )

    def _label(self, function: PciFunction, subject: Subject | None) -> str:
        """Its name elsewhere in the report, else its driver."""
        adapters = "/".join(one.name for one in self._adapters.get(function.address, ()))
        if adapters:
            return adapters
        if subject is not None and subject.label != function.address:
            return subject.label
        kind = "display, " if function.display else ""
        return f"{kind}{function.driver or 'no driver'}"


def _bridge(line: tuple[PciFunction, ...], depth: int) -> Text:
    """`0000:00:01.1/01:00.0 PCI bridge: …`: the name and link of the lowest port of the line."""
    last = line[-1]
    short = [function.address.partition(":")[2] for function in line[1:]]
    path = "/".join([line[0].address, *short])
    text = Text(
        f"{_STEP * depth}{path} PCI bridge: {_name(last)} (rev {_or(last.revision, '02x')})"
    )
    if last.link.speed is not None or last.link.width is not None:
        text.append(f", {_trained(last.link)}", "dim")
    return text


def _name(function: PciFunction) -> str:
    """Its name in the PCI ID database, else its numbers, as in lspci."""
    return function.name or f"Device {_or(function.vendor, '04x')}:{_or(function.device, '04x')}"


def _rates(link: PciLink) -> str:
    """GB/s over all lanes, before line coding: what vendors call a link's full bandwidth."""
    now, most = (
        _UNKNOWN if None in (speed, width) else f"{(speed or 0) * (width or 0) / 8:.1f}"
        for speed, width in ((link.speed, link.width), (link.max_speed, link.max_width))
    )
    return f"{now}{'' if now == _UNKNOWN else ' GB/s'} (MAX: {most})"


def _trained(link: PciLink) -> str:
    now, most = (
        _or(None if speed is None else generation(speed)) for speed in (link.speed, link.max_speed)
    )
    return f"PCIe Gen {now} (MAX: {most}), {_or(link.width)} lane (MAX: {_or(link.max_width)})"


def _bytes(size: int | None) -> str:
    return _UNKNOWN if size is None else f"{size} bytes"


def _or(value: int | None, style: str = "") -> str:
    return _UNKNOWN if value is None else format(value, style)
