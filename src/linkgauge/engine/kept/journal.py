"""The journal: the records of a run as JSON lines, each written before the next cell starts.

The first line opens the run, with its plan and machine. Most other lines are repetitions of cells.
The last line closes the run. The file is created with its first line, by rename. If the file is cut
off, its whole lines are read, and the run resumes after them. `assemble` builds the run from the
records alone. Only run.json has verdicts, limits, waivers and copies that explain collectives."""

from __future__ import annotations

import fcntl
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar

import msgspec

from linkgauge.engine.repetitions import CellAt, Repetitions
from linkgauge.model.by_name import by_name
from linkgauge.model.documents.result import (
    SCHEMA,
    CellResult,
    PlannedTable,
    Result,
    Run,
    worst,
)
from linkgauge.model.errors import DeviceBusy, InputError, ResultsError
from linkgauge.model.hardware.inventory import Inventory
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.joining import joined_known
from linkgauge.model.kernel_log import KernelLog
from linkgauge.model.notation import decode_hook, encode_hook
from linkgauge.model.operations.busbw import average_bus
from linkgauge.model.printable import escaped
from linkgauge.model.ranks import LostRank
from linkgauge.model.settings import Budget, Settings
from linkgauge.model.shareable import Argument, FileName, Label, OwnName, Time

if TYPE_CHECKING:
    from .fitting import Fitting

RUN_FILE = "run.json"
JOURNAL_FILE = "journal.jsonl"
SYNC_SECONDS = 1.0
"""The seconds of measurements that a power cut may cost. A crash of the process costs nothing that
was flushed."""


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="opened"):
    """The first record: enough to resume the run. `options` are the options in effect, as text."""

    schema: Literal["linkgauge.journal/1", "linkgauge.journal/2"] = "linkgauge.journal/2"
    id: OwnName
    label: Label
    simulated: bool = False
    command: tuple[Argument, ...]
    started: Time
    machine: Machine
    settings: Settings
    plan: tuple[PlannedTable, ...]
    budget: Budget | None = None
    options: dict[Argument, Argument] = {}

    def repetitions(self) -> Repetitions:
        is_oversubscribed = self.machine.oversubscription is not None
        return Repetitions(
            self.plan, self.settings, self.budget, is_oversubscribed=is_oversubscribed
        )


class MeasuredRepetition(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="record", tag="cell"
):
    """A repetition of a cell. `table` is the index of the cell's table in the plan. `round` is the
    number of the round, from 0, in a soak (which repeats its plan). `at` is how many seconds the
    run had measured after the repetition, in a soak or with a time budget."""

    table: int
    cell: CellResult
    round: int | None = None
    at: float | None = None


class Again(msgspec.Struct, frozen=True, gc=False, tag_field="record", tag="again"):
    cells: tuple[CellAt, ...]


class Logged(msgspec.Struct, frozen=True, tag_field="record", tag="logged"):
    """A record of the kernel's messages since the previous record of this kind."""

    log: KernelLog


class Left(msgspec.Struct, frozen=True, tag_field="record", tag="left"):
    """A record of the names of all files that a profiler has left in the run's folder so far."""

    files: tuple[FileName, ...]


class LossRecord(msgspec.Struct, frozen=True, tag_field="record", tag="lost"):
    rank: LostRank


class Resumed(msgspec.Struct, frozen=True, tag_field="record", tag="resumed"):
    started: Time
    command: tuple[Argument, ...]


class Closed(msgspec.Struct, frozen=True, tag_field="record", tag="closed"):
    finished: Time
    after: Inventory | None = None


Record = Opened | MeasuredRepetition | Again | Logged | Left | LossRecord | Resumed | Closed

Taken = TypeVar("Taken")

_encoder = msgspec.json.Encoder(enc_hook=encode_hook)
_decoder = cache(lambda: msgspec.json.Decoder(Record, dec_hook=decode_hook()))
"""Making it takes 10 ms, and only readers need it."""


class Journal:
    """Appends records to a file that it keeps locked. Raises ResultsError if it cannot write."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._synced = time.monotonic()
        self._is_broken = False

    @classmethod
    def begin(cls, path: Path, opened: Opened) -> Journal:
        """Creates the file together with its first record. Raises ResultsError if it exists."""
        partial = path.with_name(path.name + ".partial")
        if path.exists():
            raise ResultsError(f"cannot write {path}: File exists")
        try:
            with ExitStack() as undo:
                file = undo.enter_context(partial.open("xb"))
                undo.callback(partial.unlink, missing_ok=True)
                _hold(file, path)
                file.writelines(line_of(opened))
                file.flush()
                os.fsync(file.fileno())
                partial.rename(path)
                _sync_folder(path.parent)
                undo.pop_all()
        except OSError as error:
            raise ResultsError(f"cannot write {path}: {error.strerror}") from error
        return cls(path, file)

    @classmethod
    def reopen(cls, path: Path, take: Callable[[Iterator[Record]], Taken]) -> tuple[Journal, Taken]:
        """Opens a journal and cuts off a last record that is not whole. Returns the journal, and
        what `take` returns for its records. Raises InputError if the file is missing or unreadable,
        and DeviceBusy if another process has locked the file."""
        try:
            with ExitStack() as undo:
                file = undo.enter_context(path.open("r+b"))
                _hold(file, path)
                taken = take(records_in(_whole_lines(file)))
                file.truncate()
                undo.pop_all()
        except OSError as error:
            why = f"{error.strerror}: give a run's folder"
            raise InputError(f"cannot resume {path}: {why}") from error
        except InputError as error:
            raise InputError(f"cannot resume {path}: {error}: start a new run") from error
        return cls(path, file), taken

    def append(self, record: Record) -> None:
        try:
            self._file.writelines(line_of(record))
            self._file.flush()
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            self._is_broken = True
            raise ResultsError(f"cannot write {self._path}: {error.strerror}") from error

    def close(self) -> None:
        try:
            with self._file:
                os.fsync(self._file.fileno())
        except OSError as error:
            if self._is_broken:
                return  # the write error has been reported
            raise ResultsError(f"cannot write {self._path}: {error.strerror}") from error


def line_of(record: Record) -> tuple[bytes, bytes]:
    """Returns a line and its line break separately, to avoid a copy of a large line."""
    return escaped(_encoder.encode(record)), b"\n"


def _hold(file: BinaryIO, path: Path) -> None:
    """Locks the file, if possible. Raises DeviceBusy if another process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DeviceBusy(
            f"{path.parent} is still in progress in another process, so it cannot be resumed"
        ) from error
    except OSError:
        pass


def _sync_folder(folder: Path) -> None:
    """Makes the name of a new file survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_records(data: bytes) -> tuple[Record, ...]:
    """Returns the records up to the last whole line. Raises InputError if there is no whole line,
    or if a line is not a record or does not fit the plan."""
    return tuple(records_of(data))


def records_of(data: bytes) -> Iterator[Record]:
    """Yields the records one by one. Raises the same errors as `read_records`."""
    return records_in(_whole_lines(BytesIO(data)))


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yields a journal's whole lines. The file's position is after the last line yielded."""
    for line in file:
        if not line.endswith(b"\n"):
            file.seek(-len(line), os.SEEK_CUR)
            return
        yield line


def records_in(lines: Iterable[bytes]) -> Iterator[Record]:
    from .fitting import Fitting  # only readers need these
    from .reading import current, in_todays_words, with_gates

    number, fitting = 0, None
    for number, line in enumerate(lines, start=1):
        try:
            record = _decoder().decode(in_todays_words(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"line {number} of the journal is not a record: {error}") from error
        if fitting is None:
            fitting = Fitting(opening((record,)).plan)
            yield record
            continue
        try:
            _check(fitting, record)
        except InputError as error:
            raise InputError(f"line {number} of the journal does not fit: {error}") from error
        if isinstance(record, MeasuredRepetition):
            record = msgspec.structs.replace(record, cell=with_gates(current(record.cell)))
        yield record
    if not number:
        opening(())


def _check(fitting: Fitting, record: Record) -> None:
    if isinstance(record, Opened):
        raise InputError("it opens a run, as the first line does")
    if isinstance(record, MeasuredRepetition):
        fitting.check(record.table, record.cell, record.at)
    elif isinstance(record, Again):
        for cell in record.cells:
            fitting.planned(cell.table, cell.place)


def opening(records: Sequence[Record]) -> Opened:
    """Returns the first record. Raises InputError if it does not hold a run's plan."""
    if records and isinstance(records[0], Opened):
        return records[0]
    raise InputError("the journal does not start with a run's plan")


def read_opening(folder: Path) -> Opened:
    """Returns the first record. Raises OSError without a journal, InputError without a plan."""
    with (folder / JOURNAL_FILE).open("rb") as file:
        return opening(read_records(file.readline()))


def repetitions_of(records: Sequence[Record]) -> Repetitions:
    repetitions = opening(records).repetitions()
    for record in records:
        follow(repetitions, record)
    return repetitions


def follow(repetitions: Repetitions, record: Record) -> None:
    if isinstance(record, MeasuredRepetition):
        repetitions.add(record.table, record.cell, record.at)
    elif isinstance(record, Again):
        repetitions.again(record.cells)


def assemble(
    records: Sequence[Record], cells_of: Callable[[int], Sequence[CellResult]] | None = None
) -> Run:
    """Builds the run that the records describe. `cells_of` returns a table's measured cells in the
    plan's order (by default, from the records). Cells that were not measured are absent."""
    opened = opening(records)
    cells_of = cells_of or repetitions_of(records).cells
    results: list[Result] = []
    for number, table in enumerate(opened.plan):
        cells = cells_of(number)
        if cells or not table.cells:  # a table without planned cells keeps the plan's reason
            results.append(result_of(table, cells))
    of: defaultdict[type, list[Any]] = defaultdict(list)
    for record in records:
        of[type(record)].append(record)
    end = of[Closed][-1] if of[Closed] else None
    return by_name(
        Run,
        opened,
        schema=SCHEMA,
        budget=opened.budget or msgspec.UNSET,
        resumed=tuple(map(attrgetter("started"), of[Resumed])),
        finished=end and end.finished,
        after=end and end.after,
        kernel_log=joined_known(map(attrgetter("log"), of[Logged])),
        results=tuple(results),
        profiler_files=of[Left][-1].files if of[Left] else (),
        lost=of[LossRecord][0].rank if of[LossRecord] else None,
    )


def result_of(table: PlannedTable, cells: Sequence[CellResult]) -> Result:
    """Returns a table's result, with the plan's reason or one that all failed cells share."""
    reasons = {cell.reason for cell in cells if cell.status != "pass"}
    status = worst(map(attrgetter("status"), cells))
    shared = next(iter(reasons)) if len(reasons) == 1 and status != "pass" else None
    own = {"reason": table.reason or shared, "status": status, "cells": tuple(cells)}
    return by_name(Result, table, **own, average=average_bus(cells))
