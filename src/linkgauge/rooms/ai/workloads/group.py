"""The group of a workload: what the engine arms, opens and waits for."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from statistics import median

from msgspec.structs import replace

from linkgauge.backends.protocol import Gated, Pace, Timing
from linkgauge.model.operations.workload import Demands, Rates, Stage, WorkDone, Workload
from linkgauge.model.stats.summary import summarize

from .site import Site


class Work(ABC):
    """`steps` are the tokens, bytes or steps of a loop, `needed` the bytes of device memory."""

    steps: int
    needed: int

    def begin(self, loops: int) -> None:  # noqa: B027  # most have nothing to do
        """Prepares so many loops before the clock starts. Other processes may take part."""

    @abstractmethod
    def run(self) -> None:
        """The device may still be at work when this returns."""

    @abstractmethod
    def demands(self) -> Demands:
        """Of one loop."""

    @abstractmethod
    def how(self) -> tuple[str, ...]:
        """The software that carries the workload out, for people."""

    def stages(self) -> tuple[Stage, ...]:
        """Parts timed in further loops between samples."""
        return ()

    @abstractmethod
    def mismatch(self) -> str | None:
        """An error in the result of the last loop."""

    def finish(self, done: WorkDone) -> WorkDone:
        return done

    @abstractmethod
    def close(self) -> None:
        """Frees the work's resources."""


class WorkGroup(Gated):
    """Times by the host's clock, from the first call until the device has ended all loops."""

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
        """Returns the seconds in all, and those in which the host started work."""
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
        """The first two samples are a warm-up and do not count."""
        counted = self._each[2:] or self._each
        demands = self._work.demands()
        if not self._site.is_cpu:
            launching = median(self._launching[2:] or self._launching)
            demands = replace(demands, launching=launching)
        done = WorkDone(
            median(counted),
            self._asked.shape.parameters,
            demands,
            self._rates,
            self._work.how(),
            tuple(
                replace(stage, summary=summarize(stage.seconds, "lower"))
                for stage in self._work.stages()
            ),
        )
        return self._work.finish(done)

    def close(self) -> None:
        super().close()
        self._work.close()


def times_of(run: Callable[[], float], most: int = 64) -> tuple[float, ...]:
    """Calls `run` for about a second, from 4 to `most` times."""
    begin, found = time.monotonic(), [run()]
    while len(found) < 4 or (len(found) < most and time.monotonic() - begin < 1):
        found.append(run())
    return tuple(found)
