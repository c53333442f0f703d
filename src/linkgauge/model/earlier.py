"""What earlier runs of a machine tell of a run's cells: plain values, which the run keeps."""

from __future__ import annotations

import msgspec


class EarlierLoss(msgspec.Struct, frozen=True):
    """A cell that reaches less than it did.

    cell: Its number among all cells of the run, from 0.
    figure: The geometric mean of the earlier runs' figures, in its unit.
    share: The part of that which it reaches, as a fraction.
    """

    cell: int
    figure: float
    share: float


class Earlier(msgspec.Struct, frozen=True):
    """How a run's cells stand beside earlier runs.

    runs: How many earlier runs they are held against.
    since: How many later ones, right before this run, reached as little as it.
    lost: The cells that lost, by more than chance and a few percent.
    unknown: The cells, by number, of which these runs do not show whether they lost a tenth.
    changed: The facts of the machine that changed since, each as before and as it is.
    """

    runs: int
    since: int = 0
    lost: tuple[EarlierLoss, ...] = ()
    unknown: tuple[int, ...] = ()
    changed: dict[str, tuple[str | None, str | None]] = {}
