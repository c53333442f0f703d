"""The PCI devices as a tree, a line each: NUMA nodes, switches, and what is below them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from linkgauge.model.inventory import Inventory, PciFunction, PciLink
from linkgauge.model.pcie import generation

from .pci_tree_text import PciTreePrinter, name_of
from .subjects import Subject
from .wrapping import Hanging

_BRANCH, _LAST, _BESIDE, _BELOW = "├─ ", "└─ ", "│  ", "   "


class TopologyTree(PciTreePrinter):
    """What hangs together. A port above a single device adds no information and is left out; so is
    a bridge that leads to nothing."""

    def drawn(self) -> Iterator[Hanging]:
        """A tree for each NUMA node."""
        tops = [self._lowest(function) for function in self.below.get(None, ())]
        nodes = dict.fromkeys(_node(self._first_device(top)) for top in tops)
        for node in sorted(nodes, key=lambda one: (one is None, one or 0)):
            yield Hanging(Text("no NUMA node" if node is None else f"host:{node}", "cyan"), 0)
            here = [top for top in tops if _node(self._first_device(top)) == node]
            yield from self._branches(here, "")

    def _branches(self, functions: Sequence[PciFunction], before: str) -> Iterator[Hanging]:
        for function in functions:
            is_last = function is functions[-1]
            yield self._line(function, before + (_LAST if is_last else _BRANCH))
            below = [self._lowest(one) for one in self.below.get(function.address, ())]
            yield from self._branches(below, before + (_BELOW if is_last else _BESIDE))

    def _lowest(self, function: PciFunction) -> PciFunction:
        """The function, or below a chain of ports that lead on to one thing only, that."""
        below = self.below.get(function.address, ())
        return self._lowest(below[0]) if len(below) == 1 else function

    def _first_device(self, function: PciFunction) -> PciFunction:
        below = self.below.get(function.address)
        return self._first_device(below[0]) if below else function

    def _line(self, function: PciFunction, before: str) -> Hanging:
        line = Text(before, "dim")
        line.append(f"{function.address}  ", "default")
        if self.below.get(function.address):
            line.append(f"{name_of(function)}  ", "default")
        else:
            _, subject = self.numbered.get(function.address, (None, None))
            line.append(self.label(function, subject), "bold")
            line.append(f"  {(subject and subject.model) or name_of(function)}  ", "default")
        line.append_text(_link(function.link))
        line.rstrip()
        return Hanging(line, len(before) + 2)


def _node(function: PciFunction) -> int | None:
    return function.numa_node


def _link(link: PciLink) -> Text:
    """`PCIe 5.0 x16`; yellow with what it could be, if it is slower than that."""
    if link.speed is None or link.width is None:
        return Text()
    text = Text(f"PCIe {_of(link.speed, link.width)}", "default")
    most = (link.max_speed or link.speed, link.max_width or link.width)
    if (link.speed, link.width) != most:
        text.append(f" of {_of(*most)}", "yellow")
    return text


def _of(speed: float, width: int) -> str:
    return f"Gen {generation(speed)} x{width}"


def topology_lines(inventory: Inventory, subjects: Sequence[Subject]) -> Iterator[Hanging]:
    """The trees of an inventory, in which subjects are named as elsewhere."""
    return TopologyTree(inventory, subjects).drawn()
