"""Carries out a rank's work over TCP in native code: copies, and flags that go back and forth."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

from linkgauge import _native
from linkgauge.backends.iterations import Call, IteratedGroup
from linkgauge.backends.rank import OwnCopies, await_time
from linkgauge.model.errors import BackendError, LinkgaugeError, TookTooLong
from linkgauge.model.ranks import nic_ends
from linkgauge.model.transfer import Transfer

_WORD = 1
"""The bytes of the message that ends a copy, or requests a copy."""


class TcpConnection(NamedTuple):
    """A rank's end of a stream. `place` is the number of the copy in its cell. `address` is in the
    rank's own buffer. `sends` and `times` are true if this rank sends, or measures the time."""

    place: int
    transfer: Transfer
    connection: socket.socket
    address: int
    size: int
    sends: bool
    times: bool


def carry_out(
    streams: Sequence[TcpConnection], loops: int, at: float | None
) -> tuple[float, dict[int, float]]:
    """Moves bytes from the monotonic time `at` on (None: now). Returns when the first stream began,
    and the ends of timed copies by `place`. Raises the first error after all streams have ended."""
    if not streams:
        return await_time(at), {}

    def run(stream: TcpConnection) -> tuple[float, float]:
        return _run(stream, loops, at)

    with ThreadPoolExecutor(max(1, len(streams) - 1)) as others:
        begun = [others.submit(run, stream) for stream in streams[1:]]
        spans = [run(streams[0]), *(one.result() for one in begun)]
    last: dict[int, float] = {}
    for stream, (_, end) in zip(streams, spans, strict=True):
        if stream.times:
            last[stream.place] = max(end, last.get(stream.place, end))
    # Threads of a busy machine do not begin together: one may end before another has begun.
    return min(begin for begin, _ in spans), last


def _run(stream: TcpConnection, loops: int, at: float | None) -> tuple[float, float]:
    """Moves a stream's bytes. The destination sends a message before a pull, or after a push."""
    word = ctypes.create_string_buffer(_WORD)
    number = stream.connection.fileno()
    move = (number, stream.address, stream.size)
    said = (number, ctypes.addressof(word), _WORD)
    out, into = (_native.SEND_ALL, _native.RECEIVE_ALL)
    main: Call = (out if stream.sends else into, move)
    pushes = stream.sends == stream.times
    begin = await_time(at)
    if not pushes:
        _make(stream, [(into if stream.sends else out, said)], 1, [])
    last: list[Call] = [(into if stream.sends else out, said)] if pushes else []
    _make(stream, [main], loops, last)
    return begin, time.monotonic()


def _make(stream: TcpConnection, calls: Sequence[Call], count: int, last: Sequence[Call]) -> None:
    _, status, failed = _native.time_iterations(calls, count, last)
    if status:
        address = [*calls, *last][failed][0]
        raise stream_error(stream.transfer, status, sends=address == _native.SEND_ALL)


def stream_error(transfer: Transfer, status: int, *, sends: bool) -> LinkgaugeError:
    ends = (f"nic:{end.nic} of rank {end.rank}" for end in nic_ends(transfer))
    way = " to ".join(ends)
    call = "send" if sends else "recv"
    if status == errno.EAGAIN:
        return TookTooLong(call, f"for too long no byte went from {way}")
    said = "the other end closed" if status == _native.ENDED else os.strerror(status)
    return BackendError(call, f"from {way}: {said}")


def bounce(stream: TcpConnection, made: ExitStack) -> OwnCopies:
    """Prepares round trips, timed by the side that begins. They raise TookTooLong after silence."""
    data = (stream.connection.fileno(), stream.address, stream.size)
    send: Call = (_native.SEND_ALL, data)
    receive: Call = (_native.RECEIVE_ALL, data)
    calls = (send, receive) if stream.sends else (receive, send)

    def error_of(status: int, failed: int) -> Exception:
        sends = calls[failed][0] == _native.SEND_ALL
        return stream_error(stream.transfer, status, sends=sends)

    return OwnCopies(IteratedGroup(calls, 2, error_of, made=made), (0,) if stream.times else ())
