"""What a kept run's file expects of its cells: the history keeps figures and verdicts alone."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from linkgauge.engine.journal import RUN_FILE
from linkgauge.engine.runs import MOST_BYTES
from linkgauge.machine.given import read_given
from linkgauge.model.cell_id import CellId, numbered
from linkgauge.model.errors import InputError
from linkgauge.model.result import Expected

Expectations = dict[CellId, Expected]


class _Cell(msgspec.Struct):
    """The part of a cell that is needed; reading all of it takes far longer."""

    row: str
    column: str
    expected: Expected | UnsetType | None = UNSET


class _Common(msgspec.Struct, frozen=True):
    """What holds of the cells that do not say otherwise."""

    expected: Expected | None = None


class _Result(msgspec.Struct):
    benchmark: str
    backend: str
    size: int
    cells: tuple[_Cell, ...]
    common: _Common = _Common()


class _Run(msgspec.Struct):
    id: str
    results: tuple[_Result, ...]


_decoder = msgspec.json.Decoder(_Run)


def expectations_in(folder: Path, run: str) -> Expectations:
    """Those of the run with this id, whose folder this is; none where its run.json is not there, is
    another run's, or cannot be read."""
    path = folder / RUN_FILE
    try:
        of = path.stat()
        return _read(path, run, of.st_mtime_ns, of.st_size)
    except OSError:
        return {}


@lru_cache(maxsize=64)
def _read(path: Path, run: str, _changed: int, _size: int) -> Expectations:
    try:
        found = _decoder.decode(read_given(path, MOST_BYTES, begins=b"{"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InputError):
        return {}
    if found.id != run:
        return {}
    return {
        of.cell((cell.row, cell.column), repeat): expected
        for result, of, repeat in numbered(found.results)
        for cell in result.cells
        if (expected := result.common.expected if cell.expected is UNSET else cell.expected)
    }
