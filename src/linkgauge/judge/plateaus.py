"""Finds levels of a memory hierarchy: the plateaus of measured latencies over sizes. The CPU's
description of its caches is not used, because other virtual machines may occupy most of a cache. A
level spans a factor of about two in size or more, varies by a few percent, and is well above the
previous level. Points are assigned to levels so that the sum of these costs is least:

    a point of a level      ((log latency - log level) / TOLERANCE)², at most OUTLIER
    a point between levels  BETWEEN
    a level                 LEVEL

TLB misses cause small rises, which mostly stay below `APART`. A level that appears with
small pages but not with huge pages comes from address translation and is left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from statistics import median

from msgspec.structs import replace

from linkgauge.model.curves import Level, Levels
from linkgauge.model.documents.result import Result
from linkgauge.model.grouped import grouped
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Transfer

TOLERANCE = 0.13
"""The deviation of log latency at which a point costs as much in a level as between levels."""
BETWEEN = 1.0
OUTLIER = 1.1
"""A little more than BETWEEN, so that no level begins or ends with an outlier."""
LEVEL = 1.5
WIDTH = 0.9
"""The least width of a level, in octaves from its first to its last point."""
APART = 1.75
"""The least ratio of a level's latency to that of the level before. Second-level TLBs and page
walks that hit caches cost up to 1.7 times as much; the next cache costs 2.5 to 5 times as much (12
cycles after 4 or 5, 40 to 75 after 14)."""
EDGE = 0.33
"""The part of the way to the next level, in log latency, at which a level ends."""
ENDLESS = 1 << 40
LEAST = 8
"""The fewest sizes of a curve: a few chosen sizes show no levels."""

Point = tuple[int, float]
"""Bytes, and the seconds of an access."""


def levels_of(points: Iterable[Point]) -> tuple[Level, ...]:
    curve = sorted(point for point in points if point[0] > 0 and point[1] > 0)
    logs = [math.log(seconds) for _, seconds in curve]
    segments = _segments([math.log2(size) for size, _ in curve], logs)
    heights = [median(logs[first : last + 1]) for first, last in segments]
    found = []
    for number, (first, last) in enumerate(segments):
        end = None
        if number + 1 < len(segments):
            edge = heights[number] + EDGE * (heights[number + 1] - heights[number])
            beyond = range(last, segments[number + 1][0])
            end = max((at for at in beyond if max(logs[last : at + 1]) <= edge), default=last)
            end = curve[end][0]
        found.append(Level(number + 1, math.exp(heights[number]), curve[first][0], end))
    return tuple(found)


def _segments(sizes: Sequence[float], logs: Sequence[float]) -> list[tuple[int, int]]:
    candidates = [
        (first, last)
        for first in range(len(sizes))
        for last in range(first + 1, len(sizes))
        if sizes[last] - sizes[first] >= WIDTH
    ]
    best: list[tuple[float, float, tuple[int, int], int]] = []
    """Cost up to its end, height, candidate, and the one before it in its chain, or -1."""

    @cache
    def chains(first: int) -> list[tuple[float, int, float]]:
        """Returns what may precede a level that begins at point `first`, the cheapest first. A
        tuple has the cost, the index in `best` (-1: none), and the level's least log latency."""
        ended = (
            (spent + BETWEEN * (first - end - 1), number, below + math.log(APART))
            for number, (spent, below, (_, end), _) in enumerate(best)
            if end < first
        )
        return sorted([(BETWEEN * first, -1, -math.inf), *ended])

    for first, last in sorted(candidates, key=lambda one: one[1]):
        within = logs[first : last + 1]
        height = median(within)
        own = LEVEL + sum(min(((log - height) / TOLERANCE) ** 2, OUTLIER) for log in within)
        if own < BETWEEN * len(within):
            cost, before, _ = next(chain for chain in chains(first) if chain[2] <= height)
            best.append((round(cost + own, 9), height, (first, last), before))
    last_point = len(sizes) - 1
    costs = [spent + BETWEEN * (last_point - end) for spent, _, (_, end), _ in best]
    chosen: list[tuple[int, int]] = []
    at = min(range(len(best)), key=costs.__getitem__, default=-1)
    while at >= 0:
        _, _, segment, at = best[at]
        chosen.append(segment)
    return chosen[::-1]


def with_levels(result: Result) -> Result:
    """Returns the result with the memory levels of each curve, if it has latencies by size."""
    if not _is_curve(result):
        return result
    measured = [
        (c, c.transfers[0], c.summary.median) for c in result.cells if c.summary is not None
    ]
    chases = {cell.row: chase for cell, chase, _ in measured}
    rows = grouped((one.row, (by.bytes_moved(result.size), time)) for one, by, time in measured)
    found = {row: levels_of(points) for row, points in rows.items()}
    huge = {_ends(chases[row]): levels for row, levels in found.items()
            if chases[row].source.kind == "huge"}  # fmt: skip
    for row, levels in found.items():
        of_huge = huge.get(_ends(chases[row]))
        if of_huge and chases[row].source.kind == "base":
            found[row] = _shown_by_both(levels, of_huge)
    named = (Levels(row, levels) for row, levels in found.items() if levels)
    return replace(result, levels=tuple(named))


def _ends(chase: Transfer) -> tuple[Memory, Memory]:
    return chase.engine.owner, chase.source.place


def _shown_by_both(levels: Sequence[Level], others: Sequence[Level]) -> tuple[Level, ...]:
    kept = {max(levels, key=lambda one: _shared(one, other)) for other in others}
    ordered = [one for one in levels if one in kept and any(_shared(one, o) > 0 for o in others)]
    return tuple(replace(one, number=number) for number, one in enumerate(ordered, 1))


def _shared(one: Level, other: Level) -> float:
    most = min(one.most or ENDLESS, other.most or ENDLESS)
    return max(0.0, math.log2(most / max(one.least, other.least)))


def _is_curve(result: Result) -> bool:
    alone = all(c.does.follows_pointers and len(c.transfers) == 1 for c in result.cells)
    return result.sweep and alone and len({c.transfers[0].scale for c in result.cells}) >= LEAST
