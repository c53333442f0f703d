"""Merges the visits of a cell into one result: all samples, the headline figure, and the interval
for the figure of another run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import Any

from msgspec.structs import replace

from linkgauge.model.documents.result import (
    CellResult,
    Status,
    Stopped,
    TransferFigure,
)
from linkgauge.model.joining import Known, joined
from linkgauge.model.notes import Imprecise, NotRevisited
from linkgauge.model.settings import VISIT_SECONDS, Settings
from linkgauge.model.stats.intervals import COVERAGE, Estimate, estimates
from linkgauge.model.stats.modes import cut, groups, split
from linkgauge.model.stats.summary import (
    Interval,
    Summary,
    median_interval,
    relative_error,
    summarize,
)
from linkgauge.model.transfer import Report, Transfer
from linkgauge.model.units import Better

# How often intervals were shown to contain the figure of another run.
#
# Intervals are formed to contain it 95 times in 100. Where fresh processes confirmed that, this is
# what an interval states; where they did not, because a busy host varies more between runs than
# within one, it states the coverage they showed (bench/interval_coverage.py; tables in
# docs/intervals.md).

_HOST_THREADS = 51 / 72
_OPENCL = 64 / 72
_HOST_LATENCY = 26 / 48
_HOST_BY_DEVICES = 34 / 48
_DEVICE_LATENCY = 61 / 84
"""The share of intervals that held: 24 runs or more of each cell, on the machine with the lowest
coverage."""


def proven_coverage(transfers: Sequence[Transfer], report: Report, *, simulated: bool) -> float:
    """Returns the share of other runs' figures that this kind of cell's intervals were shown to
    contain. For a simulated machine it is `COVERAGE`."""
    if simulated:
        return COVERAGE
    owners = {transfer.engine.owner.backend for transfer in transfers}
    kinds = {transfer.engine.kind for transfer in transfers}
    crosses = any(memory.is_host for transfer in transfers for memory in transfer.memories)
    found = [COVERAGE]
    if "cpu" in kinds:
        found.append(_HOST_THREADS)
    if "opencl" in owners:
        found.append(_OPENCL)
    elif crosses and kinds != {"cpu"}:
        found.append(_HOST_LATENCY if report.is_latency else _HOST_BY_DEVICES)
    elif report.is_latency:
        found.append(_DEVICE_LATENCY)
    return round(min(found), 2)


Summed = Callable[[tuple[float, ...], Better], Summary | None]
"""A function that returns the statistics of samples, each time the same value for equal samples."""

_UNWHOLE: tuple[Status, ...] = ("error", "timeout")


def merge(cells: Sequence[Sequence[CellResult]], settings: Settings) -> list[CellResult]:
    """Merges the visits of each cell. The cells must be similar, because they share their variance.
    A merged cell may stand for its only visit. A cell that ended in an error has no figures. Wrong
    bytes in any visit fail the cell. A cell that was skipped in a later visit keeps the figures of
    the earlier visits."""
    settings = settings.of(cells[0][0]) if cells else settings
    gated = [[_with_gates(visit) for visit in visits] for visits in cells]
    known_fields: Known = {}
    whole = [_join(visits, known_fields) for visits in gated]
    shown = list(map(_shown, whole))
    unlike = dict(zip(shown, whole, strict=True))
    borders = {
        of: split(cell.samples, _gates(cell), tuple(map(sum, cell.visits)))
        for of, cell in unlike.items()
    }
    counted = {of: _counted(cell, borders[of]) for of, cell in unlike.items()}
    # A fixed number of samples means one visit, which shows nothing about variation between visits.
    varies = settings.samples is None
    known = estimates([counted[of] for of in shown]) if varies else [None] * len(whole)
    parts: Sequence[Sequence[Estimate | None]]
    parts = _part_estimates(whole) if varies else [[None] * len(cell.parts) for cell in whole]
    estimated = dict(zip(shown, zip(known, parts, strict=True), strict=True))
    # The parts of alike cells may come in another order, and have the same samples.
    summed = cache(summarize)
    figures = {
        of: _figures(cell, borders[of], counted[of], *estimated[of], settings, summed)
        for of, cell in unlike.items()
        if cell.samples
    }
    return [
        replace(cell, **figures[of]) if of in figures else cell
        for of, cell in zip(shown, whole, strict=True)
    ]


def _shown(cell: CellResult) -> Hashable:
    """Identifies what a cell's figures are computed from."""
    return cell.drawn, id(cell.parts), cell.notes


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


def _join(visits: Sequence[CellResult], known: Known) -> CellResult:
    """Returns all visits of a cell as one, with the samples in order. Cells that share their visits
    share what is in `known`."""
    ended = next((visit for visit in visits if visit.status in _UNWHOLE), None)
    whole = [visit for visit in visits if visit.status != "skip"]
    if ended is not None or len(visits) == 1 or not whole:
        return ended or visits[0]
    found = joined(whole, known)
    wrong = next((visit for visit in whole if visit.status == "fail"), whole[0])
    skipped = [NotRevisited(visit.reason) for visit in visits if visit.status == "skip"]
    notes = tuple(dict.fromkeys((*found.notes, *skipped))) if skipped else found.notes
    return replace(found, status=wrong.status, reason=wrong.reason, kind=wrong.kind, notes=notes)


def _counted(cell: CellResult, border: float | None) -> list[Sequence[float]]:
    """Returns the samples that count for the headline, by visit. If samples fall into two groups,
    only the larger group counts."""
    by_visit = list(cut(cell.samples, map(sum, cell.visits)))
    if border is None:
        return by_visit
    larger, _ = groups(cell.samples, _gates(cell), border)
    is_high = larger.median > border
    kept = ([s for s in visit if (s > border) is is_high] for visit in by_visit)
    return [visit for visit in kept if visit]


def _part_estimates(cells: Sequence[CellResult]) -> list[list[Estimate | None]]:
    """Returns the estimates for the parts of each cell. Each part is pooled with the same part of
    the other cells."""
    count = max((len(cell.parts) for cell in cells), default=0)
    columns = [
        estimates(
            [
                list(cut(cell.parts[at].samples, map(sum, cell.visits))) if cell.parts else []
                for cell in cells
            ]
        )
        for at in range(count)
    ]
    return [list(row) for row in zip(*columns, strict=True)] or [[] for _ in cells]


def _figures(
    cell: CellResult,
    border: float | None,
    counted: Sequence[Sequence[float]],
    known: Estimate | None,
    parts: Sequence[Estimate | None],
    settings: Settings,
    summed: Summed,
) -> dict[str, Any]:
    """Returns the fields of a cell that are computed from its samples."""
    found = () if border is None else groups(cell.samples, _gates(cell), border)
    summary = _summary(summed(cell.samples, _better(cell)), known, counted)
    if found and summary is not None:
        summary = replace(summary, median=found[0].median)
    error = relative_error(summary)
    stopped = _stopped(cell, error, settings)
    missed = stopped in ("max-time", "noise") and settings.precision > 0
    notes = (Imprecise(settings.precision, error, len(cell.samples)),) if missed else ()
    others = (note for note in cell.notes if not isinstance(note, Imprecise))  # of fewer samples
    return {
        "summary": summary,
        "interval": _interval(cell, known, settings),
        "modes": found,
        "stopped": stopped,
        "notes": (*others, *notes),
        "parts": tuple(
            replace(
                part,
                summary=_summary(summed(part.samples, _better(cell, part)), one, [part.samples]),
            )
            for part, one in zip(cell.parts, parts, strict=True)
        ),
        "iterations": tuple(
            replace(times, summary=summarize(times.samples, "lower")) for times in cell.iterations
        ),
    }


def _better(cell: CellResult, part: TransferFigure | None = None) -> Better:
    """Returns whether higher or lower figures are better, for a cell or for one of its parts."""
    if cell.report is Report.HIDDEN:
        return "higher" if part is None else "lower"
    is_rate = part is not None and part.transfer > 0
    return "lower" if cell.report.is_latency and not is_rate else "higher"


def _summary(
    summary: Summary | None, known: Estimate | None, counted: Sequence[Sequence[float]]
) -> Summary | None:
    """Returns the statistics with the interval from the `known` estimate or, without one, from the
    `counted` samples."""
    if summary is None:
        return None
    if known is not None:
        return replace(summary, ci95=known.interval())
    return replace(summary, ci95=median_interval(sorted(s for visit in counted for s in visit)))


def _interval(cell: CellResult, known: Estimate | None, settings: Settings) -> Interval:
    if known is None:
        return Interval("samples")
    simulated = settings.simulation is not None
    coverage = proven_coverage(cell.transfers, cell.report, simulated=simulated)
    return Interval("visits", coverage, known.degrees, known.alike)


def _stopped(cell: CellResult, error: float | None, settings: Settings) -> Stopped | None:
    if settings.samples is not None:
        return "samples"
    if error is not None and settings.precision > 0 and error <= settings.precision:
        return "precision"
    return "max-time" if spent(cell) >= settings.max_time else "noise"
