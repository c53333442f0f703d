"""The main function of a process that works for another process. The process ends when the other
process is gone."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Self

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a run."""
AGAIN_SECONDS = 0.3
"""Signals that come closer together count as one: a terminal and a launcher may both send it."""
GRACE_SECONDS = 10.0
"""The time that a process under a profiler has to end by itself."""
_PR_SET_PDEATHSIG = 1


class Signals:
    """Handles the signals that end a run by `interrupt` while this context is open."""

    def __init__(self) -> None:
        self.before: dict[int, Callable[[int, FrameType | None], object]] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # which alone gets signals
            for number in ENDING:
                before = signal.getsignal(number)
                if callable(before):
                    self.before[number] = before
                    signal.signal(number, self.interrupt)
        return self

    def __exit__(
        self,
        kind: object = None,
        error: BaseException | None = None,
        traceback: object = None,
    ) -> None:
        for number, before in self.before.items():
            signal.signal(number, before)

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        raise NotImplementedError


def main(module: str, address: str, parent: int) -> None:
    """Runs the function `serve(channel)` of the module. `parent` is the id of the process that it
    works for. `address` is the number of an open socket. Under a profiler, it is the name of an
    abstract socket."""
    import socket  # the command line only asks which signals end it

    from .channel import Channel

    # Signals that end the run, which a terminal or a batch system sends to all processes, are left
    # to the parent.
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    if address.isdecimal():
        _die_with(parent)
        descriptor = int(address)
    else:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connected:
            connected.connect(f"\0{address}")
            descriptor = connected.detach()
        _die_soon_after(descriptor)
    # A second descriptor: the first is closed only when the process ends.
    end = socket.fromfd(descriptor, socket.AF_UNIX, socket.SOCK_STREAM)
    with end, suppress(EOFError, OSError):  # the parent has gone
        import_module(module).serve(Channel(end))
    gc.freeze()  # the process ends here: a last collection would take 30 ms


def _die_with(parent: int) -> None:
    """Makes the kernel kill this process when its parent ends (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call above
        os._exit(1)


def _die_soon_after(descriptor: int) -> None:
    """Ends this process some seconds after the other end of the socket was closed. The delay lets a
    profiler fetch its data."""

    def wait() -> None:
        left = select.poll()
        left.register(descriptor, 0)  # POLLHUP alone
        left.poll()
        time.sleep(GRACE_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()
