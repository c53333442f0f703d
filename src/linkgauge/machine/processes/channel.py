"""Carries messages over a socket. Each command gets one answer, after its progress messages."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from linkgauge.model.errors import (
    AllocationError,
    BackendError,
    DeviceBusy,
    DeviceLost,
    InputError,
    LinkgaugeError,
    NoPeerAccess,
    OutcomeKind,
    TookTooLong,
    Unsupported,
)
from linkgauge.model.notation import decode_hook, encode_hook

_LENGTH = struct.Struct("=I")
_CHUNK = 1 << 15
_MOST = (1 << 32) - 1
_C = TypeVar("_C")
_A = TypeVar("_A")

encode = msgspec.msgpack.Encoder(enc_hook=encode_hook).encode
_hook = decode_hook()


def decoder(kind: Any) -> Callable[[bytes], Any]:
    return msgspec.msgpack.Decoder(kind, dec_hook=_hook).decode


def value_of(encoded: msgspec.Raw, kind: type[_A]) -> _A:
    return msgspec.msgpack.decode(encoded, type=kind, dec_hook=_hook)


class Reason(msgspec.Struct, frozen=True):
    kind: OutcomeKind
    text: str


class Done(msgspec.Struct, frozen=True, tag=True):
    """The answer to a command that succeeded. `result` is the encoded value that it returned."""

    result: msgspec.Raw

    def of(self, kind: type[_A]) -> _A:
        return value_of(self.result, kind)


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The answer to a command that failed. The process can carry out further commands."""

    reason: Reason


class Broke(msgspec.Struct, frozen=True, tag=True):
    """The answer to a command that failed with an unexpected error. The process will end."""

    reason: str


Answer = Done | Refused | Broke

_ERRORS: Mapping[OutcomeKind, type[LinkgaugeError]] = {
    "unsupported": Unsupported,
    "size": Unsupported,
    "imex": Unsupported,
    "peer": NoPeerAccess,
    "memory": AllocationError,
    "lost": DeviceLost,
    "timeout": TookTooLong,
    "set-aside": DeviceBusy,
    "interrupted": InputError,
}


def reason_of(error: LinkgaugeError) -> Reason:
    if isinstance(error, DeviceBusy):
        return Reason("set-aside", str(error))
    return Reason("interrupted" if isinstance(error, InputError) else error.kind, str(error))


def error_of(reason: Reason, who: str | None = None) -> LinkgaugeError:
    """Returns the error for a reason. `who` is the backend or rank that failed, if known."""
    kind = _ERRORS.get(reason.kind, BackendError)
    if kind in (DeviceBusy, InputError):
        return kind(reason.text)
    if issubclass(kind, BackendError):
        error = LinkgaugeError(reason.text) if who is None else kind(who, reason.text)
    else:
        error = kind(reason.text)
    error.kind = reason.kind
    return error


def carry_out(command: _C, action: Callable[[_C], object], say: Callable[[bytes], object]) -> None:
    """Runs a command and sends its answer by `say`. Raises only errors that are unexpected."""
    try:
        found = action(command)
    except LinkgaugeError as error:
        say(encode(Refused(reason_of(error))))
    except Exception as error:
        say(encode(Broke(f"{type(error).__name__}: {error}")))
        raise
    else:
        say(encode(Done(msgspec.Raw(encode(found)))))


class Channel:
    """One end of a connection. It loads faster than multiprocessing, with fewer system calls."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._poller = select.poll()
        self._poller.register(end, select.POLLIN)
        self._unread = bytearray()

    def fileno(self) -> int:
        return self.socket.fileno()

    @property
    def has_unread(self) -> bool:
        """Whether the buffer holds part of a message, which polling the socket does not show."""
        return bool(self._unread)

    @property
    def has_room(self) -> bool:
        """Whether a short message can be sent without waiting for the other end to read."""
        writing = select.poll()
        writing.register(self.socket, select.POLLOUT)
        return bool(writing.poll(0))

    def send(self, message: bytes) -> None:
        self.socket.sendall(_LENGTH.pack(len(message)) + message)

    def poll(self, seconds: float | None = None) -> bool:
        """Waits for at most `seconds`. Returns whether there is something to read."""
        return bool(self._unread or self._poller.poll(None if seconds is None else seconds * 1e3))

    def receive(self, deadline: float | None = None, most: int = _MOST) -> bytes:
        """Returns a message. Raises TimeoutError after `deadline` (monotonic clock), and EOFError
        or OSError if the other end is closed or the message has more than `most` bytes."""
        (length,) = _LENGTH.unpack(self._take(_LENGTH.size, deadline))
        if length > most:
            raise EOFError(f"a message of {length} bytes")
        return self._take(length, deadline)

    def _take(self, size: int, deadline: float | None) -> bytes:
        while len(self._unread) < size:
            if deadline is not None and not self._poller.poll(
                max(0.0, deadline - time.monotonic()) * 1e3
            ):
                raise TimeoutError("the rest of a message does not arrive")
            data = self.socket.recv(_CHUNK)
            if not data:
                raise EOFError
            self._unread += data
        taken = bytes(self._unread[:size])
        del self._unread[:size]
        return taken

    def end(self) -> None:
        """Tells the other end that no more messages will come. May be called again."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def close(self, grace: float) -> None:
        """Ends the connection. Waits at most `grace` seconds until the other end closes."""
        self.end()
        with suppress(OSError):
            deadline = time.monotonic() + grace
            self.socket.settimeout(grace)
            while self.socket.recv(_CHUNK):  # who is at work may go on to say so
                self.socket.settimeout(max(0.0, deadline - time.monotonic()))
        self.socket.close()
