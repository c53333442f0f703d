"""The Python API: `linkgauge.load`, `load_all` and `measure`, which the package exports.

Like the command line, the API only calls the engine, judge/ and report/."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from linkgauge.backends.sim.machine import described
from linkgauge.cli.earlier_runs import since
from linkgauge.engine.controller import Observer
from linkgauge.engine.kept.folder import checked_label
from linkgauge.engine.kept.runs import is_run, read_run, run_folders
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.request import RunRequest, Written
from linkgauge.engine.session import opened
from linkgauge.history.keeping import remember
from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome, doubtful, outcome_of
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError, Interrupted
from linkgauge.model.names import hint
from linkgauge.model.settings import Settings
from linkgauge.model.units import parse_fraction, parse_sizes
from linkgauge.report.files import write_run
from linkgauge.report.reading import judged, shown_as
from linkgauge.report.rows import CellRow, OneRun, SampleRow, cell_rows, sample_rows
from linkgauge.report.tables import CELLS, SAMPLES

if TYPE_CHECKING:
    import pandas as pd

StrPath = str | PathLike[str]
_log = logging.getLogger("linkgauge")


class MeasuredRun(msgspec.Struct, frozen=True, dict=True, eq=False):
    """A judged run, as `load` and `measure` return it. `run` is everything in run.json, and
    `outcome` is the verdict."""

    run: Run
    outcome: Outcome

    @cached_property
    def cells(self) -> tuple[CellRow, ...]:
        """A row for each cell, in the order of the run."""
        return tuple(cell_rows(self.run))

    @cached_property
    def samples(self) -> tuple[SampleRow, ...]:
        """A row for each raw sample, in the unit that the row names."""
        return tuple(sample_rows(self.run))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The doctor's findings about what was measured."""
        return self.outcome.findings

    @property
    def exit_code(self) -> int:
        """The exit code of the command line for this run: 0 if everything passed, 1 after a
        failure, 3 after an error that cost results, 4 if nothing was measured, 130 if
        interrupted."""
        return self.outcome.code

    def to_pandas(self, *, samples: bool = False) -> pd.DataFrame:
        """Returns a data frame with a row for each cell, or with `samples` a row for each raw
        sample. The columns are the fields of CellRow or SampleRow. Raises MissingPackage without
        pandas."""
        return SAMPLES.frame(self.samples) if samples else CELLS.frame(self.cells)

    def save(self, folder: StrPath) -> Path:
        """Writes run.json, samples.bin and samples.csv into an existing folder, and returns the
        path of run.json. Raises ResultsError if they cannot be written."""
        return write_run(Path(folder), self.run)


def load(path: StrPath) -> MeasuredRun:
    """Reads a run from a run.json, from a journal.jsonl or from a run's folder. Raises InputError
    if there is no readable run."""
    path = Path(path)
    if path.is_dir() and not is_run(path):
        raise InputError(f"{path} is not a run's folder: load_all() reads all runs in it")
    return _view(judged(read_run(path)))


def load_all(path: StrPath) -> tuple[MeasuredRun, ...]:
    """Reads all runs below a folder, sorted by path; for a run's own folder, reads that run. Runs
    that cannot be read are left out with a warning. Raises InputError if there are no runs."""
    path = Path(path)
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


def measure(
    transfers: str,
    size: str | int | None = None,
    *,
    samples: int | None = None,
    loops: int | None = None,
    precision: str | float | None = None,
    max_time: float | None = None,
    timeout: float | None = None,
    verify: bool = True,
    profile: str = "standard",
    machine: StrPath | None = None,
    faults: Sequence[str] = (),
    label: str = "copy",
    out: StrPath | None = None,
    wait: bool = False,
    say: Callable[[str], object] = _log.info,
) -> MeasuredRun:
    """Measures transfers now, all at the same time, as `linkgauge copy` does.

    `transfers` are in the notation (`host:0 -> cuda:0 by ce & cuda:0 -> host:0 by ce`). `size` is
    bytes, or text such as `256M` or a sweep. `samples` and `loops` are fixed counts. If None, as
    many are taken as the fraction `precision` needs within `max_time` seconds of sampling. A cell
    that takes longer than `timeout` seconds is given up. For options that are None, the `profile`
    decides. `machine` is the name or the file of a simulated machine to measure instead of this
    machine, and `faults` are its faults. The run is kept below `out`, or not at all if None. With
    `wait`, the call waits until another run has ended. `say` receives messages for people.

    A transfer that cannot be carried out here becomes a cell with its status and reason. Raises
    InputError for invalid arguments, and DeviceBusy while another run measures a device. Raises
    Interrupted after Ctrl-C (the journal stays below `out`), and ResultsError if nothing can be
    kept."""
    counts = {"samples": samples, "loops": loops, "max_time": max_time, "timeout": timeout}
    for name, value in counts.items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InputError(f"{name} {value} must be a positive number")
    request = RunRequest(
        what=Written(transfers),
        settings=_settings(
            profile,
            size,
            precision,
            max_time,
            samples=samples,
            loops=loops,
            timeout=timeout,
            verify=verify,
            simulation=None if machine is None else described(str(machine), faults),
        ),
        label=checked_label(label),
        out=None if out is None else str(out),
        wait=wait,
        profile=None if size else profile,
    )
    if faults and machine is None:
        raise InputError("faults strike only simulated machines: give machine, too")
    return _measured(request, _Saying(say), say)


class _Saying(Observer):
    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say

    def say(self, line: str) -> None:
        self._say(line)


def _settings(
    profile: str,
    size: str | int | None,
    precision: str | float | None,
    max_time: float | None,
    **more: object,
) -> Settings:
    if profile not in PROFILES:
        raise InputError(f"unknown profile {profile!r}{hint(profile, PROFILES)}")
    given = {
        "sizes": None if size is None else parse_sizes(str(size)),
        "precision": None if precision is None else parse_fraction(str(precision)),
        "max_time": max_time,
        "rate_time": max_time,
    }
    given = {name: value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(PROFILES[profile], **given, **more)


def _measured(request: RunRequest, observer: Observer, say: Callable[[str], object]) -> MeasuredRun:
    folder: Path | None = None
    try:
        with opened(request) as session:
            try:
                run = session.measure(session.plan(observer), observer, doubtful)
            finally:
                folder = session.folder
            view = _view(judged(run))
            if folder is not None:
                known, line = since(view.run)
                view = _view(shown_as(known, outcome_of(known)))
                view.save(folder)
                if remember(known, folder, say) and line is not None:
                    say(line)
    except KeyboardInterrupt as error:
        raise _interrupted(folder) from error
    if run.finished is None:
        raise _interrupted(folder)
    return view


def _interrupted(folder: Path | None) -> Interrupted:
    kept = "" if folder is None else f"; measured cells are kept in {folder}"
    return Interrupted(f"interrupted{kept}")


def _view(one: OneRun) -> MeasuredRun:
    return MeasuredRun(one.run, one.outcome)
