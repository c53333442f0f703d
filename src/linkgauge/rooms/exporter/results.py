"""Reads the results to export from the history or from a folder of runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace
from sqlalchemy import func, select
from sqlalchemy.engine import URL

from linkgauge.engine.kept.runs import in_order, read_run, run_file, run_folders
from linkgauge.history.reading import Filter, figures_of, latest_runs
from linkgauge.history.records import machine_row, microseconds, run_row
from linkgauge.history.store import Store, opened
from linkgauge.history.tables import runs
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.model.cell_id import CellId
from linkgauge.model.documents.expected import Waiver
from linkgauge.model.documents.history import Figure, PastRun, figures_by_result
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError

SECOND = 1e-6
DAYS = 30
"""The most days between the last run of a label and an earlier run. Cells that only the earlier run
measured are still shown."""
EACH = 500
MOST_FIGURES = 20_000
"""The most cells of a label's runs that are read, except that the last run is read whole."""


Shown = tuple[PastRun, Figure]
"""The last known figure of a cell under a label, with its run."""


class Results(NamedTuple):
    runs: tuple[PastRun, ...] = ()
    figures: tuple[Shown, ...] = ()


class Which(NamedTuple):
    """Selects runs by `host`, `simulated` and `label` (None: all) that have all of `benchmarks`."""

    host: str | None = None
    simulated: bool | None = None
    label: str | None = None
    benchmarks: tuple[str, ...] = ()

    def takes(self, run: PastRun) -> bool:
        return (
            self.host in (None, run.host)
            and self.simulated in (None, run.simulated)
            and self.label in (None, run.label)
        )


_Group = tuple[str, bool, str]


def _group(run: PastRun) -> _Group:
    return run.host, run.simulated, run.label


class FromHistory:
    """Reads results from the history and holds them. After a change, reads only the new runs."""

    def __init__(self, url: URL, which: Which) -> None:
        self._url, self._which = url, which
        self._is_file = url.drivername.startswith("sqlite")
        self.period = 1.0 if self._is_file else 5.0
        self._state: object = None
        self._results = Results()
        self._shown: dict[tuple[_Group, CellId], Shown] = {}
        self._known: set[PastRun] = set()

    def read(self) -> Results:
        state = self._file_state() if self._is_file else None
        if state is not None and state == self._state:
            return self._results
        if self._is_file and state == ():
            self._state, self._results = state, Results()
            return self._results
        with opened(self._url, must_exist=True) as store:
            state = state or _server_state(store)
            if state != self._state:
                self._results = self._of(store)
                self._state = state
        return self._results

    def _file_state(self) -> tuple[object, ...]:
        path = Path(str(self._url.database))
        found: list[object] = []
        for file in (path, path.with_name(path.name + "-wal")):
            try:
                is_log, of = file != path, file.stat()
            except FileNotFoundError:
                continue
            if of.st_size or not is_log:  # an empty log comes and goes with each reader
                found += [file.name, of.st_ino, of.st_size, of.st_mtime_ns]
        return tuple(found)

    def _of(self, store: Store) -> Results:
        since = int((time.time() - DAYS * 86400) / SECOND)
        host, simulated, label, benchmarks = self._which
        which = Filter(host=host, label=label, benchmarks=benchmarks)
        found = [
            run for run in latest_runs(store, which, EACH) if simulated in (None, run.simulated)
        ]
        wanted = _within(found, since)
        if any(run not in wanted for run, _ in self._shown.values()):
            self._shown.clear()  # a run was pruned, resumed, or is too old
            self._known.clear()
        self._add(store, [run for run in wanted if run not in self._known])
        self._known = wanted
        last: dict[_Group, PastRun] = {}
        for run in found:
            last.setdefault(_group(run), run)
        figures = tuple(self._shown[key] for key in sorted(self._shown))
        return Results(tuple(last.values()), figures)

    def _add(self, store: Store, new: Iterable[PastRun]) -> None:
        by_number = {run.number: run for run in new}
        for number, figure in figures_of(store, list(by_number)):
            run = by_number[number]
            key = _group(run), figure.id
            there = self._shown.get(key)
            if there is None or _order(*there) < _order(run, figure):
                self._shown[key] = run, figure


def _order(run: PastRun, figure: Figure) -> tuple[bool, str, int]:
    """Returns a sort key, greatest for the figure to show: the latest that was not skipped."""
    return figure.status != "skip", run.started, run.number


def _within(found: Iterable[PastRun], since: int) -> set[PastRun]:
    """Returns each host and label's last run, and more after `since` (µs), up to MOST_FIGURES."""
    taken: dict[_Group, int] = {}
    wanted = set()
    for run in found:
        group = _group(run)
        before = taken.get(group)
        recent = (microseconds(run.started) or 0) >= since
        if before is None or (recent and before + run.cells <= MOST_FIGURES):
            wanted.add(run)
            taken[group] = (before or 0) + run.cells
    return wanted


def _server_state(store: Store) -> tuple[object, ...]:
    with store.reading() as connection:
        asked = select(
            func.count(), func.max(runs.c.id), func.max(runs.c.finished), func.sum(runs.c.passed)
        )
        return tuple(connection.execute(asked).one())


class FromFolder:
    period = 5.0

    def __init__(self, folder: Path, which: Which, waivers: tuple[Waiver, ...] = ()) -> None:
        self._folder, self._which, self._waivers = folder, which, waivers
        self._state: object = None
        self._results = Results()

    def read(self) -> Results:
        last: dict[str, Path] = {}
        for path in in_order(run_folders(self._folder)):
            last.setdefault(path.parent.name, path)
        paths = sorted(last.values())
        state = [(path, run_file(path).stat().st_mtime_ns) for path in paths]
        if state != self._state:
            self._results = self._of(paths)
            self._state = state
        return self._results

    def _of(self, paths: Iterable[Path]) -> Results:
        found: list[PastRun] = []
        figures: list[Shown] = []
        for path in paths:
            try:
                run = read_run(path)
                if self._waivers:
                    run = judge(replace(run, waivers=self._waivers))
                    run = outcome_of(run).marked(run)
            except InputError:
                continue  # it is being written, or damaged: `linkgauge show` says why
            shown = _of_file(run)
            measured = {result.benchmark for result in run.results}
            if run.is_profiled or not measured.issuperset(self._which.benchmarks):
                continue
            if self._which.takes(shown):
                found.append(shown)
                every = figures_by_result(run.results)
                figures += ((shown, each) for _, own in every for each in own)
        return Results(tuple(found), tuple(figures))


ResultSource = FromHistory | FromFolder


def _of_file(run: Run) -> PastRun:
    of = {**run_row(run, None, outcome_of(run).word), **machine_row(run.machine)}
    own = {name: of[name] for name in PastRun.__struct_fields__ if name in of}
    own |= {"started": run.started, "finished": run.finished}
    return PastRun(**own, number=0, id=run.id, setup="", state=0, machine=0)
