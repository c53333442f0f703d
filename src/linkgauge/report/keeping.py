"""Judges a measured run, compares it with earlier runs, and stores it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from linkgauge.engine.repetitions import CellAt
from linkgauge.judge.outcome import Outcome, doubtful, outcome_of, pairs_in_doubt
from linkgauge.judge.verdict import Judge, judge, unjudged
from linkgauge.model.documents.expected import Waiver
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import ResultsError
from linkgauge.model.hardware.machine import Machine

from .files import write_run
from .formats import Format
from .rows import OneRun

if TYPE_CHECKING:
    from linkgauge.judge.limits import Limit, Objection, Tables

Remember = Callable[..., bool]
Since = Callable[[Run], tuple[Run, str | None]]


class Display(msgspec.Struct, frozen=True):
    """How to judge and show a run. A cell fails if it is beyond one of `limits`, or if `objection`
    returns a reason for it. `matrix` shows all details, `whole` shows every figure, `page` writes a
    report next to the results."""

    format: Format
    utilization: bool = False
    limits: tuple[Limit, ...] = ()
    objection: Objection | None = None
    verdict: bool = True
    matrix: bool = False
    whole: bool = False
    verbose: bool = False
    page: bool = False
    waivers: tuple[Waiver, ...] = ()

    def judged(self, run: Run, judge: Callable[[Run], Run] = judge) -> Run:
        run = judge(replace(run, waivers=self.waivers) if self.waivers else run)
        if not self.limits and self.objection is None:
            return run
        from linkgauge.judge.limits import apply, hold_run

        return apply(hold_run(run, self.objection), self.limits)

    def refuse_unmatched(self, of: Tables, machine: Machine) -> None:
        if self.limits:
            from linkgauge.judge.limits import refuse_unmatched

            refuse_unmatched(of, machine, self.limits)


class Kept(OneRun, frozen=True):
    """A judged run. `problem` is why it was not stored. `since` compares it with earlier runs."""

    problem: ResultsError | None = None
    since: str | None = None


class Keeper:
    """Judges and stores runs. `since` adds the comparison with earlier runs, and `remember` is
    called for each stored run."""

    def __init__(
        self, display: Display, remember: Remember | None = None, since: Since | None = None
    ) -> None:
        self.display = display
        self.judge = Judge()
        self._remember, self._since = remember, since

    def doubts(self, run: Run) -> Collection[CellAt]:
        """Returns the cells to measure once more before they are called low or unsteady."""
        return doubtful(run, self.judge) if self.display.verdict else ()

    def pairs_in_doubt(self, run: Run) -> Sequence[tuple[str, str]]:
        """Returns pairs of devices to measure alone, because a collective between them is low."""
        return pairs_in_doubt(run, self.judge.verdicts) if self.display.verdict else ()

    def write(self, folder: Path, run: Run) -> None:
        write_run(folder, run)

    def keep(self, run: Run, folder: Path | None) -> Kept:
        run, said = self.display.judged(run, self.judge), None
        if folder is not None and self._since is not None:
            found, said = self._since(run)
            run = found if found.results is run.results else self.display.judged(found, self.judge)
        outcome = outcome_of(run, verdict=self.display.verdict)
        kept = Kept(outcome.marked(run), outcome, folder, since=said)
        try:
            if folder is not None:
                self.write(folder, kept.run)
        except ResultsError as error:
            return replace(kept, folder=None, since=None, problem=error)
        return kept

    def remember(self, kept: Kept) -> None:
        if kept.folder is not None and self._remember is not None:
            self._remember(kept.run, kept.folder, verdict=kept.outcome.word)


def judge_kept(run: Run, path: Path | None, display: Display) -> Kept:
    """Judges a stored run. Raises InputError for a limit that fits no cell."""
    display.refuse_unmatched(run.results, run.machine)
    run = display.judged(run)
    folder = None if path is None else path.parent
    outcome = outcome_of(run, verdict=display.verdict)
    return Kept(outcome.marked(run), outcome, folder)


def shown_as(run: Run, outcome: Outcome, folder: Path | None = None) -> OneRun:
    """Returns the run as shown: without verdicts on figures if the run cannot be judged."""
    if not outcome.verdict:
        run = run.with_cells(unjudged)
    return OneRun(outcome.marked(run), outcome, folder)
