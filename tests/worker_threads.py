"""Workers as threads of this process: the same messages over the same socket, without the third of
a second that starting a Python takes. For what neither hangs nor ends the process."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread
from unittest.mock import patch

from linkgauge.engine.workers.process import WorkerProcess
from linkgauge.machine.processes.channel import Channel
from linkgauge.machine.processes.process import Process
from linkgauge.report.render import drawing
from linkgauge.rooms.check import bounded


class _Threaded:
    """What `WorkerProcess` needs of a process."""

    def __init__(self, end: socket.socket, module: str) -> None:
        self.pid = os.getpid()
        self._module = import_module(module)
        self._end = end
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with self._end, suppress(EOFError, OSError):
            self._module.serve(Channel(self._end))

    def kill(self) -> None:
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)

    def wait(self, timeout: float | None = None) -> int:
        self._thread.join(timeout)
        return 0


def _start(worker: Process, surroundings: object) -> tuple[_Threaded, Channel]:
    ours, theirs = socket.socketpair()
    return _Threaded(theirs, worker.module), Channel(ours)


class _Drawing(Process):
    _start = _start


def drawing_threads():
    """Inside, a thread draws charts: V8 starts once, which takes a second, not once a report."""
    return patch.object(drawing, "Process", _Drawing)


@contextmanager
def worker_threads():
    """Inside, workers are threads, and so is what a health check measures with, or what draws."""
    with (
        drawing_threads(),
        patch.object(WorkerProcess, "_start", _start),
        patch.object(bounded._Leader, "_start", _start),
        patch.object(bounded._Leader, "_end", lambda leader, deadlines=0: leader._channel.close(9)),
    ):
        yield
