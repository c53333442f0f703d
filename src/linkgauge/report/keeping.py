"""Judges a run that was measured, compares it with earlier runs, and keeps it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from linkgauge.engine.visits import CellAt
from linkgauge.judge.outcome import Outcome, doubtful, outcome_of, pairs_in_doubt
from linkgauge.judge.verdict import Judge, judge, unjudged
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import ResultsError
from linkgauge.model.hardware.machine import Machine

from .files import write_run
from .formats import Format
from .rows import OneRun

if TYPE_CHECKING:
    from linkgauge.judge.limit_checks import Sheets
    from linkgauge.judge.limits import Limit, Objection

Remember = Callable[..., bool]
Since = Callable[[Run], tuple[Run, str | None]]


class Display(msgspec.Struct, frozen=True):
    """The options that say how a run is judged and shown. `format` is the output format.
    `utilization` adds the share of hardware and CPU that each cell used. `verdict` adds what is
    wrong. Cells beyond one of the `limits` fail, and so do cells with an `objection`. With
    `matrix`, each benchmark is a matrix with all details. With `whole`, no benchmark is summarised.
    With `verbose`, every note is shown. With `page`, a report is written next to the results."""

    format: Format
    utilization: bool = False
    limits: tuple[Limit, ...] = ()
    objection: Objection | None = None
    verdict: bool = True
    matrix: bool = False
    whole: bool = False
    verbose: bool = False
    page: bool = False

    def judged(self, run: Run, judge: Callable[[Run], Run] = judge) -> Run:
        """Returns the run with a verdict for each cell."""
        run = judge(run)
        if not self.limits and self.objection is None:
            return run
        from linkgauge.judge.limit_checks import apply
        from linkgauge.judge.limits import hold_run

        return apply(hold_run(run, self.objection), self.limits)

    def refuse_unmatched(self, of: Sheets, machine: Machine) -> None:
        """Raises InputError for a limit that fits nothing in a plan or in results."""
        if self.limits:
            from linkgauge.judge.limit_checks import refuse_unmatched

            refuse_unmatched(of, machine, self.limits)


class Kept(msgspec.Struct, frozen=True):
    """A judged run and its outcome. `folder` is where it is kept, if it is; `problem` says why it
    could not be. `since` compares it with earlier runs, in a line."""

    run: Run
    outcome: Outcome
    folder: Path | None = None
    problem: ResultsError | None = None
    since: str | None = None


class Keeper:
    """Judges a run as its `display` says, and keeps it. `since` adds a comparison with earlier
    runs, and may return a line about it. A run whose files are written is passed to `remember`,
    with its folder."""

    def __init__(
        self, display: Display, remember: Remember | None = None, since: Since | None = None
    ) -> None:
        self.display = display
        self.judge = Judge()
        self._remember, self._since = remember, since

    def doubts(self, run: Run) -> Collection[CellAt]:
        """Returns the cells that would be judged low. These cells are measured once more before
        they are called low."""
        return doubtful(run, self.judge) if self.display.verdict else ()

    def pairs_in_doubt(self, run: Run) -> Sequence[tuple[str, str]]:
        """Returns the pairs of devices to measure alone, because a collective that sends data
        between them would be judged low."""
        return pairs_in_doubt(run, self.judge.verdicts) if self.display.verdict else ()

    def outcome(self, run: Run) -> Outcome:
        """Returns the outcome of a judged run."""
        return outcome_of(run, verdict=self.display.verdict)

    def write(self, folder: Path, run: Run) -> None:
        """Writes the files of a judged run. Raises ResultsError."""
        write_run(folder, run)

    def keep(self, run: Run, folder: Path | None) -> Kept:
        """Judges the run and writes its files into the folder, if there is one."""
        run = self.display.judged(run, self.judge)
        if folder is None:
            return Kept(run, self.outcome(run))
        found, said = (run, None) if self._since is None else self._since(run)
        run = found if found.results is run.results else self.display.judged(found, self.judge)
        try:
            self.write(folder, run)
        except ResultsError as error:
            return Kept(run, self.outcome(run), problem=error)
        return Kept(run, self.outcome(run), folder, since=said)

    def remember(self, kept: Kept) -> None:
        """Adds a kept run to the history."""
        if kept.folder is not None and self._remember is not None:
            self._remember(kept.run, kept.folder, verdict=kept.outcome.word)


def judge_kept(run: Run, path: Path | None, display: Display) -> Kept:
    """Judges a run anew; `path` is the file that keeps it, if any. Raises InputError for a limit
    that fits nothing."""
    display.refuse_unmatched(run.results, run.machine)
    run = display.judged(run)
    folder = None if path is None else path.parent
    return Kept(run, outcome_of(run, verdict=display.verdict), folder)


def shown_as(run: Run, outcome: Outcome, folder: Path | None = None) -> OneRun:
    """Returns a judged run, ready to be shown. If the run cannot be judged, its figures have no
    verdicts."""
    if not outcome.verdict:
        run = replace(run, results=tuple(map(unjudged, run.results)))
    return OneRun(run, outcome, folder)
