"""NVIDIA's profilers: their command lines, their files, and a worker that runs under one."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from linkgauge.machine.processes.channel import Channel
from linkgauge.machine.processes.process import (
    GRACE,
    LOOK,
    ProcessLost,
    environment_with,
    program,
)
from linkgauge.model.errors import InputError
from linkgauge.model.settings import Profiler, Surroundings

from .process import WorkerProcess

# NVIDIA's profilers: Nsight Systems (`nsys`) and Nsight Compute (`ncu`), their command lines and
# their files. Each worker process has a profiler of its own, so that a failure of one costs one
# report.

_NAMES: Mapping[Profiler, str] = {"nsys": "Nsight Systems", "ncu": "Nsight Compute"}
LOG = ".log"
"""The suffix of the file with the output of a profiler and its worker, in the folder of the
report."""
WAITING = ("gate", "bounce", "answer", "load")
"""Kernels that wait for the host or for each other, or that the host waits for. If replayed alone,
they would not end or would count twice."""
ASIDE = ("link", "fill", "compare", "count_wrong", "draw", "fold", "nothing")
"""Kernels that prepare or check the measurement, or that do nothing."""


def find(profiler: Profiler) -> str:
    """Returns the path of the profiler's program. Raises InputError if it is not installed."""
    path = shutil.which(profiler)
    if path is None:
        name = _NAMES[profiler]
        raise InputError(
            f"--{profiler}: {profiler} is not on the PATH: install NVIDIA {name} "
            "(CUDA toolkits bring it), or add its folder to the PATH"
        )
    return path


def command_of(profiler: Profiler, program: str, report: Path) -> tuple[str, ...]:
    """Returns the words to put before a command so that it runs under a profiler. `report` is the
    path of the profiler's file, without its suffix."""
    path = str(report).replace("%", "%%")  # both expand %h, %p and the like
    if profiler == "nsys":
        # Not --trace-fork-before-exec: NVIDIA warns of deadlocks, and a worker is no such child.
        return program, "profile", "--trace=cuda,nvtx,osrt", f"--output={path}"
    # The names are whole ones: a user's kernel may begin like one of these.
    left_out = f"regex:^(?!({'|'.join((*WAITING, *ASIDE))})$).*$"
    options = ("--target-processes", "all", "--nvtx", "--kernel-name", left_out)
    return program, *options, "--export", path


class ProfilerReport(NamedTuple):
    """A profiler's files about one worker. The report is at `path` plus the profiler's suffix."""

    path: Path

    @property
    def log(self) -> Path:
        return self.path.with_name(self.path.name + LOG)

    @property
    def is_there(self) -> bool:
        return any(file != self.log for file in self.path.parent.glob(f"{self.path.name}.*"))

    def last_words(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


class Reports:
    """The profiler reports of a run's workers, in the folder of the run: NAME-1, NAME-2 …"""

    def __init__(self, profiler: Profiler, folder: Path) -> None:
        self.profiler = profiler
        self.program = find(profiler)
        self._folder = folder
        self._begun: list[ProfilerReport] = []
        found = (re.match(r"\d+", name.removeprefix(f"{profiler}-")) for name in self.files())
        self._last = max((int(number[0]) for number in found if number), default=0)

    def begin(self) -> ProfilerReport:
        self._last += 1
        self._begun.append(ProfilerReport(self._folder / f"{self.profiler}-{self._last}"))
        return self._begun[-1]

    def missing(self) -> list[str]:
        return [
            f"{self.profiler} left no report: {one.last_words() or 'no output'} ({one.log})"
            for one in self._begun
            if not one.is_there
        ]

    def files(self) -> tuple[str, ...]:
        return tuple(sorted(file.name for file in self._folder.glob(f"{self.profiler}-*")))


START_SECONDS = 120.0
"""The longest that a profiler takes to start a worker."""
WRITING_SECONDS = 120.0
"""The longest that a profiler takes to write its report after its worker's end."""
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group at the other end of a socket (unix(7), SO_PEERCRED)."""


class ProfiledProcess(WorkerProcess):
    """A worker and its profiler, which share a log. Raises ProcessLost if no worker starts."""

    def __init__(self, reports: Reports, surroundings: Surroundings) -> None:
        self._name = reports.profiler
        self._report = reports.begin()
        self._before = command_of(reports.profiler, reports.program, self._report.path)
        self._worker: int | None = None
        """The worker's process id, once it has connected."""
        super().__init__(surroundings)

    def _start(self, surroundings: Surroundings) -> tuple[subprocess.Popen[bytes], Channel]:
        # The worker connects by an address, because a profiler may not pass on open files.
        address = f"linkgauge-{uuid.uuid4()}"
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door,
            self._report.log.open("ab") as log,
        ):
            door.bind(f"\0{address}")  # no file: nothing to clear away, whatever happens
            door.listen()
            try:
                process = subprocess.Popen(  # noqa: S603  # the profiler, this Python, this code
                    (*self._before, *program(self.module, address, surroundings)),
                    env=environment_with(surroundings.environment),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # so that Ctrl-C does not reach the profiler
                )
            except OSError as error:
                raise ProcessLost(f"cannot start {self._name}: {error.strerror}") from error
            try:
                return process, Channel(self._admit(door, process))
            except BaseException:
                self._kill_both(process)
                raise

    def _admit(self, door: socket.socket, process: subprocess.Popen[bytes]) -> socket.socket:
        deadline = time.monotonic() + START_SECONDS
        door.settimeout(LOOK)
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(TimeoutError):
                end, _ = door.accept()
                found = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
                worker, user, _ = _CREDENTIALS.unpack(found)
                if user == os.geteuid():  # anybody can connect
                    self._worker = worker
                    return end
                end.close()
        code = process.poll()
        how = f"nothing for {START_SECONDS:g} s" if code is None else f"exit code {code}"
        raise ProcessLost(f"{self._name} started no worker ({how}): {self._says()}")

    def _says(self) -> str:
        return f"{self._report.last_words() or 'no output'} ({self._report.log})"

    @property
    def _pid(self) -> int:
        return self.process.pid if self._worker is None else self._worker

    def _how_it_ended(self) -> ProcessLost:
        code = self._end()
        how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        return ProcessLost(f"the worker ended, and {self._name} with {how}: {self._says()}")

    def kill(self) -> None:
        """Kills the worker. The profiler still writes its recorded data."""
        self._kill_worker(self.process)
        self._end()

    def end(self) -> None:
        """Tells the worker to exit once idle. If it were killed, the profiler would lose data."""
        self._channel.end()

    def _end(self, grace: float = GRACE) -> int:
        self._channel.close(grace)
        try:
            return self.process.wait(WRITING_SECONDS)
        except subprocess.TimeoutExpired:
            return self._kill_both(self.process)
        except BaseException:  # Ctrl-C once more
            self._kill_both(self.process)
            raise

    def _kill_worker(self, profiler: subprocess.Popen[bytes]) -> None:
        """Kills the worker if the profiler runs; later the worker's process id may be reused."""
        if self._worker is not None and profiler.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self._worker, signal.SIGKILL)

    def _kill_both(self, profiler: subprocess.Popen[bytes]) -> int:
        self._kill_worker(profiler)
        if profiler.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(profiler.pid, signal.SIGKILL)
        return profiler.wait()
