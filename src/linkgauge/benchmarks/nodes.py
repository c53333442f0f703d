"""Many nodes: all pairs of few of them; of more, a ring and bisections, which cost so many cells as
there are nodes.

A device stands for a node: it is that of a rank, or a simulated one behind its network interface.
All pairs are measured in the rounds of a tournament, in which each node is in one pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from random import Random

from msgspec.structs import replace

from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Benchmark

from .table import HOST_ROW, DeviceSet, Layout, Row

MOST_PAIRED = 64
"""Nodes of which all pairs are measured: 4,032 of them."""
BISECTIONS = 4
"""Each halves the nodes by lot, and pairs the halves: a cell for every two nodes."""
SEED = 25
_PAIRS = f"all pairs are measured of up to {MOST_PAIRED} nodes"
_NO_NODES = "needs nodes: a device for each process (mpiexec), or --machine fat-tree-1000"

Chosen = Callable[[int], Iterator[tuple[int, int]]]
"""From which node to which, of so many."""


class OverNodes(Row, frozen=True, kw_only=True):
    """A benchmark from node to node, of pairs that are `chosen`: as a matrix in the rounds of a
    tournament of at most so many nodes (`most`), else as rows, one for each pair."""

    chosen: Chosen
    most: int | None = None

    def lay_out(self, fabric: DeviceSet) -> Benchmark:
        count = len(fabric.devices)
        if reason := self._why_not(fabric, count):
            return self._benchmark(fabric.backend, (), reason)
        memories = [parse_memory(device.memory) for device in fabric.devices]
        pairs = ((memories[one], memories[other]) for one, other in self.chosen(count))
        cells = (self._pair_cell(row, column) for row, column in pairs)
        if self.most is None:
            cells = (replace(c, row=f"{c.row}->{c.column}", column=HOST_ROW) for c in cells)
        matrix = self.most is not None
        made = self._benchmark(fabric.backend, tuple(cells))
        return replace(made, pairs=matrix, in_rounds=matrix)

    def _why_not(self, fabric: DeviceSet, count: int) -> str | None:
        if not fabric.across_ranks and any(device.pci is not None for device in fabric.devices):
            return _NO_NODES
        if count < 2:
            return fabric.reason or f"needs two nodes, {fabric.backend} has {count} selected"
        if self.most is not None and count > self.most:
            return f"{_PAIRS}: of {count}, nodes_ring and nodes_bisection find what is slow"
        return None


def _ring(count: int) -> Iterator[tuple[int, int]]:
    return ((one, (one + 1) % count) for one in range(count))


def _bisections(count: int) -> Iterator[tuple[int, int]]:
    """The pairs of all bisections, each once. Every other one goes from the second half to the
    first, so that what is slow in one direction is found."""
    draw, found = Random(SEED), dict[tuple[int, int], None]()  # noqa: S311
    for number in range(BISECTIONS):
        nodes = list(range(count))
        draw.shuffle(nodes)
        halves = nodes[: count // 2], nodes[count // 2 :]
        found |= dict.fromkeys(zip(*(halves if number % 2 == 0 else halves[::-1]), strict=False))
    return iter(found)


def _row(name: str, title: str, chosen: Chosen, most: int | None = None) -> OverNodes:
    return OverNodes(
        f"nodes_{name}", title, Layout.PAIRS, "r -> c by r.ce", profiles=(), chosen=chosen,
        most=most,
    )  # fmt: skip


NODES: tuple[OverNodes, ...] = (
    _row("ring", "node -> the next one(row)", _ring),
    _row("bisection", f"node of one half -> its partner in the other(row), {BISECTIONS} times "
         "halved by lot", _bisections),
    _row("pairs", "node(row) -> node(column), disjoint pairs at once",
         lambda count: permutations(range(count), 2), MOST_PAIRED),
)  # fmt: skip
