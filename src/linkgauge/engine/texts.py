"""Texts that many cells share, stored once per result: run.json of 72 devices has 50,000 cells."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from linkgauge.model.errors import InputError
from linkgauge.model.result import Expected, Result, Run


def share_texts(run: Run) -> Run:
    """The run as it is written: a cell's expectation refers to the text among its result's."""
    return replace(run, results=tuple(map(_shared, run.results)))


def spread_texts(run: Run) -> Run:
    """The run as it is used: each cell has its own texts. Raises InputError for a reference to a
    missing text."""
    return replace(run, results=tuple(map(_spread, run.results)))


def _shared(result: Result) -> Result:
    places: dict[str, int] = {}

    def share(expected: Expected) -> Expected:
        if not expected.because:
            return expected
        place = places.setdefault(expected.because, len(places))
        return replace(expected, because="", text=place)

    shared = _with_expected(result, share)
    return replace(shared, texts=tuple(places))


def _spread(result: Result) -> Result:
    texts = result.texts

    def spread(expected: Expected) -> Expected:
        if expected.text is None:
            return expected
        if not 0 <= expected.text < len(texts):
            raise InputError(f"a cell of {result.benchmark} refers to a text that is missing")
        return replace(expected, because=texts[expected.text], text=None)

    return replace(_with_expected(result, spread), texts=())


def _with_expected(result: Result, change: Callable[[Expected], Expected]) -> Result:
    """The result with changed expectations; equal ones are changed once."""
    changed: dict[Expected, Expected] = {}
    for cell in result.cells:
        if cell.expected is not None and cell.expected not in changed:
            changed[cell.expected] = change(cell.expected)
    cells = (
        cell if cell.expected is None else replace(cell, expected=changed[cell.expected])
        for cell in result.cells
    )
    return replace(result, cells=tuple(cells))
