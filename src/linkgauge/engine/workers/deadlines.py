"""Deadlines after which another process counts as lost. They apply to workers and ranks."""

from __future__ import annotations

from typing import NamedTuple

ANSWER_SECONDS, RATE = 30.0, 100e6
"""The most seconds for an answer or for the start of a cell, and the rate in bytes/s at which bytes
must move."""
TIMES_LONGEST = 20
LEAST_SECONDS = 10.0
"""The least limit of each later phase and each sample. The limit is a multiple of the warm-up or
the longest sample so far. It detects hangs; it is no estimate of the whole time."""
WORK_SETUP_SECONDS = 600.0
"""The additional seconds that an AI workload may take until it is warmed up. In this time weights
are drawn, and kernels may be compiled."""
SIGN_SECONDS = 2.0
"""The seconds in which a rank must give a sign of life."""
SETTLE_SECONDS = 20.0
"""The seconds in which ranks that wait for a lost rank must answer. This is longer than connections
may be silent."""
MOST_RANKS_PER_CPU = 8.0
"""The largest factor for all these limits if ranks share CPUs. The factor is the number of ranks
per CPU."""


class Deadlines(NamedTuple):
    """Deadlines in seconds. `slow` is the factor by which everything may take longer than usual.
    `limit` replaces the usual time for an answer."""

    slow: float = 1.0
    limit: float | None = None

    @classmethod
    def shared(cls, ranks_per_cpu: float, limit: float | None = None) -> Deadlines:
        return cls(min(max(ranks_per_cpu, 1.0), MOST_RANKS_PER_CPU), limit)

    def of_start(self, moved: int, more: float = 0.0) -> float:
        """Returns the seconds allowed to warm up work that moves `moved` bytes, plus `more`."""
        return self.slow * (ANSWER_SECONDS + more + moved / RATE)

    def of_answer(self, moved: int = 0) -> float:
        """Returns the seconds that a rank may take to answer while it moves `moved` bytes."""
        return self.of_start(moved) if self.limit is None else self.limit

    def of_step(self, longest: float) -> float:
        """Returns the seconds allowed for a phase or sample, by the `longest` so far."""
        return self.slow * max(LEAST_SECONDS, TIMES_LONGEST * longest)

    @property
    def of_sign(self) -> float:
        return self.slow * SIGN_SECONDS

    @property
    def of_settling(self) -> float:
        """The seconds in which ranks must answer after they waited for a lost rank."""
        return SETTLE_SECONDS if self.limit is None else self.limit + SIGN_SECONDS
