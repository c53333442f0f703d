"""A cell's figure of one sample, by the cell's report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from msgspec.structs import replace

from linkgauge.backends.protocol import MOST_LAPS, Group, Timing
from linkgauge.model.result import Definition
from linkgauge.model.transfer import Cell, Report

# The sustained rate of concurrent copies: each one's rate while all of them run.
#
# Bytes over the span from the first start to the last end depend on how long the slowest copy runs
# alone, and on how many loops a fixed delay is spread over; these rates depend on neither.

LAPS_TOGETHER = 3
"""Laps of the slowest copy that must fit into the time in which all run."""
STANDSTILL = 2.0
"""A lap longer than the copy's other laps by this factor means that the copy stands still."""
LEAST_OVERLAP = 0.1
"""Fraction of the shortest copy: copies that overlap for less than this run one after another."""

LapTimes = Sequence[Sequence[float]]
"""For each copy, its start and the end of each of its laps, in seconds of one clock."""


def sustained(progress: LapTimes, amounts: Sequence[float]) -> tuple[float, ...] | None:
    """Each copy's rate while all copies run, in units of its `amounts` (of all its laps) per
    second; None if they never all run at once.

    The window is from the latest start to the earliest end. Laps within the window count, from the
    start of the first to the end of the last; a copy without such laps counts the part of its laps
    that overlaps the window. A copy whose overlapping lap takes much longer than its others stands
    still: it does not run, although it has begun.
    """
    if not progress:
        return None
    begin, end = max(own[0] for own in progress), min(own[-1] for own in progress)
    shortest = min(own[-1] - own[0] for own in progress)
    if end <= begin or end - begin < LEAST_OVERLAP * shortest:
        return None
    paces = [_laps_a_second(own, begin, end) for own in progress]
    rates = (
        amount / (len(own) - 1) * pace
        for own, amount, pace in zip(progress, amounts, paces, strict=True)
        if pace is not None
    )
    return None if None in paces else tuple(rates)


def _laps_a_second(times: Sequence[float], begin: float, end: float) -> float | None:
    laps = list(pairwise(times))
    within = [lap for lap in laps if begin <= lap[0] and lap[1] <= end]
    if within:
        return len(within) / (within[-1][1] - within[0][0])
    crossing = [lap for lap in laps if lap[0] < end and lap[1] > begin]
    others = [lap[1] - lap[0] for lap in laps if lap not in crossing]
    if others and max(lap[1] - lap[0] for lap in crossing) > STANDSTILL * median(others):
        return None
    overlaps = ((min(lap[1], end) - max(lap[0], begin)) / (lap[1] - lap[0]) for lap in crossing)
    return sum(overlaps) / (end - begin)


def marks_of(loops: int) -> int:
    """The number of laps these loops are cut into: the largest allowed divisor."""
    return next(laps for laps in range(min(loops, MOST_LAPS), 0, -1) if loops % laps == 0)


def marked_loops(loops: int, spread: float) -> int:
    """A number of loops that is at least `loops`, can be cut into laps, and lets several laps of
    the slowest copy, which takes `spread` times as long as the fastest, fit into the time of the
    fastest."""
    wanted = max(loops, math.ceil(LAPS_TOGETHER * spread))
    return wanted if wanted <= MOST_LAPS else math.ceil(wanted / MOST_LAPS) * MOST_LAPS


class TrackedGroup:
    """A group whose samples record each copy's progress: the laps are marks of one sample."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.wait = group.wait
        self.open = group.open
        self.close = group.close
        self.pace = replace(group.pace, laps=1, sustained=True)

    @property
    def most_loops(self) -> int:
        """A number that can be cut into laps."""
        most = self._group.most_loops
        return most if most <= MOST_LAPS else most // MOST_LAPS * MOST_LAPS

    def arm(self, loops: int, laps: int = 1) -> None:
        marks = marks_of(loops * laps)
        self._group.arm(loops * laps // marks, marks)


def headline(
    cell: Cell, size: int, timing: Timing, loops: int, definition: Definition | None = None
) -> float:
    """The bandwidth of one sample in bytes/s; that of a total follows this definition."""
    moved = [counted * loops for counted in cell.counted(size)]
    if cell.report.is_first:
        return moved[0] / timing.seconds[0]
    if not cell.report.is_total:
        return sum(own / each for own, each in zip(moved, timing.seconds, strict=True))
    rates = None
    if (definition or definition_of(cell, (timing,))) == "sustained":
        rates = sustained(timing.progress, moved)
    return sum(moved) / timing.span if rates is None else sum(rates)


def definition_of(cell: Cell, timings: Iterable[Timing]) -> Definition | None:
    """How a total's figures are computed, the same for all samples; None for any other report."""
    if not cell.report.is_total:
        return None
    if cell.report is Report.SPAN:
        return "span"
    alike = [1] * len(cell.transfers)
    together = all(sustained(timing.progress, alike) is not None for timing in timings)
    return "sustained" if together else "serial"
