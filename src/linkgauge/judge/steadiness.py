"""Samples that scatter, and samples that stand out: which part do the unsteady cells share?

Spikes (a stall now and then) and scatter (every sample varies) are told apart by what remains
without the spikes: after a stall, the samples around it are as steady as any other cell's.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from linkgauge.model.statistics import LEAST_SAMPLES, deviation, slow_percentile

from .cases import Case, named, timed_cases_of
from .causes import Blame, Cause, Strength, causes, fewest, remembered, suspects
from .findings import Evidence, Finding
from .remedies import BUSIEST, kernel_log
from .vendor import tools

_SPIKE = 0.08
"""A sample that lasts longer than the others by this part may be a spike …"""
_SIGMAS = 7.0
"""… if it does so by as many standard deviations of these others, or of the machine's noise."""
_MOST_SPIKES = 0.45
"""Part of the samples: more are no spikes, but what the cell is like."""
SCATTER = 0.035
"""Relative standard deviation from which samples scatter: a quiet machine has 0.1 to 2 %, and a
deviation of few samples errs by a third."""
_MORE = 1.7
"""How many times that of the other cells it must be."""
_CLEAR = 4.0
"""How many times as much cells must scatter with their spikes as without, where these do, too."""
_NOISE = 0.02
"""Noise of a machine where nothing untouched is there to compare with."""


class Steadiness(msgspec.Struct, frozen=True, eq=False):
    """A cell's samples as times relative to their median: those that stand out, by lasting more
    than `least`, and the variance of the others (`variance` of `degrees` + 1 samples)."""

    case: Case
    times: tuple[float, ...]
    least: float
    spikes: tuple[int, ...]
    variance: float
    degrees: int

    @property
    def seconds(self) -> float | None:
        """How long a sample lasts; of a latency nothing tells."""
        cell, result = self.case.cell, self.case.result
        if result.better == "lower" or not (cell.bytes and cell.loops):
            return None
        return cell.bytes * cell.loops * statistics.median(self.case.times)


def _steadiness(evidence: Evidence) -> list[Steadiness]:
    relative: list[tuple[Case, tuple[float, ...]]] = []
    for case in timed_cases_of(evidence):
        times = case.times
        if case.cell.status in ("pass", "fail") and len(times) >= LEAST_SAMPLES:
            middle = statistics.median(times)
            relative.append((case, tuple(time / middle for time in times)))
    if not relative:
        return []
    usual = statistics.median(_usual(times) for _, times in relative)
    return [_split(case, times, usual) for case, times in relative]


def _usual(times: Sequence[float]) -> float:
    """A deviation that no spike moves: 1.4826 times the median distance from 1."""
    return 1.4826 * statistics.median(abs(time - 1) for time in times)


def _split(case: Case, times: tuple[float, ...], usual: float) -> Steadiness:
    least, most = _spiky(times, min(usual, _NOISE))
    spikes = tuple(place for place, time in enumerate(times) if time > least)
    if len(spikes) > most:
        spikes = ()
    rest = [time for place, time in enumerate(times) if place not in spikes]
    return Steadiness(case, times, least, spikes, deviation(rest) ** 2, len(rest) - 1)


def _spiky(times: Sequence[float], usual: float) -> tuple[float, int]:
    """From where on samples stand out from the rest, and how many may: as many as stand apart from
    all the others by these others' own deviation, of logarithms."""
    logs = sorted(map(math.log, times))
    most = int(_MOST_SPIKES * len(logs))
    least = _apart(logs, usual)
    for count in range(most, 0, -1) if logs[-1] - logs[0] > _SPIKE else ():
        bound = _apart(logs[:-count], usual)
        if logs[-count] > bound:
            least = bound
            break
    return math.exp(least), most


def _apart(logs: Sequence[float], usual: float) -> float:
    return statistics.fmean(logs) + max(_SPIKE, _SIGMAS * max(deviation(logs), usual))


def _pooled(cells: Sequence[Steadiness]) -> float:
    """Standard deviation of all their samples but the spikes; 0 of none."""
    degrees = sum(cell.degrees for cell in cells) or 1
    return math.sqrt(sum(cell.variance * cell.degrees for cell in cells) / degrees)


def check_stalls(evidence: Evidence) -> Iterator[Finding]:
    """Now and then a sample lasts much longer, from some cell on."""
    cells = _steadiness(evidence)
    bad = [cell for cell in cells if cell.spikes]
    if not bad:
        return
    longest, first = _longest(bad), min(cell.case.number for cell in bad)
    quiet = [cell for cell in cells if not cell.spikes and _would_show(cell, longest)]
    if not _are_stalls(bad, [cell for cell in quiet if cell.case.number > first]):
        return
    strengths = (
        Strength({cell.case: lost for cell in bad if (lost := _lost(cell))}),
        Strength({cell.case: len(cell.spikes) for cell in bad}, slack=1.0),
    )
    blamed, _ = causes(
        [cell.case for cell in bad], [cell.case for cell in quiet], strengths=strengths
    )
    by_case = {cell.case: cell for cell in cells}
    found = [
        (cause.blame.part, cause.blame.doubt, [by_case[case] for case in cause.cases])
        for cause in blamed
        if len(cause.cases) > 1 and _is_often(cause, quiet)
    ]
    if not found and len(bad) >= _LEAST_SPIKY * len(cells):
        found = [(_worst(bad).case.name, "", bad)]
    for subject, doubt, struck in found:
        yield _stall(subject, doubt, struck, len(cells))


def _is_often(cause: Cause, quiet: Sequence[Steadiness]) -> bool:
    """Whether half of the cells that touch the part have spikes, from the first one on."""
    first = min(case.number for case in cause.cases)
    calm = [cell for cell in quiet
            if cause.blame.part in cell.case.touched and cell.case.number > first]  # fmt: skip
    return len(cause.cases) >= len(calm)


def _worst(bad: Sequence[Steadiness]) -> Steadiness:
    return max(bad, key=lambda cell: max(cell.times))


def _stall(subject: str, doubt: str, bad: Sequence[Steadiness], count: int) -> Finding:
    worst = _worst(bad)
    name = worst.case.name
    found = (
        f"samples stand out in {len(bad)} of {count} cells: {name} has {len(worst.spikes)} of "
        f"{len(worst.times)}, the longest lasts {max(worst.times):.2f} times the median"
        f"{_period(worst)}, its slow_p99 is {_slow_p99(worst.case):.0%} of the median{doubt}"
    )
    why = "a program that waits for its slowest transfer waits for these; the median hides them"
    remedy = (
        "# Look for monitoring that polls the device, interrupts, CPU steal, or a retraining link:",
        kernel_log("aer", "pciehp", "xid"),
        BUSIEST,
    )
    cells = named(cell.case for cell in bad)
    return Finding("stall", "warn", subject, found, why, remedy, cells)


_LEAST_SPIKY = 0.05
"""Part of a run's cells with a spike that is more than chance on a machine that others use, too,
where no part is touched by most of them."""


def _slow_p99(case: Case) -> float:
    """The figure that 99 % of the samples reach, relative to the median."""
    ordered = sorted(case.cell.samples)
    return slow_percentile(ordered, 99, case.result.better) / statistics.median(ordered)


def _lost(cell: Steadiness) -> float | None:
    """Seconds by which the longest sample is longer than the middle one."""
    return (max(cell.times) - 1) * cell.seconds if cell.seconds else None


def _longest(bad: Sequence[Steadiness]) -> float | None:
    """Seconds that the spikes take: the middle of what the longest of each cell does."""
    lost = [seconds for cell in bad if (seconds := _lost(cell))]
    return statistics.median(lost) if lost else None


def _would_show(cell: Steadiness, stall: float | None) -> bool:
    """Whether so many seconds more would stand out: in a sample that lasts long they do not, and
    where more samples last as long than spikes may be, they do not stand out either."""
    if stall is None or cell.seconds is None:
        return True
    return 1 + stall / cell.seconds > max(cell.least, 2 * max(cell.times) - 1)


def _are_stalls(bad: Sequence[Steadiness], calm: Sequence[Steadiness]) -> bool:
    """More than one, and without the spikes as steady as the others are."""
    if len(bad) < 2:
        return False
    whole = math.sqrt(statistics.fmean(deviation(cell.times) ** 2 for cell in bad))
    rest = _pooled(bad)
    usual = max(_pooled(calm), _NOISE / 4)
    return whole > 2 * rest and (rest < max(_MORE * usual, SCATTER) or whole > _CLEAR * rest)


def _period(cell: Steadiness) -> str:
    """How far apart they come, where that is regular."""
    gaps = {later - earlier for earlier, later in zip(cell.spikes, cell.spikes[1:], strict=False)}
    return f", every {gaps.pop()} samples" if len(gaps) == 1 else ""


def check_scatter(evidence: Evidence) -> Iterator[Finding]:
    """Samples of some cells vary much more than those of the others."""
    cells = _steadiness(evidence)
    bad = [cell for cell in cells if math.sqrt(cell.variance) > SCATTER]
    if len(bad) < 2:
        return

    def loss(shaken: tuple[_Shaken, ...]) -> float:
        """Minus the logarithm of the likelihood: variances of what shakes a cell add up. How quiet
        the quiet ones are (links of one kind more than of another) says nothing: each counts as if
        it had the noise that any machine may have as well."""
        groups: defaultdict[tuple[bool, ...], list[Steadiness]] = defaultdict(list)
        for cell in cells:
            groups[True, *(each.strikes(cell) for each in shaken)].append(cell)
        found = {
            parts: (_pooled(group) ** 2 + _NOISE**2, sum(cell.degrees for cell in group))
            for parts, group in groups.items()
        }
        return sum(_SCATTERING + bool(each.since) for each in shaken) + sum(
            degrees * (math.log(expected) + variance / expected - 1) / 2
            for (variance, degrees), expected in zip(
                found.values(), _sums_of_parts(found), strict=True
            )
        )

    blames = suspects([cell.case for cell in bad], [cell.case for cell in cells])
    firsts = {
        blame: min(cell.case.number for cell in bad if blame.part in cell.case.touched)
        for blame in blames
    }
    candidates = [
        _Shaken(blame, since) for blame, first in firsts.items() for since in sorted({0, first})
    ]
    chosen = fewest(candidates, remembered(loss))
    outside = [cell for cell in cells if not any(each.strikes(cell) for each in chosen)]
    usual = _pooled(outside) if outside else _NOISE
    for one in chosen:
        inside = [cell for cell in cells if one.strikes(cell)]
        alone = [cell for cell in inside
                 if not any(each.strikes(cell) for each in chosen if each != one)]  # fmt: skip
        scatter = _pooled(alone or inside)
        if scatter >= max(SCATTER, _MORE * usual):
            yield _scatter(one.blame, alone or inside, scatter, usual, evidence)


def _sums_of_parts(found: Mapping[tuple[bool, ...], tuple[float, int]]) -> list[float]:
    """The variance of each group by its parts: what every part adds, never less than nothing, by
    least squares. Groups are given by which parts they have, with their variance and its degrees of
    freedom."""
    groups = [(parts, v, degrees / v**2) for parts, (v, degrees) in found.items()]
    added = [min(v for _, v, _ in groups), *(0.0 for _ in groups[0][0][1:])]
    for _ in range(_ROUNDS):
        for place in range(len(added)):
            others = [(v - _sum(added, parts) + added[place], w) for parts, v, w in groups
                      if parts[place]]  # fmt: skip
            weight = sum(w for _, w in others)
            if weight:
                added[place] = max(0.0, sum(left * w for left, w in others) / weight)
    return [max(_sum(added, parts), _NOISE**2) for parts, _, _ in groups]


def _sum(added: Sequence[float], parts: tuple[bool, ...]) -> float:
    return sum(one for one, has in zip(added, parts, strict=True) if has)


class _Shaken(msgspec.Struct, frozen=True):
    """A part whose cells scatter, `since` the cell of that number."""

    blame: Blame
    since: int

    def strikes(self, cell: Steadiness) -> bool:
        return self.blame.part in cell.case.touched and cell.case.number >= self.since


_ROUNDS = 20
"""Rounds of the least squares, one part at a time."""
_SCATTERING = 8.0
"""What it costs to blame a part, as a logarithm of likelihood: one in 3000."""


def _scatter(
    blame: Blame, inside: Sequence[Steadiness], scatter: float, usual: float, evidence: Evidence
) -> Finding:
    touching = "1 cell that touches" if len(inside) == 1 else f"{len(inside)} cells that touch"
    found = (
        f"samples of {touching} it vary by {scatter:.1%}, those of other cells "
        f"by {usual:.1%}{blame.doubt}"
    )
    why = "something else uses or disturbs the part, so its figures are less certain"
    clocks = [f"{tool}  # look for changing clocks" for tool in tools(evidence, "state")]
    remedy = (*tools(evidence, "users"), BUSIEST, *clocks)
    shaken = named(cell.case for cell in inside)
    return Finding("scatter", "warn", blame.part, found, why, remedy, shaken)


CHECKS = (check_stalls, check_scatter)
