"""The group of a workload: what the engine arms, opens and waits for, and what it shows beside."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from statistics import median

import msgspec

from linkgauge.backends.protocol import Gated, Pace, Timing
from linkgauge.model.stats.summary import summarize
from linkgauge.model.workload import Demands, Rates, Stage, WorkDone, Workload

from .site import Site
from .tracing import traced


class Work(ABC):
    """A workload that is set up. `steps` is what a loop counts: tokens, bytes or steps. `needed`
    are the bytes of device memory that it takes in all, for what is said where it does not fit."""

    steps: int
    needed: int

    def begin(self, loops: int) -> None:  # noqa: B027  # most have nothing to do
        """Before the clock starts: other processes may have to take part."""

    @abstractmethod
    def run(self) -> None:
        """A loop, handed over to the device; need not have ended."""

    @abstractmethod
    def demands(self) -> Demands:
        """What a loop must do."""

    @abstractmethod
    def how(self) -> tuple[str, ...]:
        """What carries it out, for people."""

    def stages(self) -> tuple[Stage, ...]:
        """Timed by further loops, between samples."""
        return ()

    @abstractmethod
    def mismatch(self) -> str | None:
        """What is wrong with the result of the last loop, None if it is right."""

    def finish(self, done: WorkDone) -> WorkDone:
        """With what else this kind of work shows."""
        return done

    @abstractmethod
    def close(self) -> None:
        """Frees what it holds."""


class WorkGroup(Gated):
    """Samples of a workload, by the host's clock: from the first call until the device has ended
    all loops."""

    def __init__(self, site: Site, asked: Workload, work: Work, rates: Rates) -> None:
        self._site, self._asked, self._work, self._rates = site, asked, work, rates
        self._each: list[float] = []
        self._launching: list[float] = []
        self.pace = Pace(loops=1, steps=work.steps)

    def wait(self) -> Timing:
        loops, laps = self.pass_gate()
        with self._site.room(self._asked.batch, self._work.needed, held=None):
            seconds, handing_over = self._timed(loops * laps)
        self._each.append(seconds / loops / laps)
        self._launching.append(handing_over / loops / laps)
        return Timing((seconds,), seconds, (None,), ((0.0, seconds),))

    def _timed(self, loops: int) -> tuple[float, float]:
        """Seconds of so many loops, and how many of them the host needs to hand them over."""
        self._work.begin(loops)
        self._site.synchronize()
        begin = time.perf_counter()
        with self._site.stage(f"{self._asked.kind} x{loops}"):
            for _ in range(loops):
                self._work.run()
            handed_over = time.perf_counter()
            self._site.synchronize()
        return time.perf_counter() - begin, handed_over - begin

    def mismatch(self) -> str | None:
        return self._work.mismatch()

    def done(self) -> WorkDone:
        """What it shows beside its samples, of which the first two warmed up."""
        counted = self._each[2:] or self._each
        demands = self._work.demands()
        if not self._site.is_cpu:
            launching = median(self._launching[2:] or self._launching)
            demands = msgspec.structs.replace(demands, launching=launching)
        shares, file = traced(self._site, self._asked, self._one_loop)
        done = WorkDone(
            median(counted),
            self._asked.shape.parameters,
            demands,
            self._rates,
            self._work.how(),
            tuple(
                msgspec.structs.replace(stage, summary=summarize(stage.seconds, "lower"))
                for stage in self._work.stages()
            ),
            shares=shares,
            trace=file,
        )
        return self._work.finish(done)

    def _one_loop(self) -> None:
        self._work.begin(1)
        self._work.run()

    def close(self) -> None:
        super().close()
        self._work.close()


def times_of(
    run: Callable[[], float], seconds: float = 1.0, least: int = 4, most: int = 64
) -> tuple[float, ...]:
    """What `run` returns, over and over for about so many seconds."""
    begin, found = time.monotonic(), [run()]
    while len(found) < least or (len(found) < most and time.monotonic() - begin < seconds):
        found.append(run())
    return tuple(found)
