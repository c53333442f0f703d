"""Benchmarks between many nodes: hosts, or nodes of a simulated machine.

Between few nodes, all pairs are measured, in rounds as in a tournament. Between many nodes, a ring
and bisections are measured, so that the time does not grow with the pairs. Of very many nodes, a
sample is measured. The first rail has the first device of each node, the second rail the second
device, and so on. In a ring or a bisection, all nodes send at once, each to the node a fixed number
of places further on, which fills shared links. In a fat tree that routes by destination, such
transfers need not share a link (E. Zahavi, see model/hardware/map.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

from msgspec.structs import replace

from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Benchmark, Cell, Report

from .table import HOST_ROW, DeviceSet, Layout, Row, Sweep

MOST_PAIRED = 64
"""The largest number of nodes for which all pairs are measured (4,032 pairs)."""
MOST_CELLS = 10
"""The largest number of measured cells for each node, unless there are more rails."""
MOST_NODES = 1000
"""The largest number of nodes that are measured. Of more, a sample is measured."""
BLOCKS = 8
"""The number of blocks of neighbouring nodes in a sample."""
BISECTIONS = 4
MOST_DEVICES = 100
"""The most devices of several nodes between which a profile measures all pairs (9,900)."""
_PAIRS = f"all pairs are measured of up to {MOST_PAIRED} nodes"
_NO_NODES = "needs nodes: a device for each process (mpiexec), or --machine fat-tree-1000"


class Nodes(NamedTuple):
    """The nodes to measure. `memories` lists, for each node, its memory on each rail."""

    labels: Sequence[str]
    rails: Sequence[str]
    memories: Sequence[Sequence[Memory]]

    def sample(self) -> Nodes:
        """Returns all nodes or, if there are too many, a few blocks of neighbouring nodes."""
        count = len(self.memories)
        if count <= MOST_NODES:
            return self
        first = (block * count // BLOCKS for block in range(BLOCKS))
        chosen = [node for at in first for node in range(at, at + MOST_NODES // BLOCKS)]
        memories = [self.memories[node] for node in chosen]
        return Nodes([self.labels[node] for node in chosen], self.rails, memories)


class Step(NamedTuple):
    """A transfer from node `source` to node `target` on each rail. Steps of the same `round` run at
    once. A transfer that begins on rail r ends on rail r + `across`."""

    source: int
    target: int
    round: int | None = None
    across: int = 0


Steps = Callable[[int, int], Iterator[Step]]
"""A function that yields steps. Its arguments are the numbers of nodes and rails."""


class OverNodes(Row, frozen=True, kw_only=True):
    """A benchmark with a cell for each of `steps` and each rail. With `most_nodes`, each cell has
    the transfers of all rails, and there are no cells for more than `most_nodes` nodes."""

    steps: Steps
    most_nodes: int | None = None

    def lay_out(self, fabric: DeviceSet) -> Benchmark:
        nodes = _nodes_of(fabric)
        if reason := self._why_not(fabric, nodes):
            return self._benchmark(fabric.backend, (), reason)
        every, nodes = len(nodes.memories), nodes.sample()
        steps = list(self.steps(len(nodes.memories), len(nodes.rails)))
        if self.most_nodes is not None:
            pairs = tuple(self._of_all_rails(nodes, step) for step in steps)
            made = self._benchmark(fabric.backend, pairs)
            parts = tuple(nodes.rails) if len(nodes.rails) > 1 else ()
            return replace(made, parts=parts, pairs=True, in_rounds=True)
        steps = [step for step in steps for _ in nodes.rails]
        cells = (
            self._on_rail(nodes, step, number % len(nodes.rails))
            for number, step in enumerate(steps)
        )
        made = self._benchmark(fabric.backend, tuple(cells))
        if every > len(nodes.memories):
            measured = f"{len(nodes.memories)} of {every} nodes, in {BLOCKS} blocks"
            made = replace(made, title=f"{made.title}; {measured}")
        return replace(made, pairs=False, rounds=tuple(step.round or 0 for step in steps))

    def _on_rail(self, nodes: Nodes, step: Step, rail: int) -> Cell:
        arrives = (rail + step.across) % len(nodes.rails)
        source, target = nodes.memories[step.source][rail], nodes.memories[step.target][arrives]
        row = f"{nodes.labels[step.source]}->{nodes.labels[step.target]}"
        return replace(self._pair_cell(source, target), row=row, column=nodes.rails[rail])

    def _of_all_rails(self, nodes: Nodes, step: Step) -> Cell:
        ends = zip(nodes.memories[step.source], nodes.memories[step.target], strict=True)
        transfers = [one for pair in ends for one in self._pair_cell(*pair).transfers]
        report = Report.SUM if len(transfers) > 1 else self.report
        return Cell(nodes.labels[step.source], nodes.labels[step.target], tuple(transfers), report)

    def _why_not(self, fabric: DeviceSet, nodes: Nodes) -> str | None:
        count = len(nodes.memories)
        if not fabric.across_ranks and any(
            device.pci is not None and device.node is None for device in fabric.devices
        ):
            return _NO_NODES
        if count < 2:
            return fabric.reason or f"needs two nodes, {fabric.backend} has {count} selected"
        if not nodes.rails:
            return "the nodes that are selected have no rail in common"
        if len(nodes.rails) < 2 and any(step.across for step in self.steps(2, 1)):
            return "needs several rails: a node has a single one"
        if self.most_nodes is not None and count > self.most_nodes:
            return f"{_PAIRS}: of {count}, nodes_rails and nodes_bisection find what is slow"
        return None


def _nodes_of(fabric: DeviceSet) -> Nodes:
    several = len(set(fabric.hosts)) > 1
    found: dict[str, dict[str, Memory]] = {}
    for device in fabric.devices:
        memory, node, rail = parse_memory(device.memory), device.node, device.rail
        if memory.rank is not None:  # each rank has a device, and a simulated one all nodes
            node, rail = fabric.hosts[memory.rank] if several else None, None
        own = found.setdefault(node or device.memory, {})
        own[rail or f"rail{len(own)}"] = memory
    first = next(iter(found.values()), {})
    rails = [rail for rail in first if all(rail in own for own in found.values())]
    memories = [[own[rail] for rail in rails] for own in found.values()]
    if len(rails) > 1:
        return Nodes([str(number) for number in range(len(found))], rails, memories)
    return Nodes([own[0].label for own in memories if own], [HOST_ROW] * len(rails), memories)


def _ring(count: int, _: int) -> Iterator[Step]:
    return (Step(one, (one + 1) % count, 0) for one in range(count))


def _crossing(count: int, _: int) -> Iterator[Step]:
    return (step._replace(across=1) for step in _ring(count, 1))


def _bisections(count: int, rails: int) -> Iterator[Step]:
    # Every second bisection goes backwards.
    room = (MOST_CELLS - rails) * 2 // rails
    for number in range(max(1, min(BISECTIONS, room, count.bit_length() - 1))):
        part = count >> (number + 1)
        ends = ((one, one + part) for one in range(count - part) if one // part % 2 == 0)
        for one, other in ends:
            yield Step(one, other, number) if number % 2 == 0 else Step(other, one, number)


def _pairs(count: int, _: int) -> Iterator[Step]:
    return (Step(one, other) for one, other in permutations(range(count), 2))


def _row(name: str, title: str, steps: Steps, most_nodes: int | None = None) -> OverNodes:
    return OverNodes(
        name, title, Layout.PAIRS, "r -> c by r.ce", profiles=(), across_ranks=True,
        steps=steps, most_nodes=most_nodes,
    )  # fmt: skip


NODES: tuple[OverNodes, ...] = (
    _row("nodes_rails", "node -> the next node(row) on each rail(column), all at once", _ring),
    _row("nodes_bisection", "node(row) -> its partner in the other half, on each "
         "rail(column), all pairs at once", _bisections),
    _row("nodes_pairs", "node(row) -> node(column), disjoint pairs at once", _pairs, MOST_PAIRED),
    _row("rails_crossing", "node -> the next node(row), from each rail(column) to the next rail, "
         "all at once", _crossing),
)  # fmt: skip


def fleet_of(fabrics: Sequence[DeviceSet]) -> str | None:
    """Returns `256 devices of 32 nodes, …` for a set with too many pairs to measure, else None."""
    for fabric in fabrics:
        nodes, count = {device.node for device in fabric.devices} - {None}, len(fabric.devices)
        if count > MOST_DEVICES and len(nodes) > 1 and not fabric.across_ranks:
            pairs = count * (count - 1)
            return f"{count:,} devices of {len(nodes):,} nodes, which are {pairs:,} pairs"
    return None


def of_fleet(rows: Iterable[Row | Sweep]) -> tuple[Row | Sweep, ...]:
    kept = (row for row in rows if not (isinstance(row, Row) and row.is_of_many))
    return (*kept, *NODES)
