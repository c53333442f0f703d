"""Merges the visits of a cell into one result: all samples, the headline figure, and the range of
another run's figure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

from msgspec.structs import replace

from linkgauge.model.counters import total
from linkgauge.model.documents.result import (
    CellResult,
    Interval,
    RankTimes,
    Status,
    Stopped,
    TransferFigure,
)
from linkgauge.model.load import joined as joined_loads
from linkgauge.model.notes import Imprecise, NotRevisited
from linkgauge.model.recorded import recorded_kind
from linkgauge.model.settings import VISIT_SECONDS, Settings
from linkgauge.model.stats.intervals import COVERAGE, Estimate, Repetitions, estimates, may_lead
from linkgauge.model.stats.modes import cut, groups, split
from linkgauge.model.stats.summary import Summary, relative_error, summarize
from linkgauge.model.transfer import Report
from linkgauge.model.units import Better

Summed = Callable[[tuple[float, ...], Better], Summary | None]
"""A function that returns the statistics of samples, each time the same value for equal samples."""

_UNWHOLE: tuple[Status, ...] = ("error", "timeout")


def merge(cells: Sequence[Sequence[CellResult]], settings: Settings) -> list[CellResult]:
    """Merges the visits of each cell. The cells must be similar, because they share their variance.
    A merged cell may stand for its only visit. A cell that ended in an error has no figures. Wrong
    bytes in any visit fail the cell. A cell that was skipped in a later visit keeps the figures of
    the earlier visits."""
    settings = settings.of(cells[0][0]) if cells else settings
    series: _Series = {}
    joined = [_join([_with_gates(visit) for visit in visits], series) for visits in cells]
    shown = list(map(_shown, joined))
    unlike = dict(zip(shown, joined, strict=True))
    borders = {
        of: split(cell.samples, _gates(cell), tuple(map(sum, cell.visits)))
        for of, cell in unlike.items()
    }
    estimated = dict(zip(shown, _estimated(joined, settings), strict=True))
    # The parts of alike cells may come in another order, and have the same samples.
    summed = cache(summarize)
    figures = {
        of: _figures(cell, borders[of], estimated[of], settings, summed)
        for of, cell in unlike.items()
        if cell.samples
    }
    return [
        replace(cell, **figures[of]) if of in figures else cell
        for of, cell in zip(shown, joined, strict=True)
    ]


_Series = dict[Hashable, dict[str, Any]]
"""The samples of several visits as those of one, by what the visits showed."""


def _shown(cell: CellResult) -> Hashable:
    """Identifies what a cell's figures are computed from. Alike cells of a simulated machine share
    visits, and so their figures."""
    return id(cell.samples), id(cell.parts), cell.notes


def spent(*visits: CellResult) -> float:
    """Returns the seconds of a cell's time that these visits used up. Each visit counts at least
    `VISIT_SECONDS`, because preparing it takes time as well."""
    seconds = sum(visit.seconds or 0.0 for visit in visits)
    return max(seconds, VISIT_SECONDS * sum(len(visit.visits) for visit in visits))


def _gates(cell: CellResult) -> tuple[int, ...]:
    return tuple(gate for visit in cell.visits for gate in visit)


def _with_gates(visit: CellResult) -> CellResult:
    """Returns the visit with the number of samples after each start signal. In old journals, which
    do not record it, each sample has its own."""
    if visit.visits or not visit.samples:
        return visit
    return replace(visit, visits=((1,) * len(visit.samples),))


def _join(visits: Sequence[CellResult], series: _Series) -> CellResult:
    """Returns all visits of a cell as one, with the samples in order. Keeps the samples in `series`
    for cells that share the visits."""
    ended = next((visit for visit in visits if visit.status in _UNWHOLE), None)
    if ended is not None or len(visits) == 1:
        return ended or visits[0]
    whole = [visit for visit in visits if visit.status != "skip"]
    if not whole:
        return visits[0]
    shown = tuple(map(_shown, whole))
    if shown not in series:
        series[shown] = _in_series(whole)
    wrong = next((visit for visit in whole if visit.status == "fail"), whole[0])
    skipped = (NotRevisited(visit.reason) for visit in visits if visit.status == "skip")
    notes = (note for visit in whole for note in visit.notes)
    seconds = [visit.seconds for visit in whole if visit.seconds is not None]
    cpu_seconds = [visit.cpu_seconds for visit in whole if visit.cpu_seconds is not None]
    locks = [visit.locked for visit in whole if visit.locked is not None]
    checks = [visit.verified for visit in whole if visit.verified is not None]
    return replace(
        whole[0],
        status=wrong.status,
        reason=wrong.reason,
        kind=wrong.kind,
        notes=tuple(dict.fromkeys((*notes, *skipped))),
        verified=all(checks) if checks else None,
        locked=all(locks) if locks else None,
        placement=tuple(dict.fromkeys(place for visit in whole for place in visit.placement)),
        seconds=sum(seconds) if seconds else None,
        readings=tuple(reading for visit in whole for reading in visit.readings),
        counters=total(visit.counters for visit in whole),
        wrong=_wrong(whole),
        # Of some visits only (earlier versions' are unknown), it would not be of all the seconds.
        cpu_seconds=sum(cpu_seconds) if len(cpu_seconds) == len(whole) else None,
        load=joined_loads(visit.load for visit in whole),
        **series[shown],
    )


def _in_series(visits: Sequence[CellResult]) -> dict[str, Any]:
    """Returns the fields with the samples of these visits, in order."""
    parts = zip(*(visit.parts for visit in visits), strict=True)
    iterations = zip(*(visit.iterations for visit in visits), strict=True)
    return {
        "samples": tuple(chain.from_iterable([visit.samples for visit in visits])),
        "visits": tuple(gates for visit in visits for gates in visit.visits),
        "parts": tuple(map(_join_part, parts)),
        "iterations": tuple(map(_join_rank, iterations)),
    }


def _join_part(parts: Sequence[TransferFigure]) -> TransferFigure:
    return replace(parts[0], samples=tuple(chain.from_iterable([part.samples for part in parts])))


def _join_rank(times: Sequence[RankTimes]) -> RankTimes:
    return replace(times[0], seconds=tuple(chain.from_iterable([own.seconds for own in times])))


def _wrong(visits: Sequence[CellResult]) -> int | None:
    """Returns the largest number of wrong elements in a visit, or None if no visit counted them."""
    found = [visit.wrong for visit in visits if visit.wrong is not None]
    return max(found, default=None)


_Estimates = tuple[Estimate | None, Sequence[Estimate | None]]
"""The estimate for a cell's figure, and those for its parts."""


def _estimated(cells: Sequence[CellResult], settings: Settings) -> Iterator[_Estimates]:
    """Yields the estimates for similar cells. Each part is pooled with the same part of the other
    cells. A simulated machine has no processes that differ. If the user fixed the number of
    samples, only those cells are repeated that look low, and say nothing of the others."""
    if settings.samples is not None and any(len(cell.visits) == 1 for cell in cells):
        yield from ((None, [None] * len(cell.parts)) for cell in cells)
        return
    process = 0.0
    if cells and settings.simulation is None:
        process = recorded_kind(cells[0]).process
    count = max((len(cell.parts) for cell in cells), default=0)
    parts = [
        estimates(
            [_repetitions(cell, cell.parts[at].samples) if cell.parts else [] for cell in cells],
            process,
        )
        for at in range(count)
    ]
    known = estimates([_repetitions(cell, cell.samples) for cell in cells], process)
    yield from ((one, [column[at] for column in parts]) for at, one in enumerate(known))


def _repetitions(cell: CellResult, samples: Sequence[float]) -> Repetitions:
    return [visit for visit in cut(samples, map(sum, cell.visits)) if visit]


def with_ranges(cells: Sequence[CellResult], settings: Settings) -> list[CellResult]:
    """Returns measured similar cells with the ranges that their samples show."""
    shown = list(map(_shown, cells))
    known = {
        of: _ranges(cell, found)
        for of, cell, found in zip(shown, cells, _estimated(cells, settings), strict=True)
    }
    return [replace(cell, **known[of]) for of, cell in zip(shown, cells, strict=True)]


def _ranges(cell: CellResult, found: _Estimates) -> dict[str, Any]:
    """Returns the fields of a cell that say where another run's figure lies. If samples fall into
    two groups, another run may show either, unless one is rare."""
    known, parts = found
    gates = sum(mode.gates for mode in cell.modes)
    levels = [mode.median for mode in cell.modes if may_lead(mode.gates / gates, len(cell.visits))]
    return {
        "summary": _ranged(cell.summary, known, levels),
        "interval": known and Interval("visits", COVERAGE, known.degrees, known.alike),
        "parts": tuple(
            replace(part, summary=_ranged(part.summary, one, ()))
            for part, one in zip(cell.parts, parts, strict=False)
        ),
    }


def _ranged(
    summary: Summary | None, known: Estimate | None, levels: Iterable[float]
) -> Summary | None:
    if summary is None:
        return None
    return replace(summary, ci95=known and known.interval(summary.median, *levels))


def _figures(
    cell: CellResult,
    border: float | None,
    known: _Estimates,
    settings: Settings,
    summed: Summed,
) -> dict[str, Any]:
    """Returns the fields of a cell that are computed from its samples."""
    found = () if border is None else groups(cell.samples, _gates(cell), border)
    summary = summed(cell.samples, _better(cell))
    if found and summary is not None:
        summary = replace(summary, median=found[0].median)
    parts = tuple(
        replace(part, summary=summed(part.samples, _better(cell, part))) for part in cell.parts
    )
    ranges = _ranges(replace(cell, summary=summary, modes=found, parts=parts), known)
    error = relative_error(ranges["summary"])
    stopped = _stopped(cell, error, settings)
    missed = stopped in ("max-time", "noise") and settings.precision > 0
    notes = (Imprecise(settings.precision, error, len(cell.samples)),) if missed else ()
    others = (note for note in cell.notes if not isinstance(note, Imprecise))  # of fewer samples
    return {
        **ranges,
        "modes": found,
        "stopped": stopped,
        "notes": (*others, *notes),
        "iterations": tuple(
            replace(times, summary=summarize(times.seconds, "lower")) for times in cell.iterations
        ),
    }


def _better(cell: CellResult, part: TransferFigure | None = None) -> Better:
    """Returns whether higher or lower figures are better, for a cell or for one of its parts."""
    if cell.report is Report.HIDDEN:
        return "higher" if part is None else "lower"
    is_rate = part is not None and part.transfer > 0
    return "lower" if cell.report.is_latency and not is_rate else "higher"


def _stopped(cell: CellResult, error: float | None, settings: Settings) -> Stopped | None:
    if settings.samples is not None:
        return "samples"
    if error is not None and settings.precision > 0 and error <= settings.precision:
        return "precision"
    return "max-time" if spent(cell) >= settings.max_time else "noise"
