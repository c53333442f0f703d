"""Joins a run with its verdict, and yields its raw samples as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from linkgauge.model.cell_id import bytes_of
from linkgauge.model.documents.result import CellResult, Run

from .forms import cells_of

if TYPE_CHECKING:
    from linkgauge.judge.outcome import Outcome


class SampleRow(msgspec.Struct, frozen=True, gc=False):
    """A raw sample as a row.

    run: The run's id.
    benchmark: The benchmark.
    backend: The backend.
    size: The bytes; null for work without memory.
    row: The row of the matrix.
    column: The column of the matrix.
    transfer: Empty for the headline figure, else the single transfer, or a rank's part in a
        collective.
    sample: The number of the sample, from 0.
    value: The sample.
    unit: The unit of the value.
    simulated: Whether the machine is simulated."""

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
    """A run with its verdict. `is_small` is true if the run's page is limited in size, for sharing.
    `is_written` is true if the files in `folder` have just been written from `run`."""

    run: Run
    outcome: Outcome
    folder: Path | None = None
    is_small: bool = False
    is_written: bool = False


def sample_rows(run: Run) -> Iterator[SampleRow]:
    for result, cell in cells_of(run.results):
        size = bytes_of(cell, result.size)
        head = (run.id, result.benchmark, result.backend, size, cell.row, cell.column)
        for transfer, samples in samples_of(cell):
            for number, value in enumerate(samples):
                yield SampleRow(*head, transfer, number, value, result.unit, result.simulated)


def samples_of(cell: CellResult) -> Iterator[tuple[str, Sequence[float]]]:
    """Yields samples with the name of their transfer, which is empty for the headline figure."""
    yield "", cell.samples
    for part in cell.parts:
        yield str(cell.transfers[part.transfer]), part.samples
    for own in cell.iterations:
        yield str(cell.transfers[own.rank]), own.samples
