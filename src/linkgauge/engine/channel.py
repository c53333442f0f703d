"""Messages between two processes, over a socket: each behind its length."""

from __future__ import annotations

import select
import socket
import struct
from contextlib import suppress

_LENGTH = struct.Struct("=I")
_CHUNK = 1 << 15


class Channel:
    """One end. What `multiprocessing` has for this takes as long to load as half a worker, and
    twice as many calls of the system."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._poller = select.poll()
        self._poller.register(end, select.POLLIN)
        self._unread = bytearray()

    def send(self, message: bytes) -> None:
        """Raises OSError where the other end is gone."""
        self._socket.sendall(_LENGTH.pack(len(message)) + message)

    def poll(self, seconds: float | None = None) -> bool:
        """Waits until there is something to read, or for so long."""
        return bool(self._unread or self._poller.poll(None if seconds is None else seconds * 1e3))

    def receive(self) -> bytes:
        """The next message, for which it waits. Raises EOFError or OSError where the other end is
        gone."""
        (length,) = _LENGTH.unpack(self._take(_LENGTH.size))
        return self._take(length)

    def _take(self, size: int) -> bytes:
        while len(self._unread) < size:
            data = self._socket.recv(_CHUNK)
            if not data:
                raise EOFError
            self._unread += data
        taken = bytes(self._unread[:size])
        del self._unread[:size]
        return taken

    def close(self, patience: float) -> None:
        """Tells the other end that nothing more will come, and waits until it is gone, so many
        seconds at most. Idempotent."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            self._socket.settimeout(patience)
            while self._socket.recv(_CHUNK):
                pass
        self._socket.close()
