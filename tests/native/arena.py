"""Guarded memory, expected contents and teams for the tests of the native core."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from linkgauge._native import (
    Job,
    Pattern,
    Team,
)

CPUS = sorted(os.sched_getaffinity(0))
GUARD = 256
LARGE = 100_000
PATTERNS = list(Pattern)

sizes = st.integers(1, LARGE) | st.integers(1, 600)
offsets = st.integers(0, 130)
seeds = st.integers(0, 2**64 - 1)
patterns = st.sampled_from(PATTERNS)
cpu_lists = st.lists(st.sampled_from(CPUS), min_size=1, max_size=5)
quick = settings()


class Arena:
    """Bytes between guards, at any alignment."""

    def __init__(self, size: int, offset: int, boundary: int = 1) -> None:
        """`offset` bytes behind a multiple of `boundary`."""
        self.whole = np.full(size + offset + boundary + 2 * GUARD, 0xA5, dtype=np.uint8)
        self.begin = GUARD + offset + -(self.whole.ctypes.data + GUARD) % boundary
        self.end = self.begin + size
        self.address = self.whole.ctypes.data + self.begin
        self.bytes = self.whole[self.begin : self.end]

    def guarded(self) -> bool:
        around = (self.whole[: self.begin], self.whole[self.end :])
        return all(bool((part == 0xA5).all()) for part in around)


def expected(size: int, seed: int, pattern: Pattern) -> np.ndarray:
    """Return the pattern by its definition, as bytes."""
    count = -(-size // 8)
    index = np.zeros(count, np.uint64) if pattern == Pattern.CONSTANT else np.arange(count)
    start = np.uint64(seed * 0xD1B54A32D192ED03 % 2**64)
    words = (index.astype(np.uint64) + start) * np.uint64(0x9E3779B97F4A7C15)
    words ^= words >> np.uint64(29)
    if pattern == Pattern.SPLIT:
        even = np.arange(count) // 64 % 2 == 0
        words[even] = ~words[even]
    if pattern in RESULTS:
        words = RESULTS[pattern](numbers(0, count, start), numbers(size // 8, count, start))
    return words.view(np.uint8)[:size]


RESULTS = {
    Pattern.NUMBERS: lambda b, _: b,
    Pattern.SCALED: lambda b, _: 3 * b,
    Pattern.ADDED: lambda b, c: b + c,
    Pattern.TRIAD: lambda b, c: b + 3 * c,
}
"""What STREAM's operations make of the arrays b and c."""


def numbers(first: int, count: int, start: np.uint64) -> np.ndarray:
    """Numbers of the words from `first` on."""
    words = np.arange(first, first + count).astype(np.uint64) + start
    words *= np.uint64(0x9E3779B97F4A7C15)
    words ^= words >> np.uint64(29)
    return (words >> np.uint64(16)) / 2.0**48 + 1


def xor_of(values: np.ndarray) -> int:
    padded = np.zeros(-(-values.size // 8) * 8, np.uint8)
    padded[: values.size] = values
    return int(np.bitwise_xor.reduce(padded.view(np.uint64)))


@contextmanager
def team_of(*jobs: Job) -> Iterator[Team]:
    team = Team(jobs)
    try:
        yield team
    finally:
        team.close()


def sample(team: Team, loops: int = 1) -> list[int]:
    """Run one sample; return the checksums."""
    team.arm(loops)
    team.open()
    spans = team.wait()
    assert all(span.begin <= span.end for span in spans)
    return [span.checksum for span in spans]


def threads_alive() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def settles_at(count: int) -> bool:
    """Whether the thread count returns; the kernel may list a joined thread for a moment."""
    for _ in range(200):
        if threads_alive() <= count:
            return True
        time.sleep(0.01)
    return False
