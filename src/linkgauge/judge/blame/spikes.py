"""Splits a cell's samples into spikes (occasional stalls) and the other samples, which scatter."""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Hashable, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate

import msgspec
from msgspec.structs import replace

from linkgauge.judge.findings import Evidence
from linkgauge.model.stats.modes import cut
from linkgauge.model.stats.summary import deviation, robust_deviation

from .cases import Case, timed_cases_of
from .limits import ENOUGH, NOISE, SIGMAS, SPIKE

_FAR = 1e30
"""The largest ratio of figures that is computed with; figures of a damaged file may be farther
apart."""


class Steadiness(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A cell's samples as times relative to their median. `spikes` are the positions of stalls,
    `variance` is the variance of all other samples."""

    case: Case
    count: int
    longest: float
    spikes: tuple[int, ...]
    variance: float
    degrees: int

    @property
    def times(self) -> Sequence[float]:
        """Returns the relative times, computed at each call: a run may have millions of samples."""
        return _relative(self.case.times)

    @cached_property
    def repetitions(self) -> tuple[Sequence[int], ...]:
        """Returns the positions of the samples in each repetition of the cell."""
        places = range(self.count)
        repetitions = cut(places, map(sum, self.case.cell.repetitions))
        return tuple(filter(None, repetitions)) or (places,)

    @property
    def episodes(self) -> int:
        """Returns the number of spikes. Consecutive spikes in a repetition count once."""
        first, spikes = {repetition[0] for repetition in self.repetitions}, frozenset(self.spikes)
        return sum(place in first or place - 1 not in spikes for place in spikes)

    @cached_property
    def lasting(self) -> float:
        """Returns the standard deviation without spikes. If enough samples remain, the most varying
        repetition is left out, because a neighbour may have disturbed it."""
        times, spikes = self.times, frozenset(self.spikes)
        known = [math.sqrt(self.variance)]
        for repetition in self.repetitions:
            rest = [time for place, time in enumerate(times)
                    if place not in spikes and place not in repetition]  # fmt: skip
            if len(rest) >= ENOUGH:
                known.append(deviation(rest))
        return min(known)


@lru_cache(maxsize=1)
def steadiness_of(evidence: Evidence) -> tuple[Steadiness, ...]:
    measured = list[tuple[Hashable, Case]]()
    relative = dict[Hashable, Sequence[float]]()
    varying = list[float]()
    for case in timed_cases_of(evidence):
        key = id(case.result), case.cell.samples_id
        if case.cell.status in ("pass", "fail") and len(case.cell.samples) >= ENOUGH:
            measured.append((key, case))
            if key not in relative and (taken := case.times):
                relative[key] = times = _relative(taken)
                varying.append(robust_deviation(abs(time - 1) for time in times))
    usual = statistics.median(varying) if varying else 0.0
    known, found = dict[Hashable, Steadiness](), list[Steadiness]()
    for of, case in measured:
        if of in relative:
            known[of] = known.get(of) or _split(case, relative[of], usual)
            found.append(replace(known[of], case=case))
    return tuple(found)


def _relative(times: Sequence[float]) -> array[float]:
    middle = statistics.median(times)
    return array("d", (min(_FAR, max(1 / _FAR, time / middle)) for time in times))


def _split(case: Case, times: Sequence[float], usual: float) -> Steadiness:
    slowest, spikes, rest = max(times), tuple[int, ...](), times
    if slowest >= (1 + SPIKE) * min(times):  # of most cells, no sample stands out
        least, most = _spiky(times, min(usual, NOISE))
        late = tuple([at for at, time in enumerate(times) if time > least])
        if 0 < len(late) <= most:
            spikes, rest = late, [time for time in times if time <= least]
    return Steadiness(case, len(times), slowest, spikes, deviation(rest) ** 2, len(rest) - 1)


def _spiky(times: Sequence[float], usual: float) -> tuple[float, int]:
    """Returns the time above which a sample is a spike, and the highest number of spikes: less than
    half of the samples, because more of them would be usual for the cell."""
    logs = sorted(map(math.log, times))
    most = (len(logs) - 1) // 2
    sums = [0.0, *accumulate(logs)]
    squares = [0.0, *accumulate(one * one for one in logs)]

    def distance(number: int) -> float:
        mean = sums[number] / number
        spread = max(0.0, squares[number] / number - mean * mean)
        noise = max(math.sqrt(spread * number / (number - 1)), usual)
        return mean + max(SPIKE, SIGMAS * noise)

    least = distance(len(logs))
    for number in range(most, 0, -1) if logs[-1] - logs[0] > SPIKE else ():
        bound = distance(len(logs) - number)
        if logs[-number] > bound:
            least = bound
            break
    return math.exp(min(least, math.log(_FAR))), most


def pooled(cells: Sequence[Steadiness]) -> float:
    """Returns the standard deviation of all samples of these cells without their spikes."""
    degrees = sum(cell.degrees for cell in cells) or 1
    return math.sqrt(sum(cell.variance * cell.degrees for cell in cells) / degrees)
