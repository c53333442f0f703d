"""Simulates flows that share a machine at max-min fair rates and may wait in queues."""

from __future__ import annotations

import bisect
import heapq
import math
from collections import deque
from collections.abc import Hashable, Sequence

import msgspec

from .map import Capacity, Flow, share

_DONE = 1e-9
"""The remaining share of a work at which the work counts as done, because times are not exact."""


class FlowWork(msgspec.Struct, frozen=True):
    """A number of bytes for a flow to move, after `startup` seconds. Works with the same `queue`
    are done one after the other. An `endless` work repeats until all other works have ended."""

    flow: Flow
    size: int
    startup: float = 0.0
    queue: Hashable = None
    endless: bool = False


class Movement(msgspec.Struct, frozen=True):
    """When a work moves its bytes, in seconds from the start of all works. `turn` is the time at
    which the work's startup begins; the startup takes `startup` seconds. `steps` are pairs of a
    time and the share of the bytes moved by then."""

    turn: float
    startup: float
    steps: tuple[tuple[float, float], ...]

    @property
    def end(self) -> float:
        return self.steps[-1][0]

    def at(self, share: float) -> float:
        after = bisect.bisect_left(self.steps, share, lo=1, key=lambda step: step[1])
        (begin, before), (end, then) = self.steps[after - 1 : after + 1]
        moved = begin + (end - begin) * (share - before) / (then - before)
        return moved - self.startup * (1 - share)


def steady(seconds: float, startup: float = 0.0) -> Movement:
    return Movement(0.0, startup, ((startup, 0.0), (seconds, 1.0)))


def movements(works: Sequence[FlowWork], capacity: Capacity) -> tuple[Movement, ...]:
    """Returns how each work proceeds, in order. Endless works move at their mean rate."""
    if len(works) == 1 and not works[0].endless:
        (work,) = works
        (rate,) = share([work.flow], capacity)
        return (steady(work.startup + work.size / rate, work.startup),)
    run = _Flows(works, capacity)
    while run.busy:
        run.step()
    return run.movements()


class _Flows:
    def __init__(self, works: Sequence[FlowWork], capacity: Capacity) -> None:
        self._works = works
        self._capacity = capacity
        self._now = 0.0
        self._left: dict[int, float] = {}
        self._starting: list[tuple[float, int]] = []
        self._queues: dict[Hashable, deque[int]] = {}
        self._moved: dict[int, float] = {}
        self._turns = [0.0] * len(works)
        self._steps: list[list[tuple[float, float]]] = [[] for _ in works]
        for number, work in enumerate(works):
            queue = work.queue
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
        heapq.heappush(self._starting, (self._now + self._works[number].startup, number))

    def step(self) -> None:
        flows = [self._works[number].flow for number in self._left]
        rate = dict(zip(self._left, share(flows, self._capacity), strict=True))
        first_end = min((left / rate[n] for n, left in self._left.items()), default=math.inf)
        first_start = self._starting[0][0] - self._now if self._starting else math.inf
        passed = min(first_end, first_start)
        self._now += passed
        for number, left in list(self._left.items()):
            if self._works[number].endless:
                self._moved[number] = self._moved.get(number, 0.0) + rate[number] * passed
                continue
            rest = left - rate[number] * passed if rate[number] != math.inf else 0.0
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
        return tuple(
            steady(self._now * work.size / self._moved[number])
            if number in self._moved
            else Movement(turn, work.startup, tuple(steps))
            for number, (work, turn, steps) in enumerate(
                zip(self._works, self._turns, self._steps, strict=True)
            )
        )

    def _end(self, number: int) -> None:
        del self._left[number]
        self._steps[number].append((self._now, 1.0))
        name = self._works[number].queue
        if name is not None:
            queue = self._queues[name]
            queue.popleft()
            if queue:
                self._start(queue[0])
