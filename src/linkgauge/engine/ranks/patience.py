"""How long ranks wait for each other before one is called silent: the same in both directions."""

from __future__ import annotations

from typing import NamedTuple

PATIENCE, RATE = 30.0, 100e6
"""An answer takes at most so long, and its bytes at this rate (bytes/s)."""
SIGN_SECONDS = 2.0
"""What a rank has to give a sign of life."""
SETTLE_SECONDS = 20.0
"""What those have to answer that wait for a rank that is gone: longer than connections may be
silent."""
NO_SIGN = "gives no sign of life"
CROWDED = 8.0
"""Where ranks share CPUs, all of this takes as many times as long as there are ranks to a CPU; at
most so many."""


class Patience(NamedTuple):
    """Where there are `crowd` ranks to a CPU; `limit` (seconds) replaces the usual time of an
    answer, if given. All results are seconds."""

    crowd: float = 1.0
    limit: float | None = None

    @property
    def slow(self) -> float:
        """How many times as long everything takes as on CPUs of one's own."""
        return min(max(self.crowd, 1.0), CROWDED)

    def of_answer(self, moved: int = 0) -> float:
        """How long a rank may say nothing while it moves so many bytes."""
        if self.limit is not None:
            return self.limit
        return self.slow * (PATIENCE + moved / RATE)

    @property
    def of_sign(self) -> float:
        """How long it may take to give a sign of life once it is asked for one."""
        return self.slow * SIGN_SECONDS

    @property
    def of_settling(self) -> float:
        """What those have to answer that wait for a rank that is gone."""
        return SETTLE_SECONDS if self.limit is None else self.limit + SIGN_SECONDS
