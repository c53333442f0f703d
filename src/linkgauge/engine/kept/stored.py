"""Writes run.json. Shared values are stored once, samples in samples.bin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from linkgauge.model.documents.result import CellResult, Expected, Result, Run, TransferFigure
from linkgauge.model.documents.stored import StoredPart, StoredTimes
from linkgauge.model.errors import InputError
from linkgauge.model.notation import encode_hook

from .packed import PackedRun

# What many cells share: texts, stored once per result. The run.json of 72 devices has 50,000 cells.


def share_texts(run: Run) -> Run:
    """Moves the explanations of expected figures from cells to results, as in run.json."""
    return replace(run, results=tuple(map(_shared, run.results)))


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
    cells = list(result.cells)
    for at, cell in enumerate(cells):
        if (known := cell.expected) is not None:
            changed[known] = changed.get(known) or change(known)
            cells[at] = replace(cell, expected=changed[known])
    return replace(result, cells=tuple(cells))


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
    placements, readings = list[object](), list[object]()
    columns = dict(_columns(result.cells, placements, readings))
    common: dict[str, object] = {}
    for name in filter(columns.__contains__, _COMMON):
        try:
            found = Counter(columns[name])
        except TypeError:  # it has no hash
            continue
        ((value, count),) = found.most_common(1)
        if value not in _BLANK and count > 1 and 2 * count > len(columns[name]):
            common[name] = value
    known = _fields_of(result)
    del known["cells"]
    known |= {"common": common, "placements": placements, "readings": readings}
    yield b"  {\n"
    for name, value in known.items():
        yield b'   "%b": %b,\n' % (name.encode(), _encoder.encode(value))
    cells = _encoder.encode_lines(_own(columns, common)).strip().replace(b"\n", b",\n    ")
    yield b'   "cells": [' + (b"\n    " + cells + b"\n   ]" if cells else b"]") + b"\n  }"


def _places(
    values: list[object], known: dict[object, int], of: Iterable[object]
) -> tuple[int, ...]:
    """Returns the places in `values`, to which new ones are added. `known` has them by value."""
    found: list[int] = []
    for one in of:
        new = len(values)
        try:
            place = known.setdefault(one, new)
        except TypeError:  # it has no hash
            place = new
        if place == new:
            values.append(one)
        found.append(place)
    return tuple(found)


def _columns(
    cells: Sequence[CellResult], placements: list[object], readings: list[object]
) -> Iterator[tuple[str, Sequence[object]]]:
    changes: dict[str, Callable[[Any], object]] = {
        "placement": partial(_places, placements, {}),
        "readings": partial(_places, readings, {}),
        "parts": _stored_parts,
        "iterations": lambda times: tuple(StoredTimes(one.rank) for one in times),
    }
    for name in CellResult.__struct_fields__:
        values: list[object] = list(map(attrgetter(name), cells))
        if name != "samples" and not all(map(_BLANK.__contains__, values)):
            yield name, list(map(changes[name], values)) if name in changes else values


def _stored_parts(parts: tuple[TransferFigure, ...]) -> tuple[StoredPart, ...]:
    return tuple(StoredPart(one.transfer, one.bytes, expected=one.expected) for one in parts)


def _own(
    columns: Mapping[str, Sequence[object]], common: Mapping[str, object]
) -> Iterator[dict[str, object]]:
    left_out = [(name, (common[name],) if name in common else _BLANK) for name in columns]
    for values in zip(*columns.values(), strict=True):
        fields = zip(left_out, values, strict=True)
        yield {name: value for (name, without), value in fields if value not in without}
