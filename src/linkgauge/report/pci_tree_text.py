"""The PCI tree as rblnBandwidthLatencyTest prints it: devices below their switches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from linkgauge.model.inventory import Inventory, PciFunction, PciLink
from linkgauge.model.pcie import generation

from .pci_forest import UNKNOWN, PciForest, shown
from .subjects import Subject

_STEP = " " * 4
_DETAIL = " " * 4


def tree_lines(inventory: Inventory, subjects: Iterable[Subject]) -> Iterator[Text]:
    """A line for each bridge with something below it (chained ports joined by a slash, as in `lspci
    -PP`), three for each device."""
    yield from _TreePrinter(PciForest(inventory, subjects)).lines()


class _TreePrinter:
    def __init__(self, forest: PciForest) -> None:
        self._forest = forest

    def lines(self) -> Iterator[Text]:
        for function in self._forest.below(None):
            yield from self._function(function, (), 0)

    def _function(
        self, function: PciFunction, above: tuple[PciFunction, ...], depth: int
    ) -> Iterator[Text]:
        below = self._forest.below(function)
        if not below:
            yield from self._device(function, depth)
            return
        line = (*above, function)
        if len(below) == 1 and self._forest.below(below[0]):
            yield from self._function(below[0], line, depth)
            return
        yield self._bridge(line, depth)
        for child in below:
            only = self._forest.below(child)
            # A switch port above a single device adds no information.
            if len(only) == 1 and not self._forest.below(only[0]):
                yield from self._device(only[0], depth + 1)
            else:
                yield from self._function(child, (), depth + 1)

    def _device(self, function: PciFunction, depth: int) -> Iterator[Text]:
        step = _STEP * depth
        line = Text(f"{step}{function.address} ")
        number, _ = self._forest.subject(function)
        if number is not None:
            line.append(f"NODE {number}, ")
        line.append(self._forest.label(function), "bold")
        line.append(
            f", {self._forest.model(function)}(rev-{shown(function.revision, '02x')}), "
            f"pciDevID: {shown(function.device, '#06x')}, NUMA: {shown(function.numa_node)}, "
            f"IOMMU: {shown(function.iommu_group)}"
        )
        yield line
        link = function.link
        yield Text(f"{step}{_DETAIL}PCIe full bandwidth {_rates(link)}, {_trained(link)}", "dim")
        yield Text(
            f"{step}{_DETAIL}MaxPayload {_bytes(function.max_payload)}, "
            f"MaxReadReq {_bytes(function.max_read_request)}",
            "dim",
        )

    def _bridge(self, line: tuple[PciFunction, ...], depth: int) -> Text:
        """`0000:00:01.1/01:00.0 PCI bridge: …`: name and link of the lowest port of the line."""
        last = line[-1]
        short = [function.address.partition(":")[2] for function in line[1:]]
        path = "/".join([line[0].address, *short])
        name, revision = self._forest.model(last), shown(last.revision, "02x")
        text = Text(f"{_STEP * depth}{path} PCI bridge: {name} (rev {revision})")
        if last.link.speed is not None or last.link.width is not None:
            text.append(f", {_trained(last.link)}", "dim")
        return text


def _rates(link: PciLink) -> str:
    """GB/s over all lanes, before line coding: what vendors call a link's full bandwidth."""
    now, most = (
        UNKNOWN if None in (speed, width) else f"{(speed or 0) * (width or 0) / 8:.1f}"
        for speed, width in ((link.speed, link.width), (link.max_speed, link.max_width))
    )
    return f"{now}{'' if now == UNKNOWN else ' GB/s'} (MAX: {most})"


def _trained(link: PciLink) -> str:
    now, most = (
        shown(None if speed is None else generation(speed))
        for speed in (link.speed, link.max_speed)
    )
    return f"PCIe Gen {now} (MAX: {most}), {shown(link.width)} lane (MAX: {shown(link.max_width)})"


def _bytes(size: int | None) -> str:
    return UNKNOWN if size is None else f"{size} bytes"
