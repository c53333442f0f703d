"""The controller's handle of a worker process under a profiler."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import time
import uuid
from contextlib import suppress

from linkgauge.machine.channel import Channel
from linkgauge.machine.process import LOOK, PATIENCE, ProcessLost, environment_with, program
from linkgauge.model.settings import Surroundings

from .process import WorkerProcess
from .profilers import Reports, command_of

START_SECONDS = 120.0
"""The longest that a profiler takes to start a worker."""
WRITING_SECONDS = 120.0
"""The longest that a profiler takes to write its report after its worker's end."""
_CREDENTIALS = struct.Struct("3i")
"""Process, user and group at the other end of a socket (unix(7), SO_PEERCRED)."""


class ProfiledProcess(WorkerProcess):
    """A worker that a profiler starts. It connects to the controller by an address, since a
    profiler need not pass open files on. Both are in a session of their own: a terminal's Ctrl-C
    does not reach the profiler, which ends once its worker has. What they print goes to the
    report's log.

    Raises ProcessLost if the profiler starts no worker.
    """

    def __init__(self, reports: Reports, surroundings: Surroundings) -> None:
        self._name = reports.profiler
        self._report = reports.begin()
        self._before = command_of(reports.profiler, reports.program, self._report.path)
        self._worker: int | None = None
        """The worker's process id, once it has connected."""
        super().__init__(surroundings)

    def _start(self, surroundings: Surroundings) -> tuple[subprocess.Popen[bytes], Channel]:
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
                    start_new_session=True,
                )
            except OSError as error:
                raise ProcessLost(f"cannot start {self._name}: {error.strerror}") from error
            try:
                return process, Channel(self._admit(door, process))
            except BaseException:
                self._kill_both(process)
                raise

    def _admit(self, door: socket.socket, process: subprocess.Popen[bytes]) -> socket.socket:
        """The connection of the worker."""
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
        """The profiler still writes what it saw."""
        self._kill_worker(self.process)
        self._end()

    def close(self, patience: float = PATIENCE) -> None:
        """A busy worker has some seconds to end what it is doing: killed, it would take with it
        what the profiler has not yet fetched."""
        self._end(patience)

    def _end(self, patience: float = PATIENCE) -> int:
        self._channel.close(patience)
        try:
            return self.process.wait(WRITING_SECONDS)
        except subprocess.TimeoutExpired:
            return self._kill_both(self.process)
        except BaseException:  # Ctrl-C once more
            self._kill_both(self.process)
            raise

    def _kill_worker(self, profiler: subprocess.Popen[bytes]) -> None:
        """While its profiler is there, the process id is nobody else's."""
        if self._worker is not None and profiler.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self._worker, signal.SIGKILL)

    def _kill_both(self, profiler: subprocess.Popen[bytes]) -> int:
        """Ends the worker and the session of its profiler. Returns the profiler's exit code."""
        self._kill_worker(profiler)
        if profiler.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(profiler.pid, signal.SIGKILL)
        return profiler.wait()
