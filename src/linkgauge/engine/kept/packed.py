"""samples.bin: a run's raw samples, and the summaries of single transfers and ranks, in binary."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from math import isfinite, isinf, isnan, nan
from sys import byteorder

import msgspec

from linkgauge.model.documents.result import CellResult, Run
from linkgauge.model.documents.stored import PackedSamples, SamplesFile
from linkgauge.model.errors import InputError
from linkgauge.model.stats.summary import Summary

SAMPLES_BIN = "samples.bin"
MOST_SAMPLES = 1 << 28
"""The most bytes of a run's samples. Each number of 8 bytes takes 32 bytes of memory once read."""
_LENGTH = struct.Struct("<I")
_ROW = struct.Struct("<13d")
_DOUBLE = 8
_SURE = 8
"""The number of leading figures in a row that are never null."""


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
    tables = [result.cells for result in run.results]
    lengths = array("I", [len(one) for cells in tables for cell in cells for one in _series(cell)])
    values = sum(lengths) * _DOUBLE
    rows = sum(len(cell.series) for cells in tables for cell in cells)
    empty = memoryview(b"")
    whole = PackedSamples(id=run.id, lengths=_little(lengths), values=empty, summaries=empty)
    nothing, between = map(msgspec.msgpack.encode, (empty, "summaries"))
    # msgspec encodes only whole values, so the headers of the two long values are written here.
    yield msgspec.msgpack.encode(whole).removesuffix(nothing + between + nothing)
    yield _bytes_follow(values)
    for cells in tables:
        series = (one for cell in cells for one in _series(cell))
        yield _little(array("d", chain.from_iterable(series)))
    yield between + _bytes_follow(rows * _ROW.size)
    for cells in tables:
        figures = (_row(one.summary) for cell in cells for one in cell.series)
        yield _little(array("d", chain.from_iterable(figures)))


def _bytes_follow(count: int) -> bytes:
    """Returns the MessagePack header (bin 8, bin 16 or bin 32) of a value of `count` bytes."""
    size = next(size for size in (1, 2, 4) if count < 1 << 8 * size)
    return bytes((0xC4 + size // 2,)) + count.to_bytes(size, "big")


class PackedSeries:
    """Reads the series of numbers in a samples.bin in turn. Raises InputError, with the file's
    name, if the file belongs to another run or does not fit the run's cells."""

    def __init__(self, name: object, content: bytes, of: SamplesFile, run: str) -> None:
        self._name = name
        if SamplesFile(len(content), sha256(content).hexdigest()) != of:
            why = _why_another(content, of, run)
            raise InputError(f"{name} {why}: copy the run again")
        try:
            whole = _decoded(content)
            self._lengths = _LENGTH.iter_unpack(whole.lengths)
            self._rows = _ROW.iter_unpack(whole.summaries)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, struct.error) as error:
            raise self._damaged(str(error)) from error
        self._values, self._at = whole.values, 0

    def samples(self) -> tuple[float, ...]:
        (length,) = next(self._lengths, (None,))
        if length is None or self._at + 8 * length > len(self._values):
            raise self._damaged("it has too few samples")
        found = _doubles(length).unpack_from(self._values, self._at)
        self._at += 8 * length
        if not isfinite(sum(found)) and not all(map(isfinite, found)):
            raise self._damaged("a sample is no number")
        return found

    def summary(self) -> Summary | None:
        row = next(self._rows, None)
        if row is None:
            raise self._damaged("it has too few summaries")
        n, *sure = row[:_SURE]
        if isnan(n):
            return None
        if n % 1 or (not isfinite(sum(row)) and (any(map(isinf, row)) or any(map(isnan, sure)))):
            raise self._damaged("a figure is no number")
        stddev, low, high, slow_p95, slow_p99 = (None if x != x else x for x in row[_SURE:])
        ci95 = None if low is None or high is None else (low, high)
        least, median, mean, most, p50, p95, p99 = sure
        shape = (stddev, ci95, slow_p95, slow_p99)
        return Summary(int(n), least, median, mean, most, p50, p95, p99, *shape)

    def check_end(self) -> None:
        """Raises InputError if samples or summaries are left over."""
        left = next(self._lengths, None) or next(self._rows, None)
        if left is not None or self._at != len(self._values):
            raise self._damaged("it has samples of no cell")

    def _damaged(self, what: str) -> InputError:
        return InputError(f"{self._name} is damaged: {what}")


def _decoded(content: bytes) -> PackedSamples:
    return msgspec.msgpack.decode(content, type=PackedSamples)


def _why_another(content: bytes, of: SamplesFile, run: str) -> str:
    try:
        own = _decoded(content).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        own = run
    if own != run:
        return f"belongs to the run {own!r}, not to {run!r}"
    if len(content) < of.bytes:
        return f"is cut off: it has {len(content)} of {of.bytes} bytes"
    return "is not what was written with it"


def _series(cell: CellResult) -> Iterator[Sequence[float]]:
    yield cell.samples
    yield from (one.samples for one in cell.series)


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


@lru_cache(maxsize=1024)
def _doubles(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}d")
