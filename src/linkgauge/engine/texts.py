"""What many cells share: texts, stored once per result, and values, kept once in memory. The
run.json of 72 devices has 50,000 cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from linkgauge.model.errors import InputError
from linkgauge.model.result import CellResult, Expected, Result, Run

Value = TypeVar("Value")
_COMMON = ("row", "column", "transfers", "visits", "interval", "readings")
"""Of which few cells have their own."""


def share_texts(run: Run) -> Run:
    """The run as it is written: a cell's expectation refers to the text among its result's."""
    return replace(run, results=tuple(map(_shared, run.results)))


class Once:
    """Values that cells have in common, each kept once: 50,000 cells have few different ones."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def of(self, cell: CellResult) -> CellResult:
        own = {name: self.value(getattr(cell, name)) for name in _COMMON}
        if all(one.nodes is None for one in cell.placement):  # else it has no hash
            own["placement"] = self.value(cell.placement)
        return replace(cell, **own)

    def value(self, one: Value) -> Value:
        known: Value = self._known.setdefault(one, one)
        return known


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
    """The result as it is used: each cell has its own texts. Raises InputError for a reference to a
    missing text."""
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
