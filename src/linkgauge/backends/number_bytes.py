"""How numbers of NCCL's types become bytes and back, and how they are reduced without a device."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import prod
from statistics import fmean

from linkgauge.model.operations.collective import NumberName, Reduction

_FORMATS: dict[NumberName, str] = {
    "int8": "b", "uint8": "B", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
    "half": "e", "float": "f", "double": "d",
}  # fmt: skip
"""The number types that Python's `struct` knows, with their format characters."""
_EIGHT_BITS: dict[NumberName, tuple[int, int]] = {"f8e4m3": (4, 3), "f8e5m2": (5, 2)}
"""The 8-bit number types, with the bits of the exponent and of the fraction."""


def decode(name: NumberName, data: bytes) -> Sequence[float]:
    if name in _EIGHT_BITS:
        table = _table(name)
        return [table[byte & 127] * (-1 if byte >> 7 else 1) for byte in data]
    if name == "bfloat16":  # the upper half of a float
        halves = struct.iter_unpack("<H", data)
        data = b"".join(struct.pack("<I", half << 16) for (half,) in halves)
        name = "float"
    letter = _FORMATS[name]
    return struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data)


def encode(name: NumberName, values: Iterable[float]) -> bytes:
    """Converts numbers, which must be at least 0, to bytes. 8-bit floats round up, but not beyond
    their maximum. Integers and bfloat16 are truncated. Other floats round to the nearest number."""
    if name in _EIGHT_BITS:
        table = _table(name)
        return bytes(min(bisect_left(table, value), len(table) - 1) for value in values)
    if name == "bfloat16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    letter = _FORMATS[name]
    made = list(values) if letter in "efd" else [int(value) for value in values]
    return struct.pack(f"<{len(made)}{letter}", *made)


def combine(reduction: Reduction, ranks: Sequence[Sequence[float]]) -> list[float]:
    """Reduces the ranks' numbers. In `mulsum`, odd ranks count twice (kernels/content.cuh)."""
    if reduction == "mulsum":
        ranks = [[(1 + rank % 2) * n for n in own] for rank, own in enumerate(ranks)]
    return list(map(_REDUCED[reduction], zip(*ranks, strict=True)))


_REDUCED: dict[Reduction, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "prod": prod,
    "max": max,
    "min": min,
    "avg": fmean,
    "mulsum": sum,
}


@cache
def _table(name: NumberName) -> tuple[float, ...]:
    exponent, mantissa = _EIGHT_BITS[name]
    bias = (1 << exponent - 1) - 1
    found = []
    for bits in range(128):
        power, fraction = bits >> mantissa, (bits & (1 << mantissa) - 1) / (1 << mantissa)
        found.append((1 + fraction if power else 2 * fraction) * 2.0 ** (power - bias))
    return tuple(found)
