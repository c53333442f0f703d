"""PCI Express arithmetic: generations, encodings, link rates.

Source: PCI Express Base Specification 6.0: 4.2.1 (8b/10b), 4.2.2 (128b/130b), 4.2.3 (FLIT mode),
2.2 (headers of transaction layer packets), 3.6 (their sequence number and CRC).
"""

from __future__ import annotations

import msgspec

SPEEDS = (2.5, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""GT/s per lane, indexed by generation minus 1, which is also the registers' speed code minus 1."""
WIDTHS = (1, 2, 4, 8, 12, 16, 32)
"""Link widths in lanes."""


class Encoding(msgspec.Struct, frozen=True):
    """How bytes are encoded on a lane: `share` of the transfers carries them."""

    name: str
    share: float


_EIGHT_TEN = Encoding("8b/10b", 8 / 10)
_BLOCKS = Encoding("128b/130b", 128 / 130)
# 236 of a FLIT's 256 bytes are transaction layer packets; the rest is DLP, CRC and FEC.
_FLIT = Encoding("FLIT 236/256", 236 / 256)


def generation(speed: float) -> int | None:
    """The generation of a transfer rate in GT/s; None for one that PCIe does not have."""
    return SPEEDS.index(speed) + 1 if speed in SPEEDS else None


def encoding(speed: float) -> Encoding:
    """The encoding of a link at `speed` GT/s."""
    if speed < 8:
        return _EIGHT_TEN
    return _BLOCKS if speed < 64 else _FLIT


def link_rate(speed: float, width: int) -> float:
    """Bytes/s of one direction after encoding: 32 GT/s × 16 lanes × 128/130 ÷ 8 = 63.0 GB/s."""
    return speed * 1e9 * width * encoding(speed).share / 8


HEADER = {"write": 16, "request": 16, "completion": 12}
"""Header bytes of a packet: writes and read requests with a 64-bit address, and completions of a
read."""
_WRAPPING = 8
"""Bytes around a packet before FLIT mode: framing, sequence number and CRC. A write with a 64-bit
address then adds 24 bytes and a completion 20, as in R. Neugebauer et al., Understanding PCIe
performance for end host networking, SIGCOMM 2018, section 3."""


def packet_overhead(packet: str, speed: float) -> int:
    """Bytes on a link at `speed` GT/s that a packet (a key of HEADER) takes in addition to its
    payload."""
    return HEADER[packet] + (_WRAPPING if speed < 64 else 0)
