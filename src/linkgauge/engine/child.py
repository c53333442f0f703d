"""A worker process: reads commands from its socket, executes them, and ends when the socket
closes."""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import socket
import sys
import threading
import time
from contextlib import closing

import msgspec

from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.notation import decode_hook, encode_hook

from . import messages
from .channel import Channel
from .garbage import collect_seldom
from .interrupts import ENDING
from .standing import Signs
from .worker import LocalWorker

_encode = msgspec.msgpack.Encoder(enc_hook=encode_hook).encode
_decode = msgspec.msgpack.Decoder(messages.Command, dec_hook=decode_hook()).decode
_PR_SET_PDEATHSIG = 1
GRACE_SECONDS = 10.0
"""What a worker under a profiler has to end by itself."""


def main(address: str, parent: int) -> None:
    """Serves the process `parent` over the socket until either is gone. The address is the number
    of the open socket; else the name of an abstract one, and a profiler stands between both."""
    # Signals that end the run, which a terminal or a batch system sends to all processes, are left
    # to the controller.
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    if address.isdecimal():
        die_with(parent)
        descriptor = int(address)
    else:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connected:
            connected.connect(f"\0{address}")
            descriptor = connected.detach()
        _die_soon_after(descriptor)
    # A second descriptor: the first is closed only when the process ends.
    with socket.fromfd(descriptor, socket.AF_UNIX, socket.SOCK_STREAM) as end:
        channel = Channel(end)
        try:
            _serve(channel)
        except (EOFError, OSError):
            pass  # the controller has gone
        except Exception as error:
            channel.send(_encode(messages.Broke(f"{type(error).__name__}: {error}")))
            raise
    gc.freeze()  # the process ends here: a last collection would take 30 ms


def die_with(parent: int) -> None:
    """No worker outlives the controller, however that ends: the kernel kills it (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call above
        os._exit(1)


def _die_soon_after(descriptor: int) -> None:
    """The same of a worker that a profiler started, whose own end would be too soon: it ends some
    seconds after the controller has left the socket, if it has not by itself, so that the profiler
    has all that it saw."""

    def wait() -> None:
        left = select.poll()
        left.register(descriptor, 0)  # POLLHUP alone
        left.poll()
        time.sleep(GRACE_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def _serve(channel: Channel) -> None:
    start = _decode(channel.receive())
    if not isinstance(start, messages.Start):
        raise TypeError(f"expected Start, got {start!r}")

    def say(reply: messages.Reply) -> None:
        channel.send(_encode(reply))

    names = () if start.accelerator is None else (start.accelerator,)
    collect_seldom()
    with closing(LocalWorker(start.settings, Signs(say).enter)) as worker:
        while True:
            command = _decode(channel.receive())
            if isinstance(command, messages.Release):
                worker.release()
                continue
            found: object
            try:
                match command:
                    case messages.Survey():
                        found = worker.survey(names)
                    case messages.Look():
                        found = worker.look(names)
                    case messages.Measure(cells, size, visit):
                        found = worker.measure(cells, size, visit)
                    case messages.Tune(device, peer):
                        found = worker.tune(device, peer, lambda tried: say(messages.Trying(tried)))
                    case _:
                        raise TypeError(f"unexpected {command!r}")
                say(messages.Done(msgspec.Raw(_encode(found))))
            except LinkgaugeError as error:
                say(messages.Refused(str(error)))
