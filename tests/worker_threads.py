"""Workers as threads of this process: the same messages over the same socket, without the third of
a second that starting a Python takes. For what neither hangs nor ends the process."""

from __future__ import annotations

import io
import os
import socket
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from unittest.mock import patch

from linkgauge.engine import bounded, child
from linkgauge.engine.channel import Channel
from linkgauge.engine.process import WorkerProcess
from linkgauge.judge import checking


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


class _Bounded:
    """What `measure_within` needs of the process that measures for it: it begins once its task is
    written and closed."""

    def __init__(self) -> None:
        readable, self._writable = os.pipe()
        self.stdout = os.fdopen(readable, "rb")
        self.stdin = io.BytesIO()
        self.stdin.close = self._begin
        self._thread = Thread(target=self._serve, daemon=True)

    def _begin(self) -> None:
        self._thread.start()

    def _serve(self) -> None:
        task = io.TextIOWrapper(io.BytesIO(self.stdin.getvalue()))

        def prepared(telling: bounded._Telling) -> None:
            telling.session, telling._stdout = None, self._writable

        with (
            patch.object(bounded, "die_with"),
            patch.object(bounded._Telling, "__init__", prepared),
            patch.object(sys, "stdin", task),
        ):
            checking.main(os.getpid())
        os.close(self._writable)

    def end(self) -> None:
        self._thread.join()
        self.stdout.close()


@contextmanager
def _process(folder: Path):
    (folder / bounded.ERRORS_FILE).touch()
    process = _Bounded()
    yield process
    process.end()


@contextmanager
def worker_threads():
    """Inside, workers are threads, and so is what a health check measures with."""
    with patch.object(WorkerProcess, "_start", _start), patch.object(bounded, "_process", _process):
        yield
