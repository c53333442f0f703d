"""Reads the kernel's TCP_INFO (uapi/linux/tcp.h), which says what limited TCP connections."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

_LENGTH = 256
_FIELDS = {
    "busy_us": ("Q", 168), "window_limited_us": ("Q", 176), "buffer_limited_us": ("Q", 184),
    "rtt_us": ("I", 68), "least_rtt_us": ("I", 148), "window": ("I", 228),
    "data_segments_sent": ("I", 156), "segments_sent_again": ("I", 100), "segment_bytes": ("I", 16),
}  # fmt: skip
"""The fields to add up over connections that sent data, each with its struct format and offset.
`busy_us` is the time in which a connection had data to send. During `window_limited_us` it waited
for the receiver, during `buffer_limited_us` for a larger send buffer. `window` is the last receive
window that the other end granted, in bytes; `segment_bytes` is the longest segment that is sent.
Older kernels lack the struct's last fields."""
_RECEIVED = {"data_segments_received": ("I", 152)}
"""The field that is added up over all connections."""


def counts_of(connections: Iterable[socket.socket]) -> dict[str, int]:
    """Returns sums of TCP_INFO's fields over connections, without fields that are zero."""
    total: Counter[str] = Counter()
    for connection in connections:
        with suppress(OSError):
            found = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LENGTH)
            total.update(_unpacked(found, _RECEIVED))
            sent = _unpacked(found, _FIELDS)
            if sent.get("busy_us"):
                total.update({"connections": 1, **sent})
    return {name: value for name, value in total.items() if value}


def _unpacked(found: bytes, fields: Mapping[str, tuple[str, int]]) -> dict[str, int]:
    return {
        name: struct.unpack_from(f"={form}", found, at)[0]
        for name, (form, at) in fields.items()
        if at + struct.calcsize(form) <= len(found)
    }
