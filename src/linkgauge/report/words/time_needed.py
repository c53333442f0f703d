"""Estimates the time budget with which a run reaches what it lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from linkgauge.engine.budget import FOR_PASSES, seconds_between
from linkgauge.engine.enough import VISITS
from linkgauge.engine.spending import setup_seconds
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.settings import VISIT_SECONDS
from linkgauge.model.stats.summary import relative_error

MOST_SECONDS = 3600.0
"""The longest time budget that is suggested. Where it takes more, more time is no help."""
ROOM = 3.0
"""The factor by which a variance that few visits show may be too small."""
SLOWER = 1.25
"""The factor by which the same visits may take longer in another run."""


def budget_needed(run: Run) -> str | None:
    """Returns the time budget with which a run like this one reaches all cells, and also the
    precision where all cells were reached: `3m`. Returns None if more time would be no help, or for
    a command without budgets."""
    if run.tool or run.command[1:2] not in ((), ("run",)):
        return None
    cells = [(result, cell) for result in run.results for cell in result.cells]
    visits = sum(len(cell.visits) for _, cell in cells)
    usual = sum(len(cell.visits) * _usual(result) for result, cell in cells)
    used = _used(run, [cell for _, cell in cells])
    if not visits or used is None:
        return None
    reaches = any(cell.kind == "budget" for _, cell in cells)
    needed = 0.0
    for result, cell in cells:
        if cell.kind == "budget":
            needed += VISITS * max(_usual(result), usual / visits)  # it may be no cheaper
        elif cell.visits:
            more = 1.0 if reaches else _times_more(cell, run)
            needed += max(VISITS, len(cell.visits) * more) * _usual(result)
    rest = max(0.0, run.budget.most - run.budget.measuring) if run.budget else 0.0
    asked = SLOWER * (needed * used / usual / FOR_PASSES + rest)
    return _rounded(asked) if asked <= MOST_SECONDS else None


def _usual(result: Result) -> float:
    """Returns about how long a visit of a cell takes, compared with other cells."""
    return VISIT_SECONDS + setup_seconds(result.size)


def _used(run: Run, cells: Sequence[CellResult]) -> float | None:
    """Returns the seconds that the visits of a run took, or None if that is unknown."""
    if run.simulated:
        return sum(max(VISIT_SECONDS * len(cell.visits), cell.seconds or 0.0) for cell in cells)
    if run.finished is None or run.resumed:
        return None
    return seconds_between(run.started, run.finished) or None


def _times_more(cell: CellResult, run: Run) -> float:
    """Returns how many times as many visits a cell needs for the asked precision. An interval gets
    narrower with the root of their number."""
    asked, error = run.settings.of(cell).precision, relative_error(cell.summary)
    if not asked or error is None or error <= asked:
        return 1.0
    return ROOM * (error / asked) ** 2


def _rounded(seconds: float) -> str:
    """Returns a duration as people type it, rounded up: `50s`, `3m`, `15m`."""
    if seconds <= 60:
        return f"{math.ceil(seconds / 10) * 10}s"
    step = 1 if seconds <= 600 else 5
    return f"{math.ceil(seconds / 60 / step) * step}m"
