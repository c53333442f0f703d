"""Shows a run while and after it is measured: progress, results, notes, verdict, written files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace
from rich.console import Console

from linkgauge.engine.controller import Observer
from linkgauge.engine.interrupts import Ending, Interrupts
from linkgauge.engine.kept.journal import RUN_FILE
from linkgauge.judge.doctor import OF_MACHINE
from linkgauge.judge.outcome import Outcome
from linkgauge.model.cell_id import spoken
from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable, Run
from linkgauge.model.documents.soak import FailedRepetition
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.settings import Tried
from linkgauge.model.units import format_decimals
from linkgauge.report.words.groups import groups_of
from linkgauge.report.words.run_notes import deciding_lines, failed_line, folded_notes, note_lines
from linkgauge.report.words.worst import worst_of

from .blocks import Block, Prose, plain
from .console import make_console
from .formats import RUN, TERMINAL, formats
from .keeping import Display, Keeper, Kept, judge_kept, shown_as
from .render.terminal import print_blocks, styled
from .sections import OneRun, figures, of_rooms, opening, screen, verdict
from .sections.notes import reason_lines
from .sections.verdict import Closing

if TYPE_CHECKING:
    from rich.progress import Progress

MOST_FINDINGS = 3
INTERRUPTED = "interrupted: keeping what was measured; Ctrl-C again stops without a verdict"


def say_interrupted() -> None:
    """Prints INTERRUPTED. Uses os.write, because the signal may have interrupted another write."""
    with suppress(OSError):
        os.write(sys.stderr.fileno(), f"{INTERRUPTED}\n".encode())


class LiveReport(Observer):
    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self._display = keeper.display
        self._console, self._errors = make_console(), make_console(stderr=True)
        self._bar = ExitStack()
        self._progress: Progress | None = None
        if self._errors.is_terminal:
            from .progress import progress_bar

            self._progress = progress_bar(self._errors)
            self._task = self._progress.add_task("", total=None)
        self._done = 0
        self._ending = Ending(say_interrupted)
        self._is_interrupted = False

    def __enter__(self) -> Self:
        self._ending.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()
        self._ending.__exit__(None, None, None)

    @property
    def is_watched(self) -> bool:
        """Whether a progress bar on a terminal shows the run to a person."""
        return self._progress is not None

    def begun(self, _machine: Machine) -> None:
        if self._progress is not None:
            with Interrupts() as interrupts, interrupts.held():  # half a bar would stay
                self._bar.enter_context(self._progress)

    def planned(self, repetitions: int) -> None:
        self._update(total=self._done + repetitions)

    def ends_by(self, moment: float) -> None:
        self._update(ends_by=moment)

    def started(self, table: PlannedTable, cell: PlannedCell) -> None:
        if self._progress is not None:
            self._update(description=spoken(table, cell))

    def finished(self, _cell: CellResult) -> None:
        self._done += 1
        self._update(advance=1)

    def _update(self, **known: Any) -> None:
        if self._progress is not None:
            self._progress.update(self._task, **known)

    def tried(self, tried: Tried) -> None:
        figure = "dropped" if tried.problem else f"{format_decimals(tried.rate, 'B/s')} GB/s"
        why = f": {tried.problem}" if tried.problem else ""
        self.say(f"  {tried.path:<16}{figure:>15}  {tried.settings}{why}")

    def failed(self, repetition: FailedRepetition) -> None:
        self._errors.print(styled(failed_line(repetition)))

    def interrupted(self) -> None:
        if not self._is_interrupted:
            self._is_interrupted = True
            self._bar.close()
            self.say(INTERRUPTED)

    def say(self, line: str) -> None:
        self._errors.print(line)

    def conclude(self, run: Run, folder: Path | None) -> int:
        """Stores and shows the run. Returns the exit code. Raises ResultsError if storing fails."""
        with self._ending.concluding(), ExitStack() as held:
            self._bar.close()
            page = None
            if self._display.page and folder:
                from .render.page_process import PageProcess

                # It loads while the run is judged and kept. Only real runs have charts as a rule.
                page = PageProcess(charts=run.machine.simulated is None)
                held.callback(page.close)
            kept = self.keeper.keep(run, folder)
            if page is not None and kept.folder is not None:
                one = shown_as(kept.run, kept.outcome, kept.folder)
                page.write(replace(one, is_written=True))
            console = self._errors if self._display.format.is_document else self._console
            self._show(kept, console)
            if kept.problem is not None:
                raise kept.problem
            if kept.folder is not None:
                try:
                    if page is not None:
                        page.wait()
                except LinkgaugeError as error:
                    self.say(f"no report: {error}")
                print_blocks(console, [kept_line(kept.folder / RUN_FILE)])
                self.keeper.remember(kept)
        return kept.outcome.code

    def _show(self, kept: Kept, console: Console) -> None:
        closing = Closing(kept=kept.folder, since=kept.since)
        is_document = self._display.format.is_document
        blocks = summary_blocks if is_document else run_blocks
        print_blocks(console, blocks(kept.run, kept.outcome, self._display, closing))
        if is_document:
            self._display.format.write(RUN, shown_as(kept.run, kept.outcome))


def show_kept(run: Run, path: Path | None, display: Display) -> int:
    """Shows a stored run. Returns the exit code. Raises InputError if a limit matches no cell."""
    from linkgauge.engine.kept.runs import place_of_run

    found = judge_kept(run, path, display)
    run, outcome = found.run, found.outcome
    if display.format.is_document:
        display.format.write(RUN, shown_as(run, outcome))
        return outcome.code
    closing = Closing(kept=place_of_run(path) if path else None)
    kept = [kept_line(path)] if path else []
    print_blocks(make_console(), [*run_blocks(run, outcome, display, closing), *kept])
    return outcome.code


def whole_run(one: OneRun) -> Iterator[Block]:
    return run_blocks(one.run, one.outcome, Display(formats()[TERMINAL]), Closing())


def run_blocks(run: Run, outcome: Outcome, display: Display, closing: Closing) -> Iterator[Block]:
    judged = shown_as(run, outcome).run
    if display.matrix or display.utilization:
        from .sections.heats import detailed_blocks

        yield from detailed_blocks(judged, utilization=display.utilization)
    else:
        yield from opening.blocks(judged, outcome)
        yield from figures.blocks(judged, "whole") if display.whole else screen.blocks(judged)
    yield Prose([()])
    yield from summary_blocks(run, outcome, display, closing)


def summary_blocks(
    run: Run, outcome: Outcome, display: Display, closing: Closing
) -> Iterator[Block]:
    """Yields all blocks but the figures. If the run is not stored, shows remedies in full."""
    findings = _findings(run, outcome, closing, also_notes=display.verbose)
    remarks = [*_remarks(run, outcome, display), *findings]
    yield from (*remarks, Prose([()])) if remarks else ()
    yield from verdict.ending(run, outcome, closing, verbose=display.verbose)


def _remarks(run: Run, outcome: Outcome, display: Display) -> Iterator[Block]:
    for section in of_rooms():
        if section.on_screen and section.of_run is not None:
            yield from section.of_run(OneRun(run, outcome))
    if display.verbose or display.matrix:
        lines = [*reason_lines(run), *(note_lines if display.verbose else folded_notes)(run)]
    else:
        lines = [*reason_lines(run, skipped=False)]
        # Under a profiler, notes say what the figures are worth.
        lines += folded_notes(run) if run.settings.profiler else deciding_lines(run)
    if run.profiler_files:
        lines.append(plain(f"files of {run.settings.profiler}: {', '.join(run.profiler_files)}"))
    if display.limits:
        from linkgauge.judge.limits import of_other_models

        others = of_other_models(run.results, run.machine, display.limits)
        lines += (plain(f"note: the limit at {one.where} is of other devices") for one in others)
    if lines:
        yield Prose(lines)


def _findings(run: Run, outcome: Outcome, closing: Closing, *, also_notes: bool) -> Iterator[Block]:
    if not outcome.findings and not also_notes:
        return
    from .sections import findings

    if closing.kept is None and outcome.findings:
        yield from findings.blocks(outcome.findings)
        return
    wrong = worst_of(run, outcome)
    reported = wrong.group if wrong is not None else None
    others = [group for group in groups_of(outcome.findings) if group != reported]
    yield from findings.brief(others[:MOST_FINDINGS], reported)
    if len(others) > MOST_FINDINGS:
        yield Prose([plain(f"and {len(others) - MOST_FINDINGS} more findings", "dim")])
    if also_notes:
        notes = [one for one in outcome.found if one.severity == "note" and one.check in OF_MACHINE]
        yield from findings.brief(groups_of(notes))


def kept_line(path: Path) -> Prose:
    return Prose([plain(f"results: {path}")])
