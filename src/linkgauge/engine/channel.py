"""Length-prefixed messages between two processes over a socket."""

from __future__ import annotations

import select
import socket
import struct
import time
from contextlib import suppress

_LENGTH = struct.Struct("=I")
_CHUNK = 1 << 15
_MOST = (1 << 32) - 1


class Channel:
    """One end. The counterpart in `multiprocessing` takes as long to load as half a worker and
    makes twice as many system calls."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._poller = select.poll()
        self._poller.register(end, select.POLLIN)
        self._unread = bytearray()

    def fileno(self) -> int:
        return self.socket.fileno()

    @property
    def has_unread(self) -> bool:
        """Whether a part of a message is here that `poll` of the socket does not show."""
        return bool(self._unread)

    @property
    def has_room(self) -> bool:
        """Whether a short message can be sent without waiting for the other end to read."""
        writing = select.poll()
        writing.register(self.socket, select.POLLOUT)
        return bool(writing.poll(0))

    def send(self, message: bytes) -> None:
        """Raises OSError if the other end is gone."""
        self.socket.sendall(_LENGTH.pack(len(message)) + message)

    def poll(self, seconds: float | None = None) -> bool:
        """Waits until there is something to read, at most this long."""
        return bool(self._unread or self._poller.poll(None if seconds is None else seconds * 1e3))

    def receive(self, deadline: float | None = None, most: int = _MOST) -> bytes:
        """Waits for the next message. Raises EOFError or OSError if the other end is gone, or means
        to send more than `most` bytes; TimeoutError if not all of it is here when the monotonic
        clock reads `deadline`."""
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

    def close(self, patience: float) -> None:
        """Signals the other end that nothing more will come, and waits at most `patience` seconds
        until it is gone. Idempotent."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
            deadline = time.monotonic() + patience
            self.socket.settimeout(patience)
            while self.socket.recv(_CHUNK):  # who is at work may go on to say so
                self.socket.settimeout(max(0.0, deadline - time.monotonic()))
        self.socket.close()
