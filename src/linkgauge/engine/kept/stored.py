"""Writes and reads run.json. Shared values are stored once, samples in samples.bin."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict, fields, replace

from linkgauge.model.by_name import by_name
from linkgauge.model.documents.result import (
    CellResult,
    Expected,
    RankTimes,
    Result,
    Run,
    Status,
    TransferFigure,
)
from linkgauge.model.documents.stored import StoredCell, StoredPart, StoredResult, StoredTimes
from linkgauge.model.errors import InputError, OutcomeKind
from linkgauge.model.grouped import Shared
from linkgauge.model.notation import decode_hook, encode_hook
from linkgauge.model.notes import Concurrent, Imprecise, Note, Remark
from linkgauge.model.transfer import Report, Transfer

from .packed import PackedRun, PackedSeries

# What many cells share: texts, stored once per result, and values, kept once in memory. The
# run.json of 72 devices has 50,000 cells.

_OF_TEXTS = ("row", "column", "transfers", "repetitions", "interval", "readings")
"""The fields whose values most cells share with others."""


def share_texts(run: Run) -> Run:
    """Moves the explanations of expected figures from cells to results, as in run.json."""
    return replace(run, results=tuple(map(_shared, run.results)))


class Once:
    """A pool that keeps one copy of equal values, because most cells share their values."""

    def __init__(self) -> None:
        self.value = Shared()

    def of(self, cell: CellResult) -> CellResult:
        own = {name: self.value(getattr(cell, name)) for name in _OF_TEXTS}
        if all(one.nodes is None for one in cell.placement):  # else it has no hash
            own["placement"] = self.value(cell.placement)
        return replace(cell, **own)


def _shared(result: Result) -> Result:
    places: dict[str, int] = {}

    def share(expected: Expected) -> Expected:
        if not expected.because:
            return expected
        place = places.setdefault(expected.because, len(places))
        return replace(expected, because="", text=place)

    shared = _with_expected(result, share)
    return replace(shared, texts=tuple(places))


def spread_texts(result: Result) -> Result:
    """Copies a result's shared explanations into its cells. Raises InputError if one is missing."""
    texts = result.texts

    def spread(expected: Expected) -> Expected:
        if expected.text is None:
            return expected
        if not 0 <= expected.text < len(texts):
            raise InputError(f"a cell of {result.benchmark} refers to a text that is missing")
        return replace(expected, because=texts[expected.text], text=None)

    return replace(_with_expected(result, spread), texts=())


def _with_expected(result: Result, change: Callable[[Expected], Expected]) -> Result:
    changed: dict[Expected, Expected] = {}
    for cell in result.cells:
        if cell.expected is not None and cell.expected not in changed:
            changed[cell.expected] = change(cell.expected)
    cells = (
        cell if cell.expected is None else replace(cell, expected=changed[cell.expected])
        for cell in result.cells
    )
    return replace(result, cells=tuple(cells))


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


Found = TypeVar("Found")
_FIELDS = dict.fromkeys(CellResult.__struct_fields__)
_DEFAULTS = {
    one.name: one.default for one in fields(CellResult) if one.default is not msgspec.NODEFAULT
}
_COMMON = (
    "bytes", "loops", "stopped", "verified", "locked", "placement", "repetitions", "interval",
    "parts", "expected", "not_judged", "readings", "definition", "phase", "iterations", "workload",
    "round",
)  # fmt: skip
"""The fields in which cells are often equal; cells store all other fields themselves."""
_BLANK: tuple[object, ...] = (None, ())


def stored(run: Run, samples: PackedRun, with_words: Callable[[Result], Result]) -> Iterator[bytes]:
    """Yields the text of run.json in pieces. All pieces of `samples` must have been taken before,
    because the text has their checksum. `with_words` adds the text of notes to a result."""
    known = _fields_of(run) | {"samples": samples.file}
    for number, name in enumerate(dict.fromkeys(("schema", "id", "label", "samples", *known))):
        yield b'%b "%b": ' % (b",\n" if number else b"{\n", name.encode())
        if name != "results":
            yield from _indented(memoryview(_encoder.encode(known[name])), 1)
            continue
        # One result at a time, because a large cluster's cells take much memory.
        for place, result in enumerate(run.results):
            yield b",\n" if place else b"[\n"
            yield from _result_pieces(_shared(with_words(result)))
        yield b"\n ]" if run.results else b"[]"
    yield b"\n}\n"


def _fields_of(value: Run | Result) -> dict[str, Any]:
    return {name: one for name, one in asdict(value).items() if one is not msgspec.UNSET}


def _indented(value: memoryview, depth: int) -> Iterator[bytes]:
    line = b"\n" + b" " * depth
    if len(value) < _LARGE or bytes(value[:1]) not in (b"{", b"["):
        yield msgspec.json.format(value, indent=1).replace(b"\n", line)
        return
    parts: Iterable[tuple[bytes, msgspec.Raw]]
    if bytes(value[:1]) == b"{":
        begin, end = b"{", b"}"
        known = msgspec.json.decode(value, type=dict[str, msgspec.Raw])
        parts = ((_encoder.encode(name) + b": ", one) for name, one in known.items())
    else:
        begin, end = b"[", b"]"
        parts = ((b"", one) for one in msgspec.json.decode(value, type=list[msgspec.Raw]))
    for number, (name, one) in enumerate(parts):
        yield (b"," if number else begin) + line + b" " + name
        yield from _indented(memoryview(one), depth + 1)
    yield line + end


_encoder = msgspec.json.Encoder(enc_hook=encode_hook)
_LARGE = 1 << 20
"""A value of at least as many bytes is written part by part."""


def _result_pieces(result: Result) -> Iterator[bytes]:
    placements, readings = _ValueTable(), _ValueTable()
    columns = dict(_columns(result.cells, placements, readings))
    common = dict(_shared_by_most(columns))
    known = _fields_of(result)
    del known["cells"]
    known |= {"common": common, "placements": placements.values, "readings": readings.values}
    yield b"  {\n"
    for name, value in known.items():
        yield b'   "%b": %b,\n' % (name.encode(), _encoder.encode(value))
    cells = _encoder.encode_lines(_own(columns, common)).strip().replace(b"\n", b",\n    ")
    yield b'   "cells": [' + (b"\n    " + cells + b"\n   ]" if cells else b"]") + b"\n  }"


class _ValueTable:
    def __init__(self) -> None:
        self.values: list[object] = []
        self._places: dict[object, int] = {}

    def places(self, of: Iterable[object]) -> tuple[int, ...]:
        return tuple(map(self._place, of))

    def _place(self, one: object) -> int:
        new = len(self.values)
        try:
            place = self._places.setdefault(one, new)
        except TypeError:  # it has no hash
            place = new
        if place == new:
            self.values.append(one)
        return place


def _columns(
    cells: Sequence[CellResult], placements: _ValueTable, readings: _ValueTable
) -> Iterator[tuple[str, Sequence[object]]]:
    changes: dict[str, Callable[[Any], object]] = {
        "placement": placements.places,
        "readings": readings.places,
        "parts": _stored_parts,
        "iterations": lambda times: tuple(StoredTimes(one.rank) for one in times),
    }
    for name in _FIELDS:
        values: list[object] = list(map(attrgetter(name), cells))
        if name != "samples" and not all(map(_BLANK.__contains__, values)):
            yield name, list(map(changes[name], values)) if name in changes else values


def _stored_parts(parts: tuple[TransferFigure, ...]) -> tuple[StoredPart, ...]:
    return tuple(StoredPart(one.transfer, one.bytes, expected=one.expected) for one in parts)


def _shared_by_most(columns: Mapping[str, Sequence[object]]) -> Iterator[tuple[str, object]]:
    for name in filter(columns.__contains__, _COMMON):
        try:
            found = Counter(columns[name])
        except TypeError:  # it has no hash
            continue
        ((value, count),) = found.most_common(1)
        if value not in _BLANK and count > 1 and 2 * count > len(columns[name]):
            yield name, value


def _own(
    columns: Mapping[str, Sequence[object]], common: Mapping[str, object]
) -> Iterator[dict[str, object]]:
    left_out = [(name, (common[name],) if name in common else _BLANK) for name in columns]
    for values in zip(*columns.values(), strict=True):
        fields = zip(left_out, values, strict=True)
        yield {name: value for (name, without), value in fields if value not in without}


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
    """Reads the results of a run.json in turn, with their samples. Raises InputError if samples do
    not fit or cells share more than `most` values, and msgspec.DecodeError for broken JSON."""

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
