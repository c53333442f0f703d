"""Workers as threads of this process: the same messages over the same socket, without the third of
a second that starting a Python takes. For what neither hangs nor ends the process."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from threading import Thread
from unittest.mock import patch

from linkgauge.engine import child
from linkgauge.engine.channel import Channel
from linkgauge.engine.process import WorkerProcess


class _Threaded:
    """What `WorkerProcess` needs of a process."""

    def __init__(self, end: socket.socket) -> None:
        self.pid = os.getpid()
        self._end = end
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with self._end, suppress(EOFError, OSError):
            child._serve(Channel(self._end))

    def kill(self) -> None:
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)

    def wait(self, timeout: float | None = None) -> int:
        self._thread.join(timeout)
        return 0


def _start(worker: WorkerProcess, surroundings: object) -> tuple[_Threaded, Channel]:
    ours, theirs = socket.socketpair()
    return _Threaded(theirs), Channel(ours)


def worker_threads():
    """Inside, workers are threads."""
    return patch.object(WorkerProcess, "_start", _start)
