"""What collectives do, by their definitions and in plain Python: numbers that ranks send, what each
has to receive, and how numbers of each type are stored."""

from __future__ import annotations

import math
import struct

import pytest

from linkgauge.model.operations.collective import (
    COLLECTIVE_NAMES,
    NUMBERS,
    Collective,
    has_root,
    reduces,
)
from linkgauge.model.operations.contents import Content, content_of

_ALL = (1 << 64) - 1
_CODES = {"int8": "b", "uint8": "B", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
          "half": "e", "float": "f", "double": "d"}  # fmt: skip
_SMALL = {"bfloat16": (8, 7), "f8e4m3": (4, 3), "f8e5m2": (5, 2)}
"""Bits of exponent and mantissa of what Python does not store."""


def works_in_each_place(root):
    """Every collective, out of place and in place, as parameters of a test."""
    for name in COLLECTIVE_NAMES:
        for in_place in (False, True):
            reduction, at = "sum" if reduces(name) else None, root if has_root(name) else None
            work = Collective(name, "float", reduction, at, in_place)
            yield pytest.param(work, id=f"{name}{'-in-place' if in_place else ''}")


def mixed(rank, index, seed):
    """kernels/content.cuh."""
    x = (index * 0x9E3779B97F4A7C15 + rank * 0xD1B54A32D192ED03 + seed) & _ALL
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _ALL
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _ALL
    return (x ^ x >> 31) >> 32


def sent(work, ranks, seed, rank, index):
    """What a rank has at an index."""
    of: Content = content_of(work, ranks)
    part = of.share >= ranks or (mixed(ranks, index, seed) + rank) % ranks < of.share
    own = mixed(rank, index, seed)
    if work.reduction == "prod":
        return 2 if part and own % 2 else 1
    return own % (of.largest + 1) if part else 0


def reduced(work, numbers):
    """Of the numbers of all ranks at one index."""
    match work.reduction:
        case "sum":
            return sum(numbers)
        case "prod":
            return math.prod(numbers)
        case "max":
            return max(numbers)
        case "min":
            return min(numbers)
        case "avg":
            return sum(numbers) / len(numbers)
        case "mulsum":
            return sum(number * (1 + rank % 2) for rank, number in enumerate(numbers))
    raise AssertionError(work.reduction)


def carried_out(work, counts, ranks, seed):
    """What each rank has in its receive buffer; None if it receives nothing."""
    given = [
        [sent(work, ranks, seed, rank, index) for index in range(counts.send)]
        for rank in range(ranks)
    ]
    if work.reduces:
        whole = [reduced(work, numbers) for numbers in zip(*given, strict=True)]
        return [_of_reduced(work, whole, rank, counts.count) for rank in range(ranks)]
    return [_of_moved(work, given, rank, counts.count) for rank in range(ranks)]


def _share(numbers, rank, count):
    return numbers[rank * count : (rank + 1) * count]


def _of_reduced(work, whole, rank, count):
    if work.collective == "reduce_scatter":
        return _share(whole, rank, count)
    return whole if work.collective == "all_reduce" or rank == work.root else None


def _of_moved(work, given, rank, count):
    root = work.root or 0
    match work.collective:
        case "all_gather" | "hypercube":
            return [number for own in given for number in own]
        case "gather":
            return [number for own in given for number in own] if rank == root else None
        case "broadcast":
            return given[root]
        case "scatter":
            return _share(given[root], rank, count)
        case "alltoall":
            return [number for own in given for number in _share(own, rank, count)]
        case "sendrecv":
            return given[rank - 1]
    raise AssertionError(work.collective)


def stored(name, number):
    """The bytes of a number, little-endian; it has to be exact in its type."""
    if name in _CODES:
        whole = int(number) if "int" in name else float(number)
        data = struct.pack("<" + _CODES[name], whole)
        assert struct.unpack("<" + _CODES[name], data)[0] == number, (name, number)
        return data
    exponent, mantissa = _SMALL[name]
    bias = (1 << exponent - 1) - 1
    if number == 0:
        return bytes(NUMBERS[name].bytes)
    fraction, power = math.frexp(number)  # 0.5 <= fraction < 1
    rest = (2 * fraction - 1) * (1 << mantissa)
    assert rest == int(rest), (name, number)
    # The largest exponent is of infinity, but e4m3 has numbers there, too.
    assert 0 < power - 1 + bias < (1 << exponent) - (name != "f8e4m3"), (name, number)
    bits = (power - 1 + bias) << mantissa | int(rest)
    return bits.to_bytes(NUMBERS[name].bytes, "little")
