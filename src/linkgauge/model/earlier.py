"""A comparison of a run's cells with earlier runs of the machine: plain values, which the run
keeps."""

from __future__ import annotations

import msgspec


class EarlierLoss(msgspec.Struct, frozen=True):
    """A cell that is worse than in earlier runs.

    cell: Its number among all cells of the run, from 0.
    figure: The geometric mean of the earlier runs' figures, in its unit.
    share: The share of that mean which it reaches, as a fraction."""

    cell: int
    figure: float
    share: float


class Earlier(msgspec.Struct, frozen=True):
    """The comparison of a run's cells with earlier runs.

    runs: The number of earlier runs that they are compared with.
    since: The number of runs right before this one that were as low as it.
    lost: The cells that are worse, by more than chance and a few percent.
    unknown: The numbers of cells for which these runs cannot show a loss of a tenth.
    changed: The facts of the machine that changed since then, each before and now."""

    runs: int
    since: int = 0
    lost: tuple[EarlierLoss, ...] = ()
    unknown: tuple[int, ...] = ()
    changed: dict[str, tuple[str | None, str | None]] = {}
