"""How long one process waits for another before it takes that one for lost: for a worker as its
cell proceeds, and for a rank of several."""

from __future__ import annotations

from typing import NamedTuple

ANSWER_SECONDS, RATE = 30.0, 100e6
"""An answer, or a cell's start, takes at most so long, and its bytes at this rate (bytes/s)."""
TIMES_LONGEST = 20
LEAST_SECONDS = 10.0
"""Limit of each later phase and each sample: a multiple of the warm-up or the longest sample so
far, and no less than this. It detects hangs, and does not estimate the whole."""
SIGN_SECONDS = 2.0
"""What a rank has to give a sign of life."""
SETTLE_SECONDS = 20.0
"""What those have to answer that wait for a rank that is gone: longer than connections may be
silent."""
MOST_RANKS_PER_CPU = 8.0
"""Where ranks share CPUs, all of this takes as many times as long as there are ranks to a CPU; at
most so many."""


class Patience(NamedTuple):
    """Where all takes `slow` times as long as usual; `limit` (seconds) replaces the usual time of
    an answer, if given. All results are seconds."""

    slow: float = 1.0
    limit: float | None = None

    @classmethod
    def shared(cls, ranks_per_cpu: float, limit: float | None = None) -> Patience:
        """Where there are `ranks_per_cpu` ranks to a CPU."""
        return cls(min(max(ranks_per_cpu, 1.0), MOST_RANKS_PER_CPU), limit)

    def of_start(self, moved: int, more: float = 0.0) -> float:
        """How long work may take until it is warmed up that moves so many bytes, and may take so
        many seconds `more`."""
        return self.slow * (ANSWER_SECONDS + more + moved / RATE)

    def of_answer(self, moved: int = 0) -> float:
        """How long a rank may say nothing while it moves so many bytes."""
        return self.of_start(moved) if self.limit is None else self.limit

    def of_step(self, longest: float) -> float:
        """How long a phase or a sample may take if the longest so far took so long."""
        return self.slow * max(LEAST_SECONDS, TIMES_LONGEST * longest)

    @property
    def of_sign(self) -> float:
        """How long it may take to give a sign of life once it is asked for one."""
        return self.slow * SIGN_SECONDS

    @property
    def of_settling(self) -> float:
        """What those have to answer that wait for a rank that is gone."""
        return SETTLE_SECONDS if self.limit is None else self.limit + SIGN_SECONDS
