"""Makes a run's rows for tables: one per cell, or one per raw sample. Figures are in SI units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from linkgauge.model.by_name import by_name, shown_of
from linkgauge.model.cell_id import bytes_of
from linkgauge.model.documents.result import CellResult, Result, Run, Status, Verdict
from linkgauge.model.units import Better

from .forms import cells_of
from .results import size_without_cells

if TYPE_CHECKING:
    from linkgauge.judge.outcome import Outcome


class CellRow(msgspec.Struct, frozen=True, gc=False):
    """A cell as a row. A benchmark that was skipped as a whole has a row, too.

    run: The run's id.
    label: The run's label.
    benchmark: The benchmark.
    backend: The backend.
    size: The bytes; null for work without memory.
    row: The row of the matrix; empty if the benchmark was skipped.
    column: The column of the matrix; empty if the benchmark was skipped.
    transfers: The transfers (`host:0 -> cuda:0`), joined by `&`.
    status: The status.
    verdict: The verdict.
    unit: The unit of the figures.
    better: Whether higher or lower figures are better.
    figure: The figure in a matrix: the cell's median or, for some benchmarks, its best sample.
    median: The median.
    low: The lower end of the 95 % interval of the median.
    high: The upper end of the 95 % interval of the median.
    slow_p95: 95 % of the samples are at least as good.
    slow_p99: 99 % of the samples are at least as good.
    min: The least sample.
    max: The greatest sample.
    n: The number of samples.
    expected: The figure to expect of the hardware as it is.
    nominal: The figure to expect with all links at their best rate; null if the same as expected.
    share: The figure as a share of `nominal`, else of `expected`; null if it is not judged.
    reason: Why the cell was skipped or failed, or was not judged.
    simulated: Whether the machine is simulated."""

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
    """A run with its verdict. `is_small` is true if the run's page must be small. `is_written` is
    true if the files in `folder` have just been written from `run`."""

    run: Run
    outcome: Outcome
    folder: Path | None = None
    is_small: bool = False
    is_written: bool = False


def cell_rows(run: Run) -> Iterator[CellRow]:
    return (row for result in run.results for row in result_rows(run, result))


def result_rows(run: Run, result: Result) -> Iterator[CellRow]:
    for cell in result.cells:
        yield _row(run, result, cell)
    if not result.cells:
        own = {"run": run.id, "size": size_without_cells(result)}
        no_cell = {"row": "", "column": "", "transfers": "", "verdict": "not judged"}
        yield by_name(CellRow, result, run, **own, **no_cell)


def _row(run: Run, result: Result, cell: CellResult) -> CellRow:
    own = {"run": run.id, "size": bytes_of(cell, result.size), **shown_of(cell)}
    return by_name(CellRow, cell, cell.summary, result, run, **own)


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
