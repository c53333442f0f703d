"""Turns a run into tables: a row for each cell, or a row for each raw sample.

All exports and the Python API use these rows. Columns are fields, figures are in the unit that the
row names (SI base units), and absent values are None."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from linkgauge.model.by_name import by_name
from linkgauge.model.documents.history import shown_of
from linkgauge.model.documents.result import CellResult, Result, Run, Status, Verdict
from linkgauge.model.units import Better

from .results import size_of, size_without_cells

if TYPE_CHECKING:
    from linkgauge.judge.outcome import Outcome


class CellRow(msgspec.Struct, frozen=True, gc=False):
    """A cell as a row. `figure` is what a matrix shows: the `median`, or the best sample if the
    cell reports that. `low` to `high` is the 95 % interval of the median. 95 % and 99 % of the
    samples are at least as good as `slow_p95` and `slow_p99`. `expected` is the figure to expect of
    the hardware as it is, and `nominal` the figure if every link ran at its best, where this is
    more. `share` is how much `figure` is of `nominal`, else of `expected`; it is absent if the cell
    is not judged. `size` is in bytes (None for work without
    memory), `n` is the number of samples. `transfers` are in linkgauge's notation (`host:0 ->
    cuda:0`), joined by `&`. A benchmark that was skipped as a whole has a row with empty `row` and
    `column`."""

    run: str
    label: str
    benchmark: str
    backend: str
    size: int | None
    row: str
    column: str
    transfers: str
    status: Status
    verdict: Verdict
    unit: str
    better: Better
    figure: float | None = None
    median: float | None = None
    low: float | None = None
    high: float | None = None
    slow_p95: float | None = None
    slow_p99: float | None = None
    min: float | None = None
    max: float | None = None
    n: int = 0
    expected: float | None = None
    nominal: float | None = None
    share: float | None = None
    reason: str | None = None
    simulated: bool = False


class SampleRow(msgspec.Struct, frozen=True, gc=False):
    """Numbered from 0. `transfer` is empty for the headline figure, else the notation of the
    transfer, or of a rank's part in a single collective."""

    run: str
    benchmark: str
    backend: str
    size: int | None
    row: str
    column: str
    transfer: str
    sample: int
    value: float
    unit: str
    simulated: bool


class OneRun(msgspec.Struct, frozen=True):
    """`is_small`: its page should be small. `is_written`: the folder's files have just been written
    from it."""

    run: Run
    outcome: Outcome
    folder: Path | None = None
    is_small: bool = False
    is_written: bool = False


def cell_rows(run: Run) -> Iterator[CellRow]:
    for result in run.results:
        yield from result_rows(run, result)


def result_rows(run: Run, result: Result) -> Iterator[CellRow]:
    for cell in result.cells:
        yield _row(run, result, cell)
    if not result.cells:
        own = {"run": run.id, "size": size_without_cells(result)}
        no_cell = {"row": "", "column": "", "transfers": "", "verdict": "not judged"}
        yield by_name(CellRow, result, run, **own, **no_cell)


def _row(run: Run, result: Result, cell: CellResult) -> CellRow:
    own = {"run": run.id, "size": size_of(result, cell), **shown_of(cell)}
    return by_name(CellRow, cell, cell.summary, result, run, **own)


def sample_rows(run: Run) -> Iterator[SampleRow]:
    for result in run.results:
        for cell in result.cells:
            size = size_of(result, cell)
            head = (run.id, result.benchmark, result.backend, size, cell.row, cell.column)
            for transfer, samples in samples_of(cell):
                for number, value in enumerate(samples):
                    yield SampleRow(*head, transfer, number, value, result.unit, result.simulated)


def samples_of(cell: CellResult) -> Iterator[tuple[str, Sequence[float]]]:
    """The name is empty for the headline figure."""
    yield "", cell.samples
    for part in cell.parts:
        yield str(cell.transfers[part.transfer]), part.samples
    for own in cell.iterations:
        yield str(cell.transfers[own.rank]), own.samples
