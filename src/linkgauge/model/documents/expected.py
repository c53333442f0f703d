"""The performance that the hardware should reach in a cell."""

from __future__ import annotations

import msgspec

from linkgauge.model import shareable


class Expected(msgspec.Struct, frozen=True, gc=False):
    """The performance that the hardware should reach, in the result's unit.

    theoretical: The limit that cannot be exceeded (for a collective: by any ring); null if unknown.
    achievable: The figure that should be reached; null if unknown.
    because: The arithmetic behind the figures; empty if `text` refers to the arithmetic.
    text: The index of the arithmetic in the result's `texts`, from 0; null if `because` has it.
    measured: Whether the achievable figure comes from this run's own measurements.
    nominal: The figure to expect with all links at their best rate; null if the same as expected.
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
