"""Transfers in virtual time: who moves when, and for how long.

All transfers of a group start together. Their rates are max-min fair shares of what they cross,
solved anew when one of them starts to move or ends; kernels of one device run one after another.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections import deque
from collections.abc import Mapping, Sequence

import msgspec

from linkgauge.backends.base import Phase
from linkgauge.model.map import share

from .resources import Demand

_DONE = 1e-9
"""Part of a transfer that may be left when it counts as done: times are not exact."""
_MASK = (1 << 64) - 1
_HALF = 1 << 32
_TURN = 2 * math.pi


Capacity = Sequence[float] | Mapping[int, float]
"""Bytes a second of each resource, at least of those that are used."""


class Work(msgspec.Struct, frozen=True):
    """So many bytes of a demand; an `endless` one goes over them until all others are done."""

    demand: Demand
    size: int
    endless: bool = False


class Movement(msgspec.Struct, frozen=True):
    """How a transfer gets on in one loop, in seconds from the common start: its turn comes, it
    takes `startup`, and at each time of `steps` a share of its bytes has moved, from 0 to 1."""

    turn: float
    startup: float
    steps: tuple[tuple[float, float], ...]

    @property
    def end(self) -> float:
        return self.steps[-1][0]

    def at(self, share: float) -> float:
        """When this share of many loops is done, in loops: each of them has paid for its start."""
        after = bisect.bisect_left(self.steps, share, lo=1, key=lambda step: step[1])
        (begin, before), (end, then) = self.steps[after - 1 : after + 1]
        moved = begin + (end - begin) * (share - before) / (then - before)
        return moved - self.startup * (1 - share)


def steady(seconds: float, startup: float = 0.0) -> Movement:
    """Of a transfer whose rate never changes, and which takes so long."""
    return Movement(0.0, startup, ((startup, 0.0), (seconds, 1.0)))


def movements(works: Sequence[Work], capacity: Capacity) -> tuple[Movement, ...]:
    """How each gets on, for one loop; an endless one at the rate that it has while the others move.
    All of it grows in proportion to the loops: starting takes its time once a loop, and no link
    meanwhile."""
    if len(works) == 1 and not works[0].endless:
        (work,) = works
        (rate,) = share([work.demand.flow], capacity)
        return (steady(work.demand.startup + work.size / rate, work.demand.startup),)
    run = _Run(works, capacity)
    while run.busy:
        run.step()
    return run.movements()


class _Run:
    """The events of one group."""

    def __init__(self, works: Sequence[Work], capacity: Capacity) -> None:
        self._works = works
        self._capacity = capacity
        self._now = 0.0
        self._left: dict[int, float] = {}
        self._starting: list[tuple[float, int]] = []
        self._queues: dict[str, deque[int]] = {}
        self._moved: dict[int, float] = {}
        self._turns = [0.0] * len(works)
        self._steps: list[list[tuple[float, float]]] = [[] for _ in works]
        for number, work in enumerate(works):
            queue = work.demand.queue
            if queue is not None:
                self._queues.setdefault(queue, deque()).append(number)
            if queue is None or len(self._queues[queue]) == 1:
                self._start(number)

    @property
    def busy(self) -> bool:
        running = (*self._left, *(number for _, number in self._starting))
        return any(not self._works[number].endless for number in running)

    def _start(self, number: int) -> None:
        self._turns[number] = self._now
        heapq.heappush(self._starting, (self._now + self._works[number].demand.startup, number))

    def step(self) -> None:
        """Goes on to the next start or end."""
        flows = [self._works[number].demand.flow for number in self._left]
        pace = dict(zip(self._left, share(flows, self._capacity), strict=True))
        first_end = min((left / pace[n] for n, left in self._left.items()), default=math.inf)
        first_start = self._starting[0][0] - self._now if self._starting else math.inf
        passed = min(first_end, first_start)
        self._now += passed
        for number, left in list(self._left.items()):
            if self._works[number].endless:
                self._moved[number] = self._moved.get(number, 0.0) + pace[number] * passed
                continue
            rest = left - pace[number] * passed if pace[number] != math.inf else 0.0
            self._left[number] = rest
            size = self._works[number].size
            if rest <= _DONE * size:
                self._end(number)
            elif passed > 0:
                self._steps[number].append((self._now, 1 - rest / size))
        while self._starting and self._starting[0][0] <= self._now:
            _, number = heapq.heappop(self._starting)
            work = self._works[number]
            self._left[number] = math.inf if work.endless else float(work.size)
            self._steps[number].append((self._now, 0.0))

    def movements(self) -> tuple[Movement, ...]:
        """Endless ones have moved for as long as all others."""
        return tuple(
            steady(self._now * work.size / self._moved[number])
            if number in self._moved
            else Movement(turn, work.demand.startup, tuple(steps))
            for number, (work, turn, steps) in enumerate(
                zip(self._works, self._turns, self._steps, strict=True)
            )
        )

    def _end(self, number: int) -> None:
        del self._left[number]
        self._steps[number].append((self._now, 1.0))
        name = self._works[number].demand.queue
        if name is not None:
            queue = self._queues[name]
            queue.popleft()
            if queue:
                self._start(queue[0])


class Course:
    """Where a run stands: its virtual time `now`, the cell, its visit, and the number of the next
    sample of the phase. What is drawn depends on these and the seed alone, so that a cell's figures
    are the same whichever process measures it, and whatever it measured before.

    `between` are the relative standard deviations of what varies from visit to visit and not
    within one: buffers, moments."""

    def __init__(self, seed: int, between: Sequence[float] = ()) -> None:
        self._seed = _mix(seed)
        self._between = tuple(sigma for sigma in between if sigma > 0)
        self.now = 0.0
        self.enter(0, "plan", 0, 0)

    def enter(self, cell: int, phase: Phase, visit: int = 0, taken: int = 0) -> None:
        """`taken` samples were taken of the cell before this visit."""
        self.cell = cell
        self.sample = taken if phase == "measure" else 0
        self._drawn = _mix(self._seed ^ cell)
        drawn = _mix(self._drawn ^ visit + 1 << 40)
        self._visit = math.prod(
            math.exp(sigma * _normal(_mix(drawn ^ number)))
            for number, sigma in enumerate(self._between)
        )

    def pass_by(self, seconds: float) -> None:
        """A sample took so long."""
        self.now += seconds
        self.sample += 1

    def noise(self, number: int, sigma: float) -> float:
        """A factor for transfer `number` of this sample, normal in its logarithm."""
        if sigma == 0:
            return self._visit
        bits = _mix(self._drawn ^ (self.sample << 20 | number))
        return self._visit * math.exp(sigma * _normal(bits))


def _normal(bits: int) -> float:
    """A normal number of 64 random bits: two uniform ones in (0, 1) (Box and Muller 1958)."""
    radius = math.sqrt(-2 * math.log((bits % _HALF + 0.5) / _HALF))
    return radius * math.cos(_TURN * (bits >> 32) / _HALF)


def _mix(value: int) -> int:
    """Scatters 64 bits (SplitMix64: Steele, Lea and Flood 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31
