"""Messages from the controller to the processes that measure, and the workers' reports of their
state. No message is sent while a clock runs. A process that sends no message before its deadline
counts as lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from linkgauge.model.documents.result import CellResult, PlannedCell
from linkgauge.model.errors import Phase
from linkgauge.model.hardware.inventory import Inventory
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.settings import Profiler, Settings, Tried

from .outcomes import FIRST, Repetition


class Start(msgspec.Struct, frozen=True, tag=True):
    settings: Settings


class Survey(msgspec.Struct, frozen=True, tag=True):
    """Asks for the `Machine` with the devices of the backends `accelerators`. With `brief`, the
    worker opens only backends whose devices cannot be known otherwise."""

    accelerators: tuple[str, ...] = ()
    brief: bool = False


class ReadInventory(msgspec.Struct, frozen=True, tag=True):
    """Asks for an `Inventory`: the details of the host and of these backends' accelerators."""

    accelerators: tuple[str, ...] = ()


class Measure(msgspec.Struct, frozen=True, tag=True):
    """Asks to measure these cells once, all at the same time. The results come in this order."""

    cells: tuple[PlannedCell, ...]
    size: int
    repetition: Repetition = FIRST


class Tune(msgspec.Struct, frozen=True, tag=True):
    """Asks to search for a device's fastest settings. The answer is false if there are none."""

    device: str
    peer: str | None


class FindBuffer(msgspec.Struct, frozen=True, tag=True):
    """Asks for a buffer size of `least` to `most` bytes that exceeds the caches of a node."""

    node: int
    least: int
    most: int


class Release(msgspec.Struct, frozen=True, tag=True):
    """Asks to free buffers kept for later cells, because another worker needs memory. No answer."""


Command = Start | Survey | ReadInventory | Measure | Tune | FindBuffer | Release


class Trying(msgspec.Struct, frozen=True, tag=True):
    """Reports settings that are tried. Such reports precede the answer to `Tune`."""

    tried: Tried


# What a session measures with: processes of this machine, or ranks of several.


class Workers(Protocol):
    """A session's interface for measuring. `LocalWorker` and `Supervisor` document the methods."""

    def survey(self, accelerators: Sequence[str]) -> Machine: ...
    def look(self, accelerators: Sequence[str]) -> Inventory: ...
    def measure(
        self, cells: Sequence[PlannedCell], size: int, repetition: Repetition = FIRST
    ) -> tuple[CellResult, ...]: ...
    def tune(self, device: str, peer: str | None, on_trial: Callable[[Tried], None]) -> bool: ...
    def find_buffer(self, node: int, least: int, most: int) -> int: ...
    def keep_output(self, folder: Path) -> None: ...
    def profile(self, profiler: Profiler, folder: Path) -> None: ...
    def end_profile(self, say: Callable[[str], None]) -> tuple[str, ...]: ...
    def end(self) -> None: ...
    def close(self) -> None: ...


# A worker's current state: reported as each phase of a cell begins, and as samples end.

SIGN_INTERVAL = 0.1
"""The least interval between signs of life while samples are taken, because each sign wakes the
controller."""


class Heartbeat(msgspec.Struct, frozen=True, tag=True):
    """The state of a worker. `begun` is when the cell began, and `since` is when the phase or the
    sample began, in seconds of the monotonic clock, which all processes share. `warm_up` and
    `longest` are the durations of the warm-up and of the longest sample, 0 until known."""

    phase: Phase = "plan"
    begun: float = 0.0
    since: float = 0.0
    warm_up: float = 0.0
    longest: float = 0.0


class Signs:
    def __init__(self, send: Callable[[Heartbeat], None]) -> None:
        self._send = send
        self._sent = 0.0
        self._at = Heartbeat()

    def enter(self, phase: Phase) -> None:
        """Reports a phase. "allocate" begins a cell; "measure" is repeated as samples are taken."""
        now, at = time.monotonic(), self._at
        warm_up, longest, again = at.warm_up, at.longest, at.phase == phase == "measure"
        if phase == "allocate":
            self._at = Heartbeat(phase, now, now)
        else:
            if at.phase == "warm up":
                warm_up = now - at.since
            elif again:
                longest = max(longest, now - at.since)
            self._at = Heartbeat(phase, at.begun, now, warm_up, longest)
        if not again or now - self._sent >= SIGN_INTERVAL:
            self._sent = now
            self._send(self._at)


# Deadlines after which another process counts as lost. They apply to workers and ranks.

ANSWER_SECONDS, RATE = 30.0, 100e6
"""The most seconds for an answer or for the start of a cell, and the rate in bytes/s at which bytes
must move."""
TIMES_LONGEST = 20
LEAST_SECONDS = 10.0
"""The least limit of each later phase and each sample. The limit is a multiple of the warm-up or
the longest sample so far. It detects hangs; it is no estimate of the whole time."""
WORK_SETUP_SECONDS = 600.0
"""The additional seconds that an AI workload may take until it is warmed up. In this time weights
are drawn, and kernels may be compiled."""
SIGN_SECONDS = 2.0
"""The seconds in which a rank must give a sign of life."""
SETTLE_SECONDS = 20.0
"""The seconds in which ranks that wait for a lost rank must answer. This is longer than connections
may be silent."""
MOST_RANKS_PER_CPU = 8.0
"""The largest factor for all these limits if ranks share CPUs. The factor is the number of ranks
per CPU."""


class Deadlines(NamedTuple):
    """Deadlines in seconds. `slow` is the factor by which everything may take longer than usual.
    `limit` is the time for an answer (None: the usual time)."""

    slow: float = 1.0
    limit: float | None = None

    @classmethod
    def shared(cls, ranks_per_cpu: float, limit: float | None = None) -> Deadlines:
        return cls(min(max(ranks_per_cpu, 1.0), MOST_RANKS_PER_CPU), limit)

    def of_start(self, moved: int, more: float = 0.0) -> float:
        """Returns the seconds allowed to warm up work that moves `moved` bytes, plus `more`."""
        return self.slow * (ANSWER_SECONDS + more + moved / RATE)

    def of_answer(self, moved: int = 0) -> float:
        """Returns the seconds that a rank may take to answer while it moves `moved` bytes."""
        return self.of_start(moved) if self.limit is None else self.limit

    def of_step(self, longest: float) -> float:
        """Returns the seconds allowed for a phase or sample. `longest` is the longest before it."""
        return self.slow * max(LEAST_SECONDS, TIMES_LONGEST * longest)

    @property
    def of_sign(self) -> float:
        return self.slow * SIGN_SECONDS

    @property
    def of_settling(self) -> float:
        """The seconds in which ranks must answer after they waited for a lost rank."""
        return SETTLE_SECONDS if self.limit is None else self.limit + SIGN_SECONDS
