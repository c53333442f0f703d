"""A run as its user sees it: a progress bar, each result once complete, notes on the whole run, and
the files that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from shlex import quote

import msgspec
from rich.console import Console, RenderableType

from linkgauge.backends.protocol import Tried
from linkgauge.engine.controller import Observer
from linkgauge.engine.interrupts import undisturbed
from linkgauge.engine.journal import JOURNAL_FILE
from linkgauge.judge.doctor import concerns
from linkgauge.judge.dram import measured_ceilings
from linkgauge.judge.expect import Expectations
from linkgauge.judge.limits import Limit, apply, unused
from linkgauge.judge.thresholds import Objection, hold, hold_run
from linkgauge.judge.verdict import judge, judge_result
from linkgauge.model.errors import ResultsError
from linkgauge.model.machine import Machine
from linkgauge.model.result import CellResult, PlannedCell, PlannedSheet, Result, Run, exit_code

from .files import write_run
from .findings_text import finding_lines
from .formats import Format
from .matrix import shown
from .progress import progress_bar
from .run_notes import note_lines
from .run_text import make_console, render, render_summary
from .utilisation_matrix import render_utilisation


class Display(msgspec.Struct, frozen=True):
    """How a run is shown: its format and, for people, whether to show how much of the hardware each
    cell used (`utilization`). Cells beyond one of the `limits` fail, as do those with an
    `objection`."""

    format: Format
    utilization: bool = False
    limits: tuple[Limit, ...] = ()
    objection: Objection | None = None


class LiveReport(Observer):
    """Shows a run while it is measured, and ends it with `conclude`. A context manager, so that its
    bar is removed whatever happens."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._console, self._errors = make_console(), make_console(stderr=True)
        self._judged: list[Result] = []
        self._expectations: Expectations | None = None
        self._bar = ExitStack()
        self._progress = progress_bar(self._errors)
        self._task = self._progress.add_task("", total=None)
        self._done = 0

    def __enter__(self) -> LiveReport:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def begun(self, machine: Machine) -> None:
        self._expectations = Expectations(machine, measured_ceilings((), machine))
        self._bar.enter_context(self._progress)

    def planned(self, visits: int) -> None:
        self._progress.update(self._task, total=self._done + visits)

    def started(self, sheet: PlannedSheet, cell: PlannedCell) -> None:
        if not self._progress.disable:
            self._progress.update(self._task, description=f"{sheet.benchmark} {cell.place}")

    def finished(self, _cell: CellResult) -> None:
        self._done += 1
        if not self._progress.disable:
            self._progress.advance(self._task)

    def completed(self, result: Result) -> None:
        if self._expectations is not None:
            result = hold(judge_result(result, self._expectations), self._display.objection)
        self._judged.append(result)
        if self._display.format.is_document:
            return
        for line in result_lines(result, utilization=self._display.utilization):
            self._figures().print(line)

    def _figures(self) -> Console:
        """If the bar is on the same terminal, figures go above it."""
        both = self._console.is_terminal and self._errors.is_terminal
        return self._errors if self._expectations is not None and both else self._console

    def tried(self, tried: Tried) -> None:
        figure = "dropped" if tried.problem else f"{shown(tried.rate, 'B/s')} GB/s"
        why = f": {tried.problem}" if tried.problem else ""
        self.say(f"  {tried.path:<16}{figure:>15}  {tried.settings}{why}")

    def say(self, line: str) -> None:
        self._errors.print(line)

    def conclude(self, run: Run, folder: Path | None) -> int:
        """Shows the rest of the run, judges it, keeps it and summarises it. Returns the exit
        code."""
        self._bar.close()
        if self._expectations is None:  # nothing was measured now: judge the whole run
            run = judge(run)
        # Results are completed in the plan's order: incomplete ones come last.
        for result in run.results[len(self._judged) :]:
            self.completed(result)
        with undisturbed():
            run = msgspec.structs.replace(run, results=tuple(self._judged))
            run = apply(hold_run(judge(run), self._display.objection), self._display.limits)
            self._keep(run, folder)
        return exit_code(run)

    def _keep(self, run: Run, folder: Path | None) -> None:
        """Keeps the run first, then summarises it, even if it cannot be kept."""
        problem = None
        try:
            kept = None if folder is None else write_run(folder, run)
        except ResultsError as error:
            problem = error
        form = self._display.format
        console = self._errors if form.is_document else self._console
        for line in summary_lines(run, self._display.limits):
            console.print(line)
        if form.is_document:
            form.write("run", run)
        if problem is not None:
            raise problem
        if kept is not None:
            console.print(f"results: {kept}")
        if run.finished is None and folder is not None:
            console.print(how_to_go_on(folder))


def show_kept(run: Run, folder: Path, display: Display) -> None:
    """Shows a judged run kept in a folder; on the terminal with all that the display asks for."""
    if display.format.is_document:
        display.format.write("run", run)
        return
    console = make_console()
    for line in run_lines(run, utilization=display.utilization, limits=display.limits):
        console.print(line)
    if run.finished is None and (folder / JOURNAL_FILE).exists():
        console.print(how_to_go_on(folder))


def run_lines(
    run: Run, *, utilization: bool = False, limits: tuple[Limit, ...] = ()
) -> Iterator[RenderableType]:
    """A judged run: its results, then the notes on all of them."""
    for result in run.results:
        yield from result_lines(result, utilization=utilization)
    yield from summary_lines(run, limits)


def result_lines(result: Result, *, utilization: bool = False) -> Iterator[RenderableType]:
    yield render(result)
    if utilization and (shares := render_utilisation(result)) is not None:
        yield shares


def summary_lines(run: Run, limits: tuple[Limit, ...] = ()) -> Iterator[RenderableType]:
    """Notes on a run besides its figures: warnings, faults of the machine if a figure is not as it
    should be, and how many benchmarks ended with each status."""
    yield from note_lines(run)
    for limit in unused(run, limits):
        yield f"note: no cell is of the limit at {limit.where}"
    if findings := concerns(run):
        yield from finding_lines(findings)
    yield render_summary(run)


def how_to_go_on(folder: Path) -> str:
    """The command that resumes an interrupted run."""
    return f"what was measured is kept; to go on: linkgauge run --resume {quote(str(folder))}"
