"""The journal: a run's records as JSON lines, each written before the next cell starts.

The first line opens the run and holds its plan; each further line is a whole cell; the last
closes it. A journal cut off anywhere reads up to its last whole line, and `assemble` makes the
run of what is there: run.json is never anything but its journal put together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from linkgauge.model.errors import InputError, ResultsError
from linkgauge.model.machine import Machine
from linkgauge.model.result import CellResult, PlannedSheet, Result, Run, Settings, Sheet, worst

SYNC_SECONDS = 1.0
"""A power cut may cost this much; a crash of the process costs nothing that was flushed."""


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="opened"):
    """The run's identity and plan: all that is known before the first cell."""

    schema: Literal["linkgauge.journal/1"] = "linkgauge.journal/1"
    id: str
    label: str
    simulated: bool = False
    command: tuple[str, ...]
    started: str
    machine: Machine
    settings: Settings
    plan: tuple[PlannedSheet, ...]


class Measured(msgspec.Struct, frozen=True, tag_field="record", tag="cell"):
    """One cell; `sheet` indexes the plan."""

    sheet: int
    cell: CellResult


class Closed(msgspec.Struct, frozen=True, tag_field="record", tag="closed"):
    """The run came to its end at this time."""

    finished: str


Record = Opened | Measured | Closed

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


class Journal:
    """Appends records to a file that must not exist yet. Raises ResultsError with the path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._synced = time.monotonic()
        try:
            self._file: BinaryIO = path.open("xb")
        except OSError as error:
            raise ResultsError(f"cannot write {path}: {error.strerror}") from error

    def append(self, record: Record) -> None:
        try:
            self._file.write(_encoder.encode(record) + b"\n")
            self._file.flush()
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                self._sync()
        except OSError as error:
            raise ResultsError(f"cannot write {self._path}: {error.strerror}") from error

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        try:
            self._sync()
            self._file.close()
        except OSError as error:
            raise ResultsError(f"cannot write {self._path}: {error.strerror}") from error


def read_records(data: bytes) -> tuple[Record, ...]:
    """Records up to the last whole line. Raises InputError where not even the first is whole, or
    where a whole line is not a record."""
    records: list[Record] = []
    *lines, _unfinished = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            records.append(_decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"line {number} of the journal is not a record: {error}") from error
    if not records or not isinstance(records[0], Opened):
        raise InputError("the journal does not begin with a run's plan")
    return tuple(records)


def assemble(records: Iterable[Record]) -> Run:
    """The run that the records tell of. Sheets without cells keep their plan's reason; cells
    that were not reached are absent."""
    opened: Opened | None = None
    finished: str | None = None
    cells: dict[int, list[CellResult]] = {}
    for record in records:
        if isinstance(record, Opened):
            opened = record
        elif isinstance(record, Measured):
            cells.setdefault(record.sheet, []).append(record.cell)
        else:
            finished = record.finished
    if opened is None:
        raise InputError("the journal does not begin with a run's plan")
    return Run(
        id=opened.id,
        label=opened.label,
        simulated=opened.simulated,
        command=opened.command,
        started=opened.started,
        finished=finished,
        machine=opened.machine,
        settings=opened.settings,
        results=tuple(
            result_of(sheet, tuple(cells.get(number, ())))
            for number, sheet in enumerate(opened.plan)
            if number in cells or not sheet.cells
        ),
    )


def result_of(sheet: PlannedSheet, cells: tuple[CellResult, ...]) -> Result:
    """The sheet's result: its reason is the plan's, or that which all cells share that have one."""
    reasons = {cell.reason for cell in cells if cell.status != "pass"}
    status = worst(cell.status for cell in cells)
    shared = next(iter(reasons)) if len(reasons) == 1 and status != "pass" else None
    shown = {name: getattr(sheet, name) for name in Sheet.__struct_fields__}
    shown["reason"] = sheet.reason or shared
    return Result(**shown, status=status, cells=cells)
