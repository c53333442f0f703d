"""Merges a cell's repetitions: their samples, the headline figure, and its confidence interval."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import chain, zip_longest
from typing import Any

from msgspec.structs import replace

from linkgauge.model.documents.result import CellResult, Status, Stopped, TransferFigure
from linkgauge.model.joining import Known, joined
from linkgauge.model.notes import Imprecise, NotRepeated
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
    whole = [_join([*map(_with_gates, repetitions)], known) for repetitions in cells]
    found = with_ranges(_each_once(whole, _figures), settings)
    return _each_once(found, partial(_conclusion, settings=settings))


def _each_once(
    cells: Sequence[CellResult], fields: Callable[[CellResult], dict[str, Any]]
) -> list[CellResult]:
    made: dict[Hashable, dict[str, Any]] = {}
    for cell in cells:
        if (shown := _shown(cell)) not in made:
            made[shown] = fields(cell) if cell.samples else {}
    return [replace(cell, **made[_shown(cell)]) for cell in cells]


def _shown(cell: CellResult) -> Hashable:
    return cell.samples_id, id(cell.parts), cell.notes


def spent(*repetitions: CellResult) -> float:
    """Returns the seconds that repetitions used, at least `REPETITION_SECONDS` for each."""
    seconds = sum(repetition.seconds or 0.0 for repetition in repetitions)
    return max(
        seconds, REPETITION_SECONDS * sum(len(repetition.repetitions) for repetition in repetitions)
    )


def _with_gates(repetition: CellResult) -> CellResult:
    """Adds the gates (samples per start signal) that old journals lack, with one sample each."""
    if repetition.repetitions or not repetition.samples:
        return repetition
    return replace(repetition, repetitions=((1,) * len(repetition.samples),))


def _join(repetitions: Sequence[CellResult], known: Known) -> CellResult:
    ended = next((repetition for repetition in repetitions if repetition.status in _UNWHOLE), None)
    whole = [repetition for repetition in repetitions if repetition.status != "skip"]
    if ended is not None or len(repetitions) == 1 or not whole:
        return ended or repetitions[0]
    found = joined(whole, known)
    wrong = next((repetition for repetition in whole if repetition.status == "fail"), whole[0])
    skipped = [
        NotRepeated(repetition.reason) for repetition in repetitions if repetition.status == "skip"
    ]
    notes = tuple(dict.fromkeys((*found.notes, *skipped))) if skipped else found.notes
    return replace(found, status=wrong.status, reason=wrong.reason, kind=wrong.kind, notes=notes)


def with_ranges(
    cells: Sequence[CellResult], settings: Settings, known: BetweenRuns | None = None
) -> list[CellResult]:
    """Returns equivalent cells with confidence intervals from their samples. `known` says how much
    figures vary between earlier runs of the machine."""
    settings = settings.of(cells[0]) if cells else settings
    found = dict(zip(map(_shown, cells), _estimated(cells, settings, known), strict=True))
    return _each_once(cells, lambda cell: _ranges(cell, *found[_shown(cell)]))


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
    samples = ((cell.samples, *(part.samples for part in cell.parts)) for cell in cells)
    columns = (
        [
            [part for part in cut(own, map(sum, cell.repetitions)) if part]
            for cell, own in zip(cells, column, strict=True)
        ]
        for column in zip_longest(*samples, fillvalue=())
    )
    return zip(*(estimates(column, recorded, runs) for column in columns), strict=True)


def _ranges(cell: CellResult, known: Estimate | None, *parts: Estimate | None) -> dict[str, Any]:
    """Returns a cell's intervals. They cover both `modes` of its samples, unless one is rare."""
    gates = sum(mode.gates for mode in cell.modes)
    levels = [
        mode.median for mode in cell.modes if may_lead(mode.gates / gates, len(cell.repetitions))
    ]
    return {
        "summary": _ranged(cell.summary, known, *levels),
        "interval": known and Interval("repetitions", COVERAGE, known.degrees, known.pooled),
        "parts": tuple(
            replace(part, summary=_ranged(part.summary, one))
            for part, one in zip(cell.parts, parts, strict=False)
        ),
    }


def _ranged(summary: Summary | None, known: Estimate | None, *levels: float) -> Summary | None:
    return summary and replace(summary, ci95=known and known.interval(summary.median, *levels))


def _figures(cell: CellResult) -> dict[str, Any]:
    gates = tuple(chain.from_iterable(cell.repetitions))
    border = split(cell.samples, gates, tuple(map(sum, cell.repetitions)))
    modes = () if border is None else groups(cell.samples, gates, border)
    summary = _summarized(cell.samples, _better(cell))
    if modes and summary is not None:
        summary = replace(summary, median=modes[0].median)
    return {
        "modes": modes,
        "summary": summary,
        "parts": tuple(
            replace(part, summary=_summarized(part.samples, _better(cell, part)))
            for part in cell.parts
        ),
        "iterations": tuple(
            replace(times, summary=summarize(times.samples, "lower")) for times in cell.iterations
        ),
    }


# The parts of equal cells may come in another order, and have the same samples.
_summarized = lru_cache(maxsize=64)(summarize)


def _conclusion(cell: CellResult, settings: Settings) -> dict[str, Any]:
    error = relative_error(cell.summary)
    stopped: Stopped = "max-time" if spent(cell) >= settings.max_time else "noise"
    if settings.samples is not None:
        stopped = "samples"
    elif error is not None and settings.precision > 0 and error <= settings.precision:
        stopped = "precision"
    missed = stopped in ("max-time", "noise") and settings.precision > 0
    notes = (Imprecise(settings.precision, error, len(cell.samples)),) if missed else ()
    others = (note for note in cell.notes if not isinstance(note, Imprecise))  # of fewer samples
    return {"stopped": stopped, "notes": (*others, *notes)}


def _better(cell: CellResult, part: TransferFigure | None = None) -> Better:
    if cell.report is Report.HIDDEN:
        return "higher" if part is None else "lower"
    is_rate = part is not None and part.transfer > 0
    return "lower" if cell.report.is_latency and not is_rate else "higher"
