"""samples.bin: a run's raw samples, and the summaries of single transfers and ranks, in binary."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import chain
from math import nan
from operator import attrgetter
from sys import byteorder

import msgspec

from linkgauge.model.documents.result import CellResult, Run
from linkgauge.model.documents.stored import PackedSamples, SamplesFile
from linkgauge.model.stats.summary import Summary

SAMPLES_BIN = "samples.bin"
ROW = struct.Struct("<13d")
_DOUBLE = 8


class PackedRun:
    """Yields the content of samples.bin in pieces, because it may be large. After the last piece,
    `file` has the size and checksum of the content."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __iter__(self) -> Iterator[bytes | memoryview]:
        self._bytes, self._sum = 0, sha256()
        for piece in _pieces(self._run):
            self._bytes += len(piece)
            self._sum.update(piece)
            yield piece

    @property
    def file(self) -> SamplesFile:
        return SamplesFile(self._bytes, self._sum.hexdigest())


def _pieces(run: Run) -> Iterator[bytes | memoryview]:
    """Yields a PackedSamples as MessagePack, table by table."""
    tables = list(map(attrgetter("cells"), run.results))
    every = chain.from_iterable(map(_series, chain.from_iterable(tables)))
    lengths = array("I", map(len, every))
    values = sum(lengths) * _DOUBLE
    rows = len(lengths) - sum(map(len, tables))
    empty = memoryview(b"")
    whole = PackedSamples(id=run.id, lengths=_little(lengths), values=empty, summaries=empty)
    nothing, between = map(msgspec.msgpack.encode, (empty, "summaries"))
    # msgspec encodes only whole values, so the headers of the two long values are written here.
    yield msgspec.msgpack.encode(whole).removesuffix(nothing + between + nothing)
    yield _bytes_follow(values)
    for cells in tables:
        series = chain.from_iterable(map(_series, cells))
        yield _little(array("d", chain.from_iterable(series)))
    yield between + _bytes_follow(rows * ROW.size)
    for cells in tables:
        figures = (_row(one.summary) for cell in cells for one in cell.series)
        yield _little(array("d", chain.from_iterable(figures)))


def _bytes_follow(count: int) -> bytes:
    """Returns the MessagePack header (bin 8, bin 16 or bin 32) of a value of `count` bytes."""
    size = 1 if count < 1 << 8 else 2 if count < 1 << 16 else 4
    return bytes((0xC4 + size // 2,)) + count.to_bytes(size, "big")


def _series(cell: CellResult) -> Sequence[Sequence[float]]:
    return (cell.samples, *map(attrgetter("samples"), cell.series))


def _row(of: Summary | None) -> list[float]:
    if of is None:
        return [nan] * 13
    known = (of.n, of.min, of.median, of.mean, of.max, of.p50, of.p95, of.p99, of.stddev)
    row = (*known, *(of.ci95 or (None, None)), of.slow_p95, of.slow_p99)
    return [nan if figure is None else figure for figure in row]


def _little(numbers: array[float] | array[int]) -> memoryview:
    if byteorder != "little":
        numbers.byteswap()
    return memoryview(numbers).cast("B")
