"""A worker process, as the controller uses it."""

from __future__ import annotations

import math
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from linkgauge.machine.processes.process import Process
from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.printable import printable
from linkgauge.model.settings import Settings, Surroundings, Tried

from .messages import Heartbeat, Start, Trying

# What workers, and the libraries in them, print: kept apart from what linkgauge says.

OUTPUT_FILE = "output.log"
"""The file in the run's folder with the output of workers, if there is any."""


class Output:
    """A nameless file for workers' output, which `keep` copies to `folder` or else to stderr."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create(OUTPUT_FILE)
        weakref.finalize(self, os.close, self.descriptor)
        self._kept = 0
        self.folder: Path | None = None

    def keep(self) -> None:
        """Writes out the workers' output since the last call. The workers must have ended."""
        size = os.fstat(self.descriptor).st_size
        content = os.pread(self.descriptor, size - self._kept, self._kept)
        self._kept += len(content)
        if not content.strip():
            return
        with suppress(OSError):  # the figures are there, whatever becomes of this
            if self.folder is not None:
                with (self.folder / OUTPUT_FILE).open("ab") as file:
                    file.write(content)
            else:
                print(printable(content.decode(errors="replace").rstrip(), "\n"), file=sys.stderr)


STARVED = 60.0
"""The most seconds by which a deadline is extended while a worker waits for a CPU."""
_A = TypeVar("_A")


class WorkerProcess(Process):
    """A process that measures cells. It begins to load its modules as soon as it starts."""

    name = "the worker"
    words = Heartbeat | Trying

    def __init__(
        self,
        surroundings: Surroundings = Surroundings(),  # noqa: B008
        output: Output | None = None,
    ) -> None:
        self.output = Output() if output is None else output
        self.standing = Heartbeat()
        """The last state that the worker reported."""
        self._waits: CpuWaits | None = None
        """How long the worker has waited for CPUs since the last command."""
        super().__init__("linkgauge.engine.workers.child", surroundings, self.output.descriptor)

    @property
    def _pid(self) -> int:
        return self.process.pid

    def begin(self, settings: Settings) -> None:
        """Sends the settings before the first command. Later calls do nothing."""
        if self._busy:
            self._busy = False
            self.send(Start(settings))

    def ask(self, command: object) -> None:
        self.standing = Heartbeat()
        self._waits = CpuWaits(self._pid)
        super().ask(command)

    def result(
        self,
        kind: type[_A],
        left: Callable[[Heartbeat], float] | None = None,
        heard: Callable[[Tried], None] = lambda tried: None,
        until: float = math.inf,
    ) -> _A:
        """Returns the worker's answer to the last command. `left` returns how many more seconds a
        worker in a given state may take, without waits for a CPU (None: no deadline). `until` is
        the latest deadline. `heard` receives each `Tried` before the answer."""

        def hear(word: Heartbeat | Trying) -> None:
            if isinstance(word, Heartbeat):
                self.standing = word
            else:
                heard(word.tried)

        def remaining(left: Callable[[Heartbeat], float]) -> float:
            return min(left(self.standing) + self._starved(), until - time.monotonic())

        return self.answer(kind, None if left is None else partial(remaining, left), hear)

    def _starved(self) -> float:
        return 0.0 if self._waits is None else min(self._waits.seconds, STARVED)


class BriefWorker(WorkerProcess):
    """A worker that only surveys the machine. It is killed, and nothing waits for its end."""

    def kill(self) -> None:
        self.abandon()

    def close(self, grace: float = 0.0) -> None:
        self.abandon()


@contextmanager
def early_worker(*, brief: bool) -> Iterator[WorkerProcess]:
    """Starts a worker process, which loads its modules while this process loads its own."""
    with closing(BriefWorker() if brief else WorkerProcess()) as worker:
        yield worker


class CpuWaits:
    """Measures how long a process has waited for CPUs since this object was made."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._before = waits_for_cpu(process)

    @property
    def seconds(self) -> float:
        """The seconds that the longest-waiting thread has waited."""
        waits = waits_for_cpu(self._process)
        since = (wait - self._before.get(thread, 0.0) for thread, wait in waits.items())
        return max(since, default=0.0)


def waits_for_cpu(process: int, root: Root = ROOT) -> dict[str, float]:
    """Returns how many seconds each thread of a process has waited for a CPU. Returns {} if the
    kernel does not record waits (Documentation/scheduler/sched-stats.rst)."""
    tasks = f"proc/{process}/task"
    texts = {thread: root.text(f"{tasks}/{thread}/schedstat") for thread in root.names(tasks)}
    fields = {thread: (text or "").split() for thread, text in texts.items()}
    return {thread: int(found[1]) / 1e9 for thread, found in fields.items() if len(found) == 3}
