"""Runs that were measured or read: `MeasuredRun`, `load` and `load_all`."""

from __future__ import annotations

import warnings
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from linkgauge.engine.kept.runs import is_run, read_run, run_folders
from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.model.printable import printable
from linkgauge.model.units import count_of
from linkgauge.report.files import write_run
from linkgauge.report.keeping import Kept, shown_as
from linkgauge.report.reading import judged
from linkgauge.report.results import label
from linkgauge.report.rows import OneRun, SampleRow, sample_rows
from linkgauge.report.tables import CELLS, SAMPLES, CellRow, RowTable, cell_rows

from .calling import path_of

if TYPE_CHECKING:
    import pandas as pd

StrPath = str | PathLike[str]
MOST_VERDICT = 100
"""The most characters of the verdict in a `repr`."""


class MeasuredRun(msgspec.Struct, frozen=True, dict=True, eq=False):
    """A run: `run` is the content of run.json, `outcome` the verdict, `folder` the run's folder."""

    run: Run
    outcome: Outcome
    folder: Path | None = None

    @cached_property
    def cells(self) -> tuple[CellRow, ...]:
        return tuple(cell_rows(self.run))

    @cached_property
    def figures(self) -> RowTable[CellRow]:
        return RowTable(CELLS, self.cells)

    @cached_property
    def samples(self) -> RowTable[SampleRow]:
        return RowTable(SAMPLES, tuple(sample_rows(self.run)))

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.outcome.findings

    @property
    def exit_code(self) -> int:
        """Returns 0 if all is well, 1 after a failure or a low cell, 3 after an error that cost
        results, 4 if nothing was measured, 130 if interrupted."""
        return self.outcome.code

    def to_pandas(self, *, samples: bool = False) -> pd.DataFrame:
        """Returns a row for each cell or, if `samples`, for each sample. Raises MissingPackage."""
        return (self.samples if samples else self.figures).to_pandas()

    def save(self, folder: StrPath) -> Path:
        """Writes the run into an existing folder. Returns run.json's path. Raises ResultsError."""
        return write_run(Path(folder), self.run)

    def __repr__(self) -> str:
        from linkgauge.report.words.worst import short_verdict

        run = self.run
        results = len({one.benchmark for one in run.results})
        counts = f"{count_of(results, 'benchmark')}, {count_of(len(self.cells))}"
        simulated = " SIMULATED" if run.simulated else ""
        where = run.machine.simulated or run.machine.host.hostname or "this machine"
        verdict = label(short_verdict(run, self.outcome), MOST_VERDICT)
        return printable(f"<linkgauge run {run.id}: {where}{simulated}, {counts}, {verdict}>")

    def _repr_html_(self) -> str:
        from linkgauge.report.reading import page_of_run
        from linkgauge.report.render.html import framed

        one = OneRun(self.run, self.outcome, self.folder, is_small=True)
        return framed(page_of_run(one, ("verdict", "figures")))


def view_of(kept: OneRun | Kept) -> MeasuredRun:
    """Returns a run as the API shows it. If it cannot be judged, its figures have no verdicts."""
    one = shown_as(kept.run, kept.outcome)
    return MeasuredRun(one.run, one.outcome, kept.folder)


def load(path: StrPath) -> MeasuredRun:
    """Reads a run.json, a journal.jsonl, a run's folder, or a file that `linkgauge pack` wrote.
    Raises InputError if there is no readable run."""
    path = path_of(path)
    if path.is_dir() and not is_run(path):
        raise InputError(f"{path} is not a run's folder: load_all() reads all runs in it")
    return view_of(judged(read_run(path), path))


def load_all(path: StrPath) -> tuple[MeasuredRun, ...]:
    """Reads all runs below a folder, sorted by path, or the one run in the folder itself. Warns of
    runs that cannot be read. Raises InputError if there are no runs."""
    path = path_of(path)
    found = [path] if is_run(path) else run_folders(path)
    runs = []
    for folder in found:
        try:
            runs.append(load(folder))
        except InputError as error:
            warnings.warn(f"left out: {error}", stacklevel=2)
    if not runs:
        raise InputError(f"no runs in {path}")
    return tuple(runs)
