"""Merges a cell's repetitions: their samples, the headline figure, and its confidence interval."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import chain, zip_longest
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from linkgauge.model.documents.result import CellResult, RankTimes, Status, Stopped, TransferFigure
from linkgauge.model.joining import Known, joined
from linkgauge.model.notes import Imprecise, Note, NotRepeated
from linkgauge.model.recorded import RECORDED, BetweenRuns, path_kind
from linkgauge.model.settings import REPETITION_SECONDS, Settings
from linkgauge.model.stats.intervals import COVERAGE, Estimate, estimates, may_lead
from linkgauge.model.stats.modes import cut, groups, split
from linkgauge.model.stats.summary import Interval, Summary, relative_error, summarize
from linkgauge.model.transfer import Report
from linkgauge.model.units import Better

_UNWHOLE: tuple[Status, ...] = ("error", "timeout")


def merge(cells: Sequence[Sequence[CellResult]], settings: Settings) -> list[CellResult]:
    """Merges the repetitions of equivalent cells, which share their variance. Wrong bytes in any
    repetition fail the cell. A cell that ended in an error has no figures. A cell that is skipped
    in a later repetition keeps its earlier figures."""
    settings = settings.of(cells[0][0]) if cells else settings
    known: Known = {}
    whole = [_join(repetitions, known) for repetitions in cells]
    ranges = _estimated(whole, settings, None)
    return _each_once(whole, ranges, partial(_merged, settings=settings))


def _each_once(
    cells: Sequence[CellResult],
    ranges: Iterable[Sequence[Estimate | None]],
    fields: Callable[..., dict[str, Any]],
) -> list[CellResult]:
    made: dict[Hashable, dict[str, Any]] = {}
    found: list[CellResult] = []
    for cell, known in zip(cells, ranges, strict=True):
        shown = cell.samples_id, id(cell.parts), cell.notes
        if shown not in made:
            made[shown] = fields(cell, *known) if cell.samples else {}
        found.append(replace(cell, **made[shown]))
    return found


def _merged(cell: CellResult, *known: Estimate | None, settings: Settings) -> dict[str, Any]:
    figures = _figures(cell)
    cell = replace(cell, **figures)
    ranges = _ranges(cell, *known)
    cell = replace(cell, **ranges)
    error = relative_error(cell.summary)
    stopped: Stopped = "max-time" if spent(cell) >= settings.max_time else "noise"
    if settings.samples is not None:
        stopped = "samples"
    elif error is not None and settings.precision > 0 and error <= settings.precision:
        stopped = "precision"
    missed = stopped in ("max-time", "noise") and settings.precision > 0
    notes: list[Note] = [Imprecise(settings.precision, error, len(cell.samples))] if missed else []
    others = [note for note in cell.notes if not isinstance(note, Imprecise)]  # of fewer samples
    return figures | ranges | {"stopped": stopped, "notes": (*others, *notes)}


def spent(*repetitions: CellResult) -> float:
    """Returns the seconds that repetitions used, at least `REPETITION_SECONDS` for each."""
    seconds, count = 0.0, 0
    for one in repetitions:
        seconds, count = seconds + (one.seconds or 0.0), count + len(one.repetitions)
    return max(seconds, REPETITION_SECONDS * count)


def _join(repetitions: Sequence[CellResult], known: Known) -> CellResult:
    whole, skipped = list[CellResult](), list[NotRepeated]()
    for one in repetitions:
        if one.status in _UNWHOLE or len(repetitions) == 1:
            return one
        if one.status == "skip":
            skipped.append(NotRepeated(one.reason))
        else:
            whole.append(one)
    if not whole:
        return repetitions[0]
    found = joined(whole, known)
    wrong = next((one for one in whole if one.status == "fail"), whole[0])
    notes = tuple(dict.fromkeys((*found.notes, *skipped))) if skipped else found.notes
    return replace(found, status=wrong.status, reason=wrong.reason, kind=wrong.kind, notes=notes)


def with_ranges(
    cells: Sequence[CellResult], settings: Settings, known: BetweenRuns | None = None
) -> list[CellResult]:
    """Returns equivalent cells with confidence intervals from their samples. `known` says how much
    figures vary between earlier runs of the machine."""
    settings = settings.of(cells[0]) if cells else settings
    return _each_once(cells, _estimated(cells, settings, known), _ranges)


def _estimated(
    cells: Sequence[CellResult], settings: Settings, known: BetweenRuns | None
) -> Iterable[Sequence[Estimate | None]]:
    """Estimates the variation of each cell's figure, then of each part of the cell, pooled over all
    cells. If the user chose a fixed number of samples, estimates are None unless all cells were
    repeated."""
    if settings.samples is not None and any(len(cell.repetitions) == 1 for cell in cells):
        return [[None] * (1 + len(cell.parts)) for cell in cells]
    recorded, runs = None, None
    if cells and settings.simulation is None:  # simulated runs do not vary
        kind = path_kind(cells[0], cells[0].bytes)
        recorded, runs = RECORDED[kind], (known or {}).get(kind)
    rows = list[Sequence[Sequence[Sequence[float]]]]()
    for cell in cells:
        counts = tuple(map(sum, cell.repetitions))
        own = (cell.samples, *map(attrgetter("samples"), cell.parts))
        rows.append([tuple(filter(None, cut(samples, counts))) for samples in own])
    columns = zip_longest(*rows, fillvalue=())
    return zip(*[estimates(column, recorded, runs) for column in columns], strict=True)


def _ranges(cell: CellResult, known: Estimate | None, *parts: Estimate | None) -> dict[str, Any]:
    """Returns a cell's intervals. They cover both `modes` of its samples, unless one is rare."""
    gates = sum(map(attrgetter("gates"), cell.modes))
    times = len(cell.repetitions)
    levels = [mode.median for mode in cell.modes if may_lead(mode.gates / gates, times)]
    interval = known and Interval("repetitions", COVERAGE, known.degrees, known.pooled)
    summary = _ranged(cell.summary, known, *levels)
    found = list[TransferFigure]()
    for part, one in zip(cell.parts, parts, strict=False):
        found.append(replace(part, summary=_ranged(part.summary, one)))
    return {"summary": summary, "interval": interval, "parts": tuple(found)}


def _ranged(summary: Summary | None, known: Estimate | None, *levels: float) -> Summary | None:
    return summary and replace(summary, ci95=known and known.interval(summary.median, *levels))


def _figures(cell: CellResult) -> dict[str, Any]:
    gates = tuple(chain.from_iterable(cell.repetitions))
    border = split(cell.samples, gates, tuple(map(sum, cell.repetitions)))
    modes = () if border is None else groups(cell.samples, gates, border)
    summary = _summarized(cell.samples, _better(cell))
    if modes and summary is not None:
        summary = replace(summary, median=modes[0].median)
    parts, iterations = list[TransferFigure](), list[RankTimes]()
    for part in cell.parts:
        parts.append(replace(part, summary=_summarized(part.samples, _better(cell, part))))
    for times in cell.iterations:
        iterations.append(replace(times, summary=summarize(times.samples, "lower")))
    more = {"parts": tuple(parts), "iterations": tuple(iterations)}
    return {"modes": modes, "summary": summary, **more}


# The parts of equal cells may come in another order, and have the same samples.
_summarized = lru_cache(maxsize=64)(summarize)


def _better(cell: CellResult, part: TransferFigure | None = None) -> Better:
    if cell.report is Report.HIDDEN:
        return "higher" if part is None else "lower"
    is_rate = part is not None and part.transfer > 0
    return "lower" if cell.report.is_latency and not is_rate else "higher"
