"""How devices hang together: a tree for each NUMA node, a line for each switch and device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from linkgauge.model.inventory import Inventory, PciFunction, PciLink
from linkgauge.model.pcie import generation

from .pci_forest import PciForest
from .subjects import Subject
from .wrapping import Hanging

_BRANCH, _LAST, _BESIDE, _BELOW = "├─ ", "└─ ", "│  ", "   "


def topology_lines(inventory: Inventory, subjects: Iterable[Subject]) -> Iterator[Hanging]:
    """A tree for each NUMA node. Ports that lead to one thing only are left out."""
    forest = PciForest(inventory, subjects)
    tops = [_lowest(forest, function) for function in forest.below(None)]
    nodes: dict[int | None, list[PciFunction]] = {}
    for top in tops:
        nodes.setdefault(_first_device(forest, top).numa_node, []).append(top)
    devices = [function for function in inventory.pci if not forest.below(function)]
    width = max((len(forest.label(device)) for device in devices), default=0)
    for node in sorted(nodes, key=lambda one: (one is None, one or 0)):
        yield Hanging(Text("no NUMA node known" if node is None else f"host:{node}", "cyan"), 2)
        yield from _branches(forest, nodes[node], "", width)


def _branches(
    forest: PciForest, functions: Sequence[PciFunction], before: str, width: int
) -> Iterator[Hanging]:
    """The functions and what is below them; `width` columns are for their names."""
    for function in functions:
        is_last = function is functions[-1]
        line = Text.assemble((before + (_LAST if is_last else _BRANCH), "dim"), function.address)
        below = [_lowest(forest, one) for one in forest.below(function)]
        if not below:
            line.append(f"  {forest.label(function):<{width}}", "bold")
        line.append(f"  {forest.model(function)}").append_text(_link(function.link))
        yield Hanging(line, len(before) + 5)
        yield from _branches(forest, below, before + (_BELOW if is_last else _BESIDE), width)


def _lowest(forest: PciForest, function: PciFunction) -> PciFunction:
    """Where a chain of ports that each lead to one thing only ends."""
    below = forest.below(function)
    return _lowest(forest, below[0]) if len(below) == 1 else function


def _first_device(forest: PciForest, function: PciFunction) -> PciFunction:
    below = forest.below(function)
    return _first_device(forest, below[0]) if below else function


def _link(link: PciLink) -> Text:
    """`PCIe Gen 5 x16`, and in yellow what it could be if it is slower than that."""
    if link.speed is None or link.width is None:
        return Text()
    now, most = (
        (link.speed, link.width),
        (link.max_speed or link.speed, link.max_width or link.width),
    )
    text = Text(f"  PCIe {_rate(*now)}")
    return text if now == most else text.append(f" of {_rate(*most)}", "yellow")


def _rate(speed: float, width: int) -> str:
    known = generation(speed)
    return f"{f'{speed:g} GT/s' if known is None else f'Gen {known}'} x{width}"
