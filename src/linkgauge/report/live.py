"""A run as its user sees it: a progress bar, and once it is measured its results, the notes on all
of them, the verdict, and the files that are kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from typing import Self

import msgspec
from rich.console import RenderableType

from linkgauge.backends.protocol import Tried
from linkgauge.engine.controller import Observer
from linkgauge.engine.interrupts import undisturbed
from linkgauge.engine.journal import JOURNAL_FILE
from linkgauge.engine.visits import CellAt
from linkgauge.judge.limits import Limit, apply, unused
from linkgauge.judge.outcome import Outcome, doubtful, outcome_of
from linkgauge.judge.thresholds import Objection, hold_run
from linkgauge.judge.verdict import judge, unjudged
from linkgauge.model.errors import ResultsError
from linkgauge.model.machine import Machine
from linkgauge.model.result import CellResult, PlannedCell, PlannedSheet, Run

from .files import write_run
from .findings_text import finding_lines
from .formats import TERMINAL, Format, formats
from .matrix import shown
from .outcome_text import outcome_lines
from .progress import progress_bar
from .run_notes import note_lines
from .run_text import make_console, render
from .sweep_text import sweep_lines
from .utilisation_matrix import render_cpus, render_utilisation


class Display(msgspec.Struct, frozen=True):
    """How a run is shown: its format and, for people, whether to show how much of the hardware and
    of the CPUs each cell used (`utilization`), and whether to say what is wrong (`verdict`). Cells
    beyond one of the `limits` fail, as do those with an `objection`."""

    format: Format
    utilization: bool = False
    limits: tuple[Limit, ...] = ()
    objection: Objection | None = None
    verdict: bool = True

    def judged(self, run: Run) -> Run:
        """The run with the verdict of each cell."""
        return apply(hold_run(judge(run), self.objection), self.limits)


class LiveReport(Observer):
    """Shows how a run goes on, and ends it with `conclude`. A context manager, so that its bar is
    removed whatever happens."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._console, self._errors = make_console(), make_console(stderr=True)
        self._bar = ExitStack()
        self._progress = progress_bar(self._errors)
        self._task = self._progress.add_task("", total=None)
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def begun(self, _machine: Machine) -> None:
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

    def tried(self, tried: Tried) -> None:
        figure = "dropped" if tried.problem else f"{shown(tried.rate, 'B/s')} GB/s"
        why = f": {tried.problem}" if tried.problem else ""
        self.say(f"  {tried.path:<16}{figure:>15}  {tried.settings}{why}")

    def say(self, line: str) -> None:
        self._errors.print(line)

    def doubts(self, run: Run) -> Collection[CellAt]:
        """The cells that would be low: none is called so before it was measured once more."""
        return doubtful(run) if self._display.verdict else ()

    def conclude(self, run: Run, folder: Path | None) -> int:
        """Judges the run, keeps it and shows it, even if it cannot be kept. Returns the exit
        code."""
        self._bar.close()
        with undisturbed():
            run, problem, kept = self._display.judged(run), None, None
            try:
                kept = None if folder is None else write_run(folder, run)
            except ResultsError as error:
                problem = error
            form = self._display.format
            console = self._errors if form.is_document else self._console
            outcome = outcome_of(run, verdict=self._display.verdict)
            lines = (summary_lines if form.is_document else run_lines)(run, outcome, self._display)
            for line in lines:
                console.print(line)
            if form.is_document:
                form.write("run", run)
            if problem is not None:
                raise problem
            if kept is not None:
                console.print(f"results: {kept}")
            if _can_go_on(run) and folder is not None:
                console.print(how_to_go_on(folder))
        return outcome.code


def show_kept(run: Run, folder: Path, display: Display) -> int:
    """Shows a run kept in a folder, judged anew. Returns the exit code."""
    run = display.judged(run)
    outcome = outcome_of(run, verdict=display.verdict)
    if display.format.is_document:
        display.format.write("run", run)
        return outcome.code
    console = make_console()
    for line in run_lines(run, outcome, display):
        console.print(line)
    if _can_go_on(run) and (folder / JOURNAL_FILE).exists():
        console.print(how_to_go_on(folder))
    return outcome.code


def whole_run_lines(run: Run) -> Iterator[RenderableType]:
    """A judged run as a display without options shows it."""
    return run_lines(run, outcome_of(run), Display(formats()[TERMINAL]))


def run_lines(run: Run, outcome: Outcome, display: Display) -> Iterator[RenderableType]:
    """A judged run: its results, then what is to be said of all of them."""
    for result in run.results:
        yield render(result if outcome.verdict else unjudged(result))
        if display.utilization:
            used = render_utilisation(result), render_cpus(result)
            yield from (matrix for matrix in used if matrix is not None)
    yield from sweep_lines(run)
    yield from summary_lines(run, outcome, display)


def summary_lines(run: Run, outcome: Outcome, display: Display) -> Iterator[RenderableType]:
    """What is to be said of a run besides its figures: notes, findings, the verdict."""
    yield from note_lines(run)
    if run.profiler_files:
        yield f"files of {run.settings.profiler}: {', '.join(run.profiler_files)}"
    for limit in unused(run, display.limits):
        yield f"note: no cell is of the limit at {limit.where}"
    if outcome.findings:
        yield from finding_lines(outcome.findings)
    yield from outcome_lines(run, outcome)


def _can_go_on(run: Run) -> bool:
    """Whether it was interrupted, and can be resumed: one of several ranks cannot."""
    return run.finished is None and not run.machine.ranks


def how_to_go_on(folder: Path) -> str:
    """The command that resumes an interrupted run."""
    return f"what was measured is kept; to go on: linkgauge run --resume {quote(str(folder))}"
