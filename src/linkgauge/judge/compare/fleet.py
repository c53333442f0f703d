"""Compares nodes that should be equal. The distance of a part is the mean logarithmic difference
between the part's cells of one kind and the median of all nodes. In a healthy fleet, distances
above the median distance should follow an exponential distribution. The ratio of a distance to the
mean of the others then follows an F distribution. Large distances would hide each other, so they
are removed in turn until chance explains the rest (B. Rosner, Technometrics 25, 1983). `CHANCE` is
the probability that any part of a healthy fleet is called odd."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from operator import attrgetter, neg
from statistics import fmean, median
from typing import Literal, NamedTuple

import msgspec

from linkgauge.judge.blame.limits import ENOUGH, QUIET
from linkgauge.judge.findings import Finding
from linkgauge.judge.peers import CHANCE, PERHAPS
from linkgauge.model.by_name import by_name
from linkgauge.model.cell_id import CellId, TableId, numbered
from linkgauge.model.documents.result import CellResult, Result, Run, RunVerdict
from linkgauge.model.grouped import grouped
from linkgauge.model.stats.student import beyond
from linkgauge.model.units import COLLECTIVE, Better, unit_of

SCHEMA: Literal["linkgauge.fleet/1"] = "linkgauge.fleet/1"
LEAST = ENOUGH + 1
"""The fewest nodes of which one can be odd."""
_MOST_ODD = 4
"""At most every fourth value can be far off: with more, nothing is usual."""
Kind = Literal[
    "between devices", "copies with the host", "collectives", "latencies", "within a device",
    "host", "work",
]  # fmt: skip
Statistic = Literal["median", "slow_p99"]


class Distance(msgspec.Struct, frozen=True):
    """How far a node's part (empty: all devices or the host) is from other nodes. `ratio` is the
    mean ratio to the median of all nodes, below 1 if it is worse. `times` is how far the part's
    distance exceeds the median distance, divided by the mean of the other parts. `p` is adjusted
    for all comparisons. A part is odd if its distance is at least 2 % and not due to chance."""

    kind: Kind
    statistic: Statistic
    part: str
    ratio: float
    times: float
    p: float = 1.0
    is_odd: bool = False


class FleetColumn(msgspec.Struct, frozen=True):
    """For a kind of cells, the benchmark that differs most between nodes. `usual` is the median."""

    kind: Kind
    benchmark: str
    size: int
    unit: str
    better: Better
    usual: float


class NodeRun(msgspec.Struct, frozen=True):
    name: str
    host: str
    label: str
    started: str
    path: str
    verdict: RunVerdict
    exit_code: int
    cause: str = ""
    finding: Finding | None = None


class Node(NodeRun, frozen=True):
    """A node of a fleet. `figures` are in column order. `missing` counts the figures that most
    nodes have but this node lacks."""

    figures: tuple[float | None, ...] = ()
    missing: int = 0
    farthest: Distance | None = None

    @property
    def is_odd(self) -> bool:
        return self.missing > 0 or (self.farthest is not None and self.farthest.is_odd)

    @property
    def is_equivalent(self) -> bool:
        return not self.is_odd and self.verdict in ("ok", "not judged")


class Fleet(msgspec.Struct, frozen=True):
    """Compared nodes: first the odd ones, then nodes whose own run has findings."""

    name: str
    columns: tuple[FleetColumn, ...]
    nodes: tuple[Node, ...]
    simulated: bool = False

    @property
    def equivalent(self) -> int:
        return sum(node.is_equivalent for node in self.nodes)

    @property
    def odd(self) -> int:
        return sum(node.is_odd for node in self.nodes)


class _Cells(NamedTuple):
    """One cell's figures on all nodes; NaN if a node has none."""

    kind: Kind
    parts: tuple[str, ...]
    unit: str
    better: Better
    figures: Mapping[Statistic, array[float]]

    def distances(self, statistic: Statistic) -> dict[int, float]:
        """Returns logarithms of ratios to the median of all nodes; worse figures are negative."""
        known = {n: value for n, value in enumerate(self.figures[statistic]) if value > 0}
        if len(known) < LEAST:
            return {}
        usual, sign = median(known.values()), 1 if self.better == "higher" else -1
        return {node: sign * math.log(value / usual) for node, value in known.items()}


class FleetReader:
    """Collects the figures of runs that are added one after another, without keeping the runs."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._nodes: list[NodeRun] = []
        self._cells: dict[CellId, _Cells] = {}
        self._simulated = False

    def add(self, node: NodeRun, run: Run) -> None:
        number = len(self._nodes)
        self._nodes.append(node)
        self._simulated |= run.simulated
        for result, table, repeat in numbered(run.results):
            for cell in result.cells:
                if cell.status == "pass" and cell.headline and cell.summary is not None:
                    key = table.cell(cell.place, repeat)
                    if key not in self._cells:
                        self._cells[key] = self._made(result, cell)
                    figures = self._cells[key].figures
                    figures["median"][number] = cell.headline
                    figures["slow_p99"][number] = cell.summary.slow_p99 or math.nan

    def _made(self, result: Result, cell: CellResult) -> _Cells:
        devices = tuple(str(place) for place in cell.places if place.is_device)
        kind = _kind(result, cell, len(devices))
        none = array("d", [math.nan]) * self._count
        parts = devices if 0 < len(devices) <= 2 else ("",)
        return _Cells(
            kind, parts, result.unit, result.better, {"median": none, "slow_p99": none[:]}
        )

    def fleet(self, name: str) -> Fleet:
        farthest = _farthest(self._cells.values())
        columns, figures = self._columns()
        missing = self._missing()
        nodes = [
            by_name(
                Node, node, farthest=farthest.get(number), missing=missing[number],
                figures=tuple(column.get(number) for column in figures),
            )
            for number, node in enumerate(self._nodes)
        ]  # fmt: skip
        return Fleet(name, columns, tuple(sorted(nodes, key=_order)), self._simulated)

    def _missing(self) -> list[int]:
        there = [[value > 0 for value in cells.figures["median"]] for cells in self._cells.values()]
        usual = [own for own in there if 2 * sum(own) > len(self._nodes)]
        return [sum(not own[number] for own in usual) for number in range(len(self._nodes))]

    def _columns(self) -> tuple[tuple[FleetColumn, ...], list[dict[int, float]]]:
        tables: dict[TableId, list[_Cells]] = grouped(
            (key.table, cells) for key, cells in self._cells.items()
        )
        found: dict[Kind, tuple[float, FleetColumn, dict[int, float]]] = {}
        for table, own in tables.items():
            first = own[0]
            worst = min if first.better == "higher" else max
            each = zip(*(cells.figures["median"] for cells in own), strict=True)
            known = ((n, [value for value in values if value > 0]) for n, values in enumerate(each))
            figures = {number: worst(values) for number, values in known if values}
            usual = median(figures.values())
            spread = max(abs(math.log(figure / usual)) for figure in figures.values())
            if first.kind not in found or spread > found[first.kind][0]:
                of = table.benchmark, table.size, first.unit, first.better, usual
                found[first.kind] = spread, FleetColumn(first.kind, *of), figures
        ordered = sorted(found.values(), key=lambda one: -one[0])
        return tuple(column for _, column, _ in ordered), [figures for *_, figures in ordered]


def _kind(result: Result, cell: CellResult, devices: int) -> Kind:
    unit, memories = unit_of(result.unit), cell.transfers[0].memories
    if unit == COLLECTIVE:
        return "collectives"
    if not devices:
        return "host"
    if unit.quantity == "time":
        return "latencies"
    if unit.quantity != "bandwidth" or not memories:
        return "work"
    if any(one.is_host for transfer in cell.transfers for one in transfer.memories):
        return "copies with the host"
    return "within a device" if devices == 1 else "between devices"


_RANKS: Mapping[RunVerdict, int] = {"fail": 0, "low": 1, "warn": 2}


def _order(node: Node) -> tuple[object, ...]:
    times = 0.0 if node.farthest is None else node.farthest.times
    return not node.is_odd, _RANKS.get(node.verdict, len(_RANKS)), -times, node.name


_Means = Mapping[tuple[int, str], float]
"""The mean distances of parts in cells of a kind, by node and part."""


def _farthest(every: Iterable[_Cells]) -> dict[int, Distance]:
    pools = dict(_pools(every))
    tested = (_tested(of, means, len(pools)) for of, means in pools.items())
    each = grouped(chain.from_iterable(tested))
    return {node: max(own, key=attrgetter("is_odd", "times")) for node, own in each.items()}


def _pools(every: Iterable[_Cells]) -> Iterable[tuple[tuple[Kind, Statistic], _Means]]:
    statistics: tuple[Statistic, ...] = ("median", "slow_p99")
    for kind, cells in grouped((one.kind, one) for one in every).items():
        for statistic in statistics:
            of_parts = grouped(
                ((node, part), off)
                for one in cells
                for node, off in one.distances(statistic).items()
                for part in one.parts
            )
            if of_parts:
                yield (kind, statistic), {key: fmean(own) for key, own in of_parts.items()}


def _tested(
    of: tuple[Kind, Statistic], means: _Means, pools: int
) -> Iterable[tuple[int, Distance]]:
    """Yields each node with the distance of each of its parts. Small distances are never odd."""
    ordered = sorted(means.items(), key=lambda one: -abs(one[1]))
    tail = _Tail([abs(off) for _, off in ordered])
    small = bisect_left(tail.sizes, math.log1p(-PERHAPS), key=neg)
    chances = [tail.chance(at) * pools for at in range(min(small, len(ordered) // _MOST_ODD))]
    odd = max((at + 1 for at, p in enumerate(chances) if p < CHANCE), default=0)
    least = math.inf
    adjusted = [least := min(least, p) for p in reversed(chances[:odd])][::-1]
    middle, mean, _ = tail.others(odd)
    for at, ((node, part), off) in enumerate(ordered):
        times, is_odd = max(0.0, abs(off) - middle) / mean, at < odd
        p = adjusted[at] if is_odd else 1.0
        yield node, Distance(*of, part, math.exp(off), times, p, is_odd)


class _Tail:
    def __init__(self, sizes: Sequence[float]) -> None:
        self.sizes = sizes
        self._sums = [0.0, *accumulate(sizes)]

    def others(self, out: int) -> tuple[float, float, int]:
        """Leaves out the `out` largest sizes. Returns the median of the other sizes, by how much
        sizes above the median exceed it on average, and how many these are."""
        count = max(1, (len(self.sizes) - out) // 2)
        end = min(out + count, len(self.sizes) - 1)
        middle = self.sizes[end]
        return middle, (self._sums[end] - self._sums[out]) / count - middle + QUIET, count

    def chance(self, at: int) -> float:
        """Returns the probability that chance makes a distance as large as that at index `at`."""
        middle, mean, count = self.others(at + 1)
        times = max(1e-9, (self.sizes[at] - middle) / mean)
        return min(1.0, count * beyond(times, 2, 2 * count))


def names_of(nodes: Sequence[tuple[str, str]]) -> list[str]:
    """Returns a distinct name for each pair of a host and a label."""
    hosts, labels = {host for host, _ in nodes}, {label for _, label in nodes}
    if len(labels) == len(nodes):
        return [label for _, label in nodes]
    if len(hosts) == len(nodes):
        return [host for host, _ in nodes]
    return [f"{host} {label}" for host, label in nodes]
