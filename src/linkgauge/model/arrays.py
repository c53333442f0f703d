"""What STREAM does with arrays, as operations of cells: `stream-triad`, `peak-copy` and so on.

The size of a cell is that of one array. Figures count every array that is read or written, as
STREAM does (McCalpin, *Memory Bandwidth and Machine Balance in Current High Performance Computers*,
1995). The source of an operation on two arrays b and c holds one behind the other. read and write
are not STREAM's own: one array is read, or written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

HostMode = Literal["stream", "peak"]
"""`stream`: a linear walk with ordinary stores, as compilers make of STREAM's loops. `peak`: what
was found to be the fastest on this machine."""
HOST_MODES: tuple[HostMode, ...] = get_args(HostMode)

ArrayKind = Literal["copy", "scale", "add", "triad", "read", "write"]
ArrayOperation = Literal[
    "stream-copy",
    "stream-scale",
    "stream-add",
    "stream-triad",
    "stream-read",
    "stream-write",
    "peak-copy",
    "peak-scale",
    "peak-add",
    "peak-triad",
    "peak-read",
    "peak-write",
]


class ArrayWork(msgspec.Struct, frozen=True):
    """One of these operations: arrays `read` and `written`, and its formula for people."""

    mode: HostMode
    kind: ArrayKind
    read: int
    written: int
    formula: str

    @property
    def computes(self) -> bool:
        """Whether arrays are of 64-bit floating-point numbers, not just of bytes."""
        return self.kind in ("scale", "add", "triad")

    @property
    def counted(self) -> int:
        """Arrays whose bytes count."""
        return self.read + self.written


_KINDS: dict[ArrayKind, tuple[int, int, str]] = {
    "copy": (1, 1, "a = b"),
    "scale": (1, 1, "a = 3 b"),
    "add": (2, 1, "a = b + c"),
    "triad": (2, 1, "a = b + 3 c"),
    "read": (1, 0, "b is read"),
    "write": (0, 1, "a is written"),
}
ARRAYS: Mapping[object, ArrayWork] = {
    f"{mode}-{kind}": ArrayWork(mode, kind, *arrays)
    for mode in HOST_MODES
    for kind, arrays in _KINDS.items()
}


def mode_of(operation: object) -> HostMode | None:
    """The mode of an operation on arrays; None of any other."""
    return ARRAYS[operation].mode if operation in ARRAYS else None


def source_arrays(operation: object) -> int:
    """Arrays that the source buffer of this operation holds."""
    return max(1, ARRAYS[operation].read) if operation in ARRAYS else 1


def counted_arrays(operation: object) -> int:
    """How often this operation's figures count the cell's size: once, unless they count as STREAM
    does."""
    return ARRAYS[operation].counted if operation in ARRAYS else 1
