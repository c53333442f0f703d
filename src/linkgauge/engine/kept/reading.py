"""Reads run.json, also of earlier versions, and samples.bin. Shared values are kept once."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from math import isfinite, isinf, isnan
from typing import Any, TypeVar

import msgspec
from msgspec.structs import fields, replace

from linkgauge.model.by_name import by_name
from linkgauge.model.documents.result import CellResult, RankTimes, Result, Status, TransferFigure
from linkgauge.model.documents.stored import PackedSamples, SamplesFile, StoredCell, StoredResult
from linkgauge.model.errors import InputError, OutcomeKind
from linkgauge.model.grouped import Shared
from linkgauge.model.notation import decode_hook
from linkgauge.model.notes import Concurrent, Imprecise, Note, Remark
from linkgauge.model.stats.summary import Summary
from linkgauge.model.transfer import Report, Transfer

from .packed import ROW

MOST_SAMPLES = 1 << 28
"""The most bytes of a run's samples. Each number of 8 bytes takes 32 bytes of memory once read."""
_LENGTH = struct.Struct("<I")
_SURE = 8
"""The number of leading figures in a row that are never null."""
_OF_TEXTS = ("row", "column", "transfers", "repetitions", "interval", "readings")
"""The fields whose values most cells share with others."""


class Once:
    """A pool that keeps one copy of equal values, because most cells share their values."""

    def __init__(self) -> None:
        self.value = Shared()

    def of(self, cell: CellResult) -> CellResult:
        own = {name: self.value(getattr(cell, name)) for name in _OF_TEXTS}
        if all(one.nodes is None for one in cell.placement):  # else it has no hash
            own["placement"] = self.value(cell.placement)
        return replace(cell, **own)


# Reads files of earlier versions.

_EARLIER = (
    (b'"verdict":"unknown"', b'"verdict":"not judged"'),
    (b'"verdict": "unknown"', b'"verdict": "not judged"'),
    (b'"not_judged":"unsure"', b'"not_judged":null'),
    (b'"not_judged": "unsure"', b'"not_judged": null'),
    (b'"sheet":', b'"table":'),
    (b'"visits"', b'"repetitions"'),
    (b'"apart":', b'"cpu_distances":'),
    (b'"code":"beside"', b'"code":"concurrent"'),
    (b'"code": "beside"', b'"code": "concurrent"'),
    (b'"crowd":', b'"oversubscription":'),
    (b'"struck":', b'"failed":'),
    (b'"drawn":', b'"sampled":'),
    (b'"alike":', b'"pooled":'),
    (b'"searches":', b'"tunes":'),
    (b'"not-revisited"', b'"not-repeated"'),
)
"""The words and keys of earlier versions in their files, and today's. A text cannot hold them,
because its quotes are escaped. A figure that was `unsure` is judged anew."""


def in_todays_words(data: bytes) -> bytes:
    for earlier, today in _EARLIER:
        data = data.replace(earlier, today)
    return data


_WORDS: dict[OutcomeKind, tuple[str, ...]] = {
    "peer": ("peer access", "p2p"),
    "imex": ("imex", "fabric handle"),
    "lost": ("device lost", "device_lost", "fallen off the bus", "gpu is lost"),
    "memory": ("out of memory", "out_of_memory", "cannot allocate"),
    "crash": ("was ended by",),
}
"""Texts in the reasons of earlier versions that show the kind of outcome."""


_BESIDE = re.compile(r"measured at the same time as (\d+) other pairs")
_IMPRECISE = re.compile(
    r"precision of ±([\d.]+)% missed: (?:no interval|±([\d.]+)%) after (\d+) samples; .*"
)


def current(cell: CellResult) -> CellResult:
    """Converts a cell of an earlier version, in which outcomes and notes were only text."""
    if cell.status != "pass" and cell.kind is None:
        cell = replace(cell, kind=_kind_of(cell))
    if cell.warnings:
        cell = replace(cell, notes=cell.notes or tuple(map(_note, cell.warnings)), warnings=())
    return cell


def with_gates(cell: CellResult) -> CellResult:
    """Adds `repetitions` to a cell of an old journal, whose samples had a start signal each."""
    if cell.repetitions or not cell.samples:
        return cell
    return replace(cell, repetitions=((1,) * len(cell.samples),))


def _note(warning: str) -> Note:
    if found := _BESIDE.fullmatch(warning):
        return Concurrent(int(found[1]))
    if found := _IMPRECISE.fullmatch(warning):
        reached = float(found[2]) / 100 if found[2] else None
        return Imprecise(float(found[1]) / 100, reached, int(found[3]))
    return Remark(warning)


def _kind_of(cell: CellResult) -> OutcomeKind | None:
    if cell.status == "timeout":
        return "timeout"
    if cell.status == "fail":
        return "wrong-bytes" if cell.verified is False else "limit"
    reason = (cell.reason or "").lower()
    return next((kind for kind, words in _WORDS.items() if any(w in reason for w in words)), None)


_FIELDS = frozenset(CellResult.__struct_fields__)
_DEFAULTS = {
    one.name: one.default for one in fields(CellResult) if one.default is not msgspec.NODEFAULT
}


Found = TypeVar("Found")


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
            self._rows = ROW.iter_unpack(whole.summaries)
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


@lru_cache(maxsize=1024)
def _doubles(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}d")


class _PackedCell(StoredCell, frozen=True, gc=False):
    placement: tuple[int, ...] = ()
    readings: tuple[int, ...] = ()


class _SharedFields(_PackedCell, frozen=True, gc=False):
    row: str = ""
    column: str = ""
    transfers: tuple[Transfer, ...] = ()
    report: Report = Report.FIRST
    status: Status = "skip"


class _ResultOutline(StoredResult, frozen=True, kw_only=True):
    cells: tuple[msgspec.Raw, ...]  # type: ignore[assignment]
    common: msgspec.Raw = msgspec.Raw(b"{}")  # type: ignore[assignment]


class ResultReader:
    """Reads the results of a run.json one after another, with their samples. Raises InputError if
    the samples do not fit the cells, or if cells share more than `most` values in all, as only a
    forged file does. Raises msgspec.DecodeError for broken JSON."""

    def __init__(self, series: PackedSeries, most: int) -> None:
        hook = decode_hook()
        self._outline = msgspec.json.Decoder(_ResultOutline, dec_hook=hook)
        self._common = msgspec.json.Decoder(_SharedFields, dec_hook=hook)
        self._cell = msgspec.json.Decoder(_PackedCell, dec_hook=hook)
        self._keys = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._once = Once()
        self._series = series
        self._left = most

    def result(self, raw: msgspec.Raw) -> Result:
        of = self._outline.decode(raw)
        self._left -= bytes(of.common).count(b",") * len(of.cells)
        if self._left < 0:
            raise InputError(f"the cells of {of.benchmark} have more values than any run has")
        shared = _DEFAULTS | self._said(self._common.decode(of.common), of.common, of)
        cells = (self._whole(shared | self._said(self._cell.decode(c), c, of)) for c in of.cells)
        return by_name(Result, of, cells=tuple(cells), texts=())

    def _said(self, cell: _PackedCell, raw: msgspec.Raw, of: StoredResult) -> dict[str, Any]:
        known = {name: getattr(cell, name) for name in self._keys.decode(raw) if name in _FIELDS}
        if "placement" in known:
            known["placement"] = _found(cell.placement, of.placements or (), of)
        if "readings" in known:
            known["readings"] = _found(cell.readings, of.readings or (), of)
        if cell.expected is not None and cell.expected.text is not None:
            (text,) = _found((cell.expected.text,), of.texts, of)
            known["expected"] = self._once.value(replace(cell.expected, because=text, text=None))
        return known

    def _whole(self, known: dict[str, Any]) -> CellResult:
        samples, summary = self._series.samples, self._series.summary
        for name in ("row", "column", "transfers"):
            known[name] = self._once.value(known[name])
        known["samples"] = samples()
        known["parts"] = tuple(
            TransferFigure(one.transfer, one.bytes, samples(), summary(), one.expected)
            for one in known["parts"]
        )
        known["iterations"] = tuple(
            RankTimes(one.rank, samples(), summary()) for one in known["iterations"]
        )
        return current(CellResult(**known))


def _found(places: tuple[int, ...], among: Sequence[Found], of: Result) -> tuple[Found, ...]:
    if places and not 0 <= min(places) <= max(places) < len(among):
        raise InputError(f"a cell of {of.benchmark} refers to a text or a value that is missing")
    return tuple([among[place] for place in places])
