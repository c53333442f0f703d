"""Says which figures are less precise than was asked for."""

from __future__ import annotations

import math

from linkgauge.model.documents.result import CellResult
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import relative_error

_CUT_SHORT = ("max-time", "noise", "budget")
"""Why sampling stopped, if not because the figure was precise or the number of samples was set."""


def shortfall(cell: CellResult, settings: Settings) -> float | None:
    """Returns how far the interval of a figure reaches from it, as a fraction, if it missed the
    precision that was asked for. This is infinite for a figure without an interval. Returns None if
    the figure is precise enough, or if no precision was asked for, as in a soak."""
    asked = settings.of(cell).precision
    if settings.soak is not None or not asked or cell.stopped not in _CUT_SHORT:
        return None
    error = relative_error(cell.summary)
    if error is None:
        return math.inf
    return error if error > asked else None
