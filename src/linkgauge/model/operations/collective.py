"""Collectives, with sizes, counts and bandwidths as in nccl-tests 2.19 (doc/PERFORMANCE.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

from linkgauge.model.shareable import Word

Algorithm = Literal["ring", "tree", "nvls"]
"""An algorithm of a collective: rings, two trees, or reductions and multicasts in a switch (NVLink
SHARP)."""
CollectiveName = Literal[
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "alltoall",
    "gather",
    "scatter",
    "sendrecv",
    "hypercube",
]
COLLECTIVE_NAMES: tuple[CollectiveName, ...] = get_args(CollectiveName)
NumberName = Literal[
    "int8", "uint8", "int32", "uint32", "int64", "uint64",
    "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2",
]  # fmt: skip
Reduction = Literal["sum", "prod", "max", "min", "avg", "mulsum"]
REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)
Registration = Literal["local", "symmetric"]

_SPLIT = re.compile(
    r"(AND|&|OR|\||MOD|%|DIV|/)\s*(0X[0-9A-F]{1,8}|0B[01]{1,32}|0|[1-9][0-9]{0,8})", re.ASCII
)
_ALIGNMENT = 16
"""Bytes of which each rank's share is a multiple (nccl-tests, `getCollByteCount`)."""
_MOST = 1 << 24
"""The largest number that the data contain, whatever their type."""


class NumberType(msgspec.Struct, frozen=True):
    """A type of numbers, which represents exactly whole numbers up to `whole` and powers of two up
    to 2^`exponent`. `code` is its number in NCCL. Rounding has a relative error of `rounding`."""

    name: NumberName
    code: int
    bytes: int
    whole: int
    exponent: int
    rounding: float = 0.0


NUMBERS: Mapping[NumberName, NumberType] = {
    one.name: one
    for one in (
        NumberType("int8", 0, 1, 127, 6),
        NumberType("uint8", 1, 1, 255, 7),
        NumberType("int32", 2, 4, _MOST, 24),
        NumberType("uint32", 3, 4, _MOST, 24),
        NumberType("int64", 4, 8, _MOST, 24),
        NumberType("uint64", 5, 8, _MOST, 24),
        NumberType("half", 6, 2, 1 << 11, 15, 2.0**-11),
        NumberType("float", 7, 4, _MOST, 24, 2.0**-24),
        NumberType("double", 8, 8, _MOST, 24, 2.0**-53),
        NumberType("bfloat16", 9, 2, 1 << 8, 24, 2.0**-8),
        NumberType("f8e4m3", 10, 1, 1 << 4, 7, 2.0**-4),
        NumberType("f8e5m2", 11, 1, 1 << 3, 15, 2.0**-3),
    )
}


class _Shape(msgspec.Struct, frozen=True):
    sends_share: bool = False
    receives_share: bool = False
    is_shared: bool = False
    reduces: bool = False
    has_root: bool = False


_SHAPES: Mapping[CollectiveName, _Shape] = {
    "all_reduce": _Shape(reduces=True),
    "all_gather": _Shape(sends_share=True, is_shared=True),
    "reduce_scatter": _Shape(receives_share=True, is_shared=True, reduces=True),
    "broadcast": _Shape(has_root=True),
    "reduce": _Shape(reduces=True, has_root=True),
    "alltoall": _Shape(is_shared=True),
    "gather": _Shape(sends_share=True, is_shared=True, has_root=True),
    "scatter": _Shape(receives_share=True, is_shared=True, has_root=True),
    "sendrecv": _Shape(),
    "hypercube": _Shape(sends_share=True, is_shared=True),
}
_NOT_IN_PLACE: tuple[CollectiveName, ...] = ("alltoall", "sendrecv")
"""The collectives that cannot be checked in place. One rank's bytes arrive where another rank's
bytes are still to be sent, so the content there is undefined."""


class Counts(msgspec.Struct, frozen=True):
    """Numbers of elements: `count` is the argument of NCCL's call, `send` and `receive` are what
    one rank sends and receives. In place, rank r's data begin at element `send_step` × r of its
    receive buffer, and what it receives begins at element `receive_step` × r."""

    count: int
    send: int
    receive: int
    send_step: int = 0
    receive_step: int = 0


class Collective(msgspec.Struct, frozen=True, omit_defaults=True):
    """A collective among all ranks of a cell, one rank for each transfer.

    collective: Its name.
    type: The type of its numbers.
    reduction: How numbers are reduced; null without a reduction.
    root: The rank that sends to all or receives from all; null without such a rank.
    in_place: Whether each rank sends from its receive buffer.
    split: The rule that divides ranks into concurrent groups, such as `MOD 2`; null for one group.
    aggregated: The number of calls in one iteration, which the library gets as a group.
    blocking: Whether the host waits for each iteration.
    graphed: Whether the iterations are launched as a graph.
    registered: How buffers are registered with the library; null if not registered."""

    collective: CollectiveName
    type: NumberName = "float"
    reduction: Reduction | None = None
    root: int | None = None
    in_place: bool = False
    split: Word | None = None
    aggregated: int = 1
    blocking: bool = False
    graphed: bool = False
    registered: Registration | None = None

    @property
    def reduces(self) -> bool:
        return _SHAPES[self.collective].reduces

    @property
    def has_root(self) -> bool:
        return _SHAPES[self.collective].has_root

    @property
    def is_checked(self) -> bool:
        return not (self.in_place and self.collective in _NOT_IN_PLACE)

    @property
    def number(self) -> NumberType:
        return NUMBERS[self.type]

    def counts(self, size: int, ranks: int) -> Counts:
        """Returns the counts for `size` bytes. A rank's share is a multiple of 16 bytes."""
        shape, count = _SHAPES[self.collective], size // self.number.bytes
        if not shape.is_shared:
            return Counts(count, count, count)
        share = count // ranks & -(_ALIGNMENT // self.number.bytes)
        whole = share * ranks
        return Counts(
            share,
            share if shape.sends_share else whole,
            share if shape.receives_share else whole,
            share if shape.sends_share else 0,
            share if shape.receives_share else 0,
        )

    def groups(self, ranks: int) -> tuple[tuple[int, ...], ...]:
        return groups_of(self.split, ranks)

    def buffer_bytes(self, size: int, ranks: int) -> tuple[tuple[int, int], ...]:
        """Returns the bytes of each rank's send buffer (0 if in place) and receive buffer."""
        found = [(0, 0)] * ranks
        for group in self.groups(ranks):
            counts = self.counts(size, len(group))
            send, receive = (
                max(count * self.number.bytes, _ALIGNMENT)
                for count in (counts.send, counts.receive)
            )
            for rank in group:
                found[rank] = (0, max(send, receive)) if self.in_place else (send, receive)
        return tuple(found)

    def bytes_counted(self, size: int, ranks: int) -> int:
        """Returns the bytes of one call that count for `algbw`."""
        count = self.counts(size, ranks).count * self.number.bytes
        if self.collective == "hypercube":
            return count * (ranks - 1)
        return count * ranks if _SHAPES[self.collective].is_shared else count

    def bytes_on_bus(self, size: int, ranks: int) -> float:
        return self.bytes_counted(size, ranks) * bus_factor(self.collective, ranks)


class CollectiveChoice(msgspec.Struct, frozen=True):
    types: tuple[NumberName, ...] = ("float",)
    reductions: tuple[Reduction, ...] = ("sum",)
    roots: tuple[int, ...] = (0,)
    split: str | None = None
    aggregated: int = 1
    blocking: bool = False
    graphed: bool = False
    registered: Registration | None = None
    largest: int | None = None


def bus_factor(name: CollectiveName, ranks: int) -> float:
    """Returns the ratio of `busbw` to `algbw`, by nccl-tests' doc/PERFORMANCE.md."""
    if name == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if _SHAPES[name].is_shared and name != "hypercube":
        return (ranks - 1) / ranks
    return 1.0


def reduces(name: CollectiveName) -> bool:
    return _SHAPES[name].reduces


def has_root(name: CollectiveName) -> bool:
    return _SHAPES[name].has_root


def no_hypercube(name: CollectiveName, ranks: int) -> str | None:
    if name == "hypercube" and ranks & (ranks - 1):
        return f"a hypercube needs a power of two of ranks, not {ranks}"
    return None


def colors_of(split: str | None, ranks: int) -> tuple[int, ...]:
    """Returns the number of each rank's group for a split such as `MOD 2`. Raises ValueError."""
    if split is None:
        return (0,) * ranks
    match = _SPLIT.fullmatch(split.strip().upper())
    if match is None:
        raise ValueError(f"{split!r}: give AND, OR, MOD or DIV and a number, such as MOD 2")
    by = int(match[2], 0)
    if match[1] in ("MOD", "%", "DIV", "/") and not by:
        raise ValueError(f"{split!r} divides by 0")
    match match[1]:
        case "AND" | "&":
            return tuple(rank & by for rank in range(ranks))
        case "OR" | "|":
            return tuple(rank | by for rank in range(ranks))
        case "MOD" | "%":
            return tuple(rank % by for rank in range(ranks))
        case _:
            return tuple(rank // by for rank in range(ranks))


def groups_of(split: str | None, ranks: int) -> tuple[tuple[int, ...], ...]:
    """Returns each group's ranks, rank 0's group first. Raises ValueError for a bad `split`."""
    colors = colors_of(split, ranks)
    return tuple(
        tuple(rank for rank in range(ranks) if colors[rank] == color)
        for color in dict.fromkeys(colors)
    )
