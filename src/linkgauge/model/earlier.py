"""The comparison of a run's cells with earlier runs of the machine. The run's file contains it."""

from __future__ import annotations

import msgspec

from linkgauge.model.shareable import Title, Version


class EarlierLoss(msgspec.Struct, frozen=True):
    """A cell that is worse than in earlier runs.

    cell: The cell's number among all cells of the run, from 0.
    figure: The geometric mean of the earlier runs' figures, in the cell's unit.
    share: The cell's figure as a fraction of the earlier runs' mean."""

    cell: int
    figure: float
    share: float


class Earlier(msgspec.Struct, frozen=True):
    """The comparison of a run's cells with earlier runs.

    runs: The number of earlier runs in the comparison.
    since: The number of runs right before this run that were as low as this run.
    lost: The cells that are worse than before by more than chance and a few percent.
    unknown: The numbers of the cells whose earlier runs do not suffice to show a loss of 10 %.
    changed: The machine's facts that changed since those runs, with their old and new values."""

    runs: int
    since: int = 0
    lost: tuple[EarlierLoss, ...] = ()
    unknown: tuple[int, ...] = ()
    changed: dict[Title, tuple[Version | None, Version | None]] = {}
