"""Reads the kernel's TCP_INFO (uapi/linux/tcp.h), which says what limited TCP connections."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

_LENGTH = 256
_FIELDS = {
    "busy_us": ("Q", 168), "window_limited_us": ("Q", 176), "buffer_limited_us": ("Q", 184),
    "rtt_us": ("I", 68), "least_rtt_us": ("I", 148), "window": ("I", 228),
    "segments_sent": ("I", 136), "segments_sent_again": ("I", 100),
}  # fmt: skip
"""The fields that are added up over connections, each with its form and place. `busy_us` is the
time in which a connection had data to send, `window_limited_us` that in which it had to wait for
room at the receiver, and `buffer_limited_us` for a larger send buffer. `window` is the last receive
window that the other end granted, in bytes. Older kernels lack the last fields of the struct."""


def counts_of(connections: Iterable[socket.socket]) -> dict[str, int]:
    """Returns TCP_INFO's sums over connections that sent data; empty if the kernel gives none."""
    total: Counter[str] = Counter()
    for connection in connections:
        with suppress(OSError):
            found = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LENGTH)
            known = {
                name: struct.unpack_from(f"={form}", found, at)[0]
                for name, (form, at) in _FIELDS.items()
                if at + struct.calcsize(form) <= len(found)
            }
            if known.get("busy_us"):
                total.update({"connections": 1, **known})
    return dict(total)
