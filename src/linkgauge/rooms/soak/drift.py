"""Finds out whether the figures of a repeated run went up or down over time."""

from __future__ import annotations

from typing import NamedTuple

from linkgauge.model.documents.soak import CellCourse, Soak
from linkgauge.model.stats.change_points import change_points, holding
from linkgauge.model.stats.changes import ChangedTo, changed_to

LEAST = 0.01


class LevelShift(NamedTuple):
    """A lasting change of a cell. `ratio` is the last level of the figures divided by the first
    level. `at` is the time of the first change in seconds."""

    cell: CellCourse
    ratio: float
    at: float
    direction: ChangedTo


def drifts(soak: Soak) -> tuple[LevelShift, ...]:
    """Returns the proven changes of at least LEAST, the worst first."""
    found = []
    for cell in soak.cells:
        places = [at for at, mean in enumerate(cell.means) if mean is not None]
        changes = change_points([mean for mean in cell.means if mean is not None])
        if changes:
            ratio = changes[-1].after / changes[0].before
            at = soak.slice * places[changes[0].at]
            drift = LevelShift(cell, ratio, at, changed_to(ratio, cell.better))
            found.append((min(change.p for change in changes), drift))
    most = holding([p for p, _ in found], len(soak.cells))
    proven = [one for p, one in found if p <= most and abs(one.ratio - 1) >= LEAST]
    return tuple(sorted(proven, key=lambda one: (one.direction == "better", -abs(one.ratio - 1))))
