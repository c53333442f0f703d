"""The main function of a process that works for another process, and ends with it."""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module

from .channel import Channel
from .signals import ignore_ending

GRACE_SECONDS = 10.0
"""The time that a process under a profiler has to end by itself."""
_PR_SET_PDEATHSIG = 1


def main(module: str, address: str, parent: int) -> None:
    """Runs the module's `serve(channel)` for the process `parent`. `address` is the number of an
    open socket or, under a profiler, the name of an abstract socket."""
    # Signals that end the run, which a terminal or a batch system sends to all processes, are left
    # to the parent.
    ignore_ending()
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
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call above
        os._exit(1)


def _die_soon_after(descriptor: int) -> None:
    """Kills this process GRACE_SECONDS after its parent ends: a profiler may still fetch data."""

    def wait() -> None:
        left = select.poll()
        left.register(descriptor, 0)  # POLLHUP alone
        left.poll()
        time.sleep(GRACE_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()
