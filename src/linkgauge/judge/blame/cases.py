"""Measured cells, prepared for the search for a cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import count
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from linkgauge.judge.expected.link_rates import START
from linkgauge.judge.expected.link_sharing import LinkSharing
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.model.cell_id import spoken, table_id
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.grouped import Shared
from linkgauge.model.hardware.part import Kind, Part
from linkgauge.model.hardware.wiring import Touched, Wiring
from linkgauge.model.notes import STAGED
from linkgauge.model.operations.collective import Collective
from linkgauge.model.transfer import Report, Transfer
from linkgauge.model.units import BANDWIDTH


class Case(msgspec.Struct, frozen=True, eq=False):
    """A measured cell. `touched` are the parts (devices, links, switches) that it uses, and `timed`
    the parts that may slow its figure. Cells with the same `equivalent` should have equal figures
    (None in a sweep). The figures of cells with the same `kind` vary in the same way."""

    number: int
    result: Result
    cell: CellResult
    touched: frozenset[Part]
    timed: frozenset[Part]
    equivalent: tuple[str, ...] | None
    kind: Hashable = None

    @property
    def is_oversubscribed(self) -> bool:
        """Whether the figure is one transfer's while at least two others run."""
        return len(self.cell.transfers) > 2 and self.cell.report.is_first

    @property
    def name(self) -> str:
        return spoken(self.result, self.cell)

    @property
    def figure(self) -> float:
        return self.cell.headline or 0.0

    @property
    def times(self) -> tuple[float, ...]:
        """Returns the samples as times: reciprocals of bandwidths, and nothing for hidden time."""
        if self.cell.report is Report.HIDDEN:
            return ()
        if self.result.better == "lower":
            return self.cell.samples
        return tuple(1 / sample for sample in self.cell.samples if sample > 0)


LARGE = 256 << 20
"""Figures of different sizes count as equal from this many bytes on, because starting takes no
visible share of such a copy's time. An exception is a copy that is as short as a start may be."""


@lru_cache(maxsize=2)
def cases_of(evidence: Evidence) -> tuple[Case, ...]:
    """Returns the measured cells of a run, without skipped cells."""
    found = list[Case]()
    wiring, shared, numbers = evidence.machine.wiring, Shared(), count()
    ways = _ways(wiring, tuple(_groups(evidence).items()))
    for result in evidence.results:
        links = LinkSharing(wiring, result)
        for cell, number in zip(result.cells, numbers, strict=False):
            if cell.status == "skip":
                continue
            each = tuple(map(ways.touched, wiring.carried_out(cell)))
            parts, timed, used = ways.of(each, cell.report.is_first)
            # Which links another tool's copies over the host share is not known.
            is_unknown = result.sweep or (evidence.tool is not None and STAGED in cell.notes)
            full = None if is_unknown else links.of(cell)
            equivalent = None if full is None else shared(_equivalent(result, cell, used, full))
            kind = equivalent or _kind(result, cell, each)
            found.append(Case(number, result, cell, parts, timed, equivalent, kind))
    return tuple(found)


_Way = tuple[frozenset[Part], frozenset[Part], tuple[str, ...]]
"""The parts that a cell's transfers use, and those that may slow the cell's figure. The last value
is equal for cells that use the same kinds of links, and share them with equally many transfers."""


class _Ways:
    """Finds the parts that cells use. To save memory, equal results are one object."""

    def __init__(self, wiring: Wiring, groups: tuple[tuple[str, tuple[Part, ...]], ...]) -> None:
        self._wiring, self._groups = wiring, dict(groups)
        self._shared = Shared()
        self._touched = cache(Touched)
        self.touched, self.of = cache(self._find_touched), cache(self._find_way)

    def _find_touched(self, transfer: Transfer) -> Touched:
        """Returns the parts that a transfer uses, with the cluster nodes and rails of its ends."""
        own, shared = self._wiring.touched(transfer), self._shared
        parts = own.parts
        if groups := self._groups:
            parts = parts.union(*(groups.get(str(end.place), ()) for end in transfer.memories))
        return self._touched(shared(parts), shared(own.kinds), shared(own.directed))

    def _find_way(self, each: tuple[Touched, ...], is_first: bool) -> _Way:
        parts = frozenset[Part]().union(*map(attrgetter("parts"), each))
        timed = each[0].parts if is_first and each else parts
        directed = frozenset[tuple[Part, bool]]().union(*map(attrgetter("directed"), each))
        if len(dict(directed)) < len(directed):
            opposed = {part for part, forward in directed if forward and (part, False) in directed}
            parts = parts.union(part.crossed_both_ways for part in opposed)
            timed = timed.union(part.crossed_both_ways for part in opposed & timed)
        equivalent = each[0].kinds if len(each) == 1 else self._shared(tuple(_used(each)))
        return self._shared(parts), self._shared(timed), equivalent


_ways = lru_cache(maxsize=1)(_Ways)


def _used(touched: Sequence[Touched]) -> Iterator[str]:
    if not touched:
        return
    first, *others = (" ".join(each.kinds) for each in touched)
    uses = Counter(part for each in touched for part in each.parts)
    yield from (first, *sorted(others))
    yield from sorted(str(uses[part]) for part in touched[0].parts)
    yield from sorted(str(count) for count in uses.values() if count > 1)


def _groups(evidence: Evidence) -> dict[str, tuple[Part, ...]]:
    if not any(map(attrgetter("rail"), evidence.machine.all_devices)):
        return {}
    transfers = {transfer for cell in evidence.cells() for transfer in cell.transfers}
    ends = {str(memory.place) for transfer in transfers for memory in transfer.memories}
    measured = [
        device for device in evidence.machine.all_devices if device.memory in ends and device.rail
    ]
    if len({device.rail for device in measured}) < 2:
        return {}
    sizes = Counter(name for device in measured for name in (device.node, device.rail))
    return {
        device.memory: tuple(Part("group", name) for name in names if name and sizes[name] > 1)
        for device in measured
        for names in [(device.node, device.rail)]
    }


@lru_cache(maxsize=1)
def timed_cases_of(evidence: Evidence) -> tuple[Case, ...]:
    """Returns the measured cells, whose `touched` has only the parts that may slow the figure."""
    return tuple(
        case if case.timed is case.touched else replace(case, touched=case.timed)
        for case in cases_of(evidence)
    )


def _equivalent(
    result: Result,
    cell: CellResult,
    used: tuple[str, ...],
    full: Sequence[float],
) -> tuple[str, ...]:
    figure = cell.summary.median if cell.summary else 0.0
    starts = result.unit == BANDWIDTH.symbol and (cell.bytes or 0) < figure * START
    size = "large" if result.size >= LARGE and not starts else str(result.size)
    name = result.benchmark, result.backend, size, cell.definition or ""
    return (*name, *map("{:.2f}".format, full), *used)


def _kind(result: Result, cell: CellResult, touched: Sequence[Touched]) -> Hashable:
    shapes = [
        (each.kinds, one.engine.bare, one.scale, one.source.kind, one.destination.kind)
        for one, each in zip(cell.transfers, touched, strict=True)
    ]
    name = *table_id(result), cell.bytes, cell.workload
    return (*name, tuple(shapes[:1]), tuple(sorted(shapes[1:])))


def listed(parts: Sequence[Part | str]) -> str:
    return ", ".join(map(str, parts[:4])) + (f", {len(parts) - 4} more" if parts[4:] else "")


def named(cases: Iterable[Case]) -> tuple[str, ...]:
    return tuple(map(attrgetter("name"), cases))


# Which findings are about something that a run has measured.


def concerns_measured(evidence: Evidence) -> Callable[[Finding], bool]:
    """Returns a function that tells whether a finding is about measured parts or cells."""
    cases = cases_of(evidence)
    pairs, parts = set[tuple[str, str]](), set[Part]()
    for case in cases:
        pairs.update(exchanging(case.cell))
        parts |= case.touched
    for pair in pairs:
        parts |= evidence.machine.wiring.between(*pair)
    ends = {end for part in parts if part.kind in _OF_DEVICES for end in part.ends}

    @cache
    def names() -> frozenset[str]:
        return frozenset(case.name for case in cases)

    def concerns(finding: Finding) -> bool:
        part = finding.about
        is_device = isinstance(part, Part) and part.kind in ("device", "function")
        touched = part in parts or (is_device and not ends.isdisjoint(finding.ends))
        return touched or (bool(finding.cells) and not names().isdisjoint(finding.cells))

    return concerns


_OF_DEVICES: tuple[Kind, ...] = ("device", "PCIe link", "PCIe link above")


def exchanging(cell: CellResult) -> tuple[tuple[str, str], ...]:
    """Returns the pairs of devices that send each other data in a collective."""
    if not isinstance(cell.operation, Collective):
        return ()
    from linkgauge.model.operations.exchanges import pairs_of

    ranks = [str(transfer.engine.owner) for transfer in cell.transfers]
    return tuple((ranks[a], ranks[b]) for a, b in pairs_of(cell.operation, len(ranks)))
