"""What a cell's figure is compared with: the hardware's limits, and earlier runs."""

from __future__ import annotations

import msgspec

from linkgauge.model import shareable
from linkgauge.model.shareable import FileName, FreeText, Title, Version


class Expected(msgspec.Struct, frozen=True, gc=False):
    """The performance that the hardware should reach, in the result's unit.

    theoretical: The limit that cannot be exceeded (for a collective: by any ring); null if unknown.
    achievable: The figure that should be reached; null if unknown.
    because: The arithmetic behind the figures; empty if `text` refers to the arithmetic.
    text: The index of the arithmetic in the result's `texts`, from 0; null if `because` has it.
    measured: Whether the achievable figure comes from this run's own measurements.
    nominal: The figure to expect if all links run at their best rate; null if it is the one above.
    peers: How many comparable cells of this run gave the achievable figure; null if none did."""

    theoretical: float | None = None
    achievable: float | None = None
    because: shareable.FreeText = ""
    text: int | None = None
    measured: bool = False
    nominal: float | None = None
    peers: int | None = None

    @property
    def figure(self) -> float | None:
        return self.achievable or self.theoretical


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
    since: The number of runs right before this run that show the same loss.
    lost: The cells that are worse than before by more than chance and a few percent.
    unknown: The numbers of the cells whose earlier runs do not suffice to show a loss of 10 %.
    changed: The machine's facts that changed since the earlier runs: old and new values."""

    runs: int
    since: int = 0
    lost: tuple[EarlierLoss, ...] = ()
    unknown: tuple[int, ...] = ()
    changed: dict[Title, tuple[Version | None, Version | None]] = {}


class Waiver(msgspec.Struct, frozen=True):
    """A finding, or the figures of cells, that a person accepts up to a value.

    check: The id of the accepted check; empty for cells.
    cell: The pattern of the accepted cells, `benchmark [row, column]`; empty for a check.
    accept: The value up to which it is accepted, such as `>= 8 lanes`, or a severity.
    owner: Who accepts it.
    reason: Why it is accepted.
    until: The last day on which it is accepted (ISO 8601).
    part: The pattern of the parts that the waiver covers.
    host: The pattern of the hosts that the waiver covers.
    where: The file and the line that state the waiver."""

    check: FreeText
    cell: FreeText
    accept: FreeText
    owner: FreeText
    reason: FreeText
    until: FreeText
    part: FreeText = "*"
    host: FreeText = "*"
    where: FileName = ""

    def __str__(self) -> str:
        return f"until {self.until}, by {self.owner}: {self.reason} ({self.where})"
