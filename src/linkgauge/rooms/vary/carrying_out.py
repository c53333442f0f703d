"""Measures rounds of runs, with a progress bar for the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress, TaskID

from linkgauge.engine.controller import now
from linkgauge.engine.interrupts import Ending, undisturbed
from linkgauge.engine.kept.folder import create_run_folder
from linkgauge.engine.kept.runs import VARY_FILE
from linkgauge.history.keeping import remember
from linkgauge.judge.verdict import judge
from linkgauge.model.by_name import by_name
from linkgauge.model.documents.result import CellResult, exit_code
from linkgauge.model.documents.variation import Setting, Variation
from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.stats.ranks import MOST_ROUNDS, least_rounds
from linkgauge.model.units import parse_fraction
from linkgauge.report.console import make_console
from linkgauge.report.files import write_document, write_run
from linkgauge.report.formats import Format
from linkgauge.report.live import INTERRUPTED, say_interrupted
from linkgauge.report.progress import progress_bar

from . import VARIATION
from .differences import can_compare, compare
from .rounds import RoundRun, Rounds, RoundsRequest, measure_rounds, plan_all

MOST = 36
"""The most characters before the bar. The whole line has 80 characters."""


class LiveRounds(Rounds):
    """Shows which run of which round is measured, and the time left. The bar is removed when the
    context ends."""

    def __init__(self, errors: Console, runs: int) -> None:
        self._errors = errors
        self._bar = ExitStack()
        self._progress: Progress = progress_bar(errors)
        self._task: TaskID = self._progress.add_task("", total=runs)
        self._begun = self._visits = self._visited = 0
        self._said: set[str] = set()
        self._ending = Ending(say_interrupted)

    def __enter__(self) -> LiveRounds:
        self._ending.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()
        self._ending.__exit__(None, None, None)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        with self._ending.keeping():
            yield

    def concluding(self) -> AbstractContextManager[None]:
        return self._ending.concluding()

    def interrupted(self) -> None:
        self._bar.close()
        self.say(INTERRUPTED)

    def prepares(self, setting: Setting, number: int) -> None:
        if not self._begun:
            self._bar.enter_context(self._progress)
        self._visits = self._visited = 0
        what = f"round {number + 1}, {setting}"
        said = what if len(what) <= MOST else f"{what[: MOST - 1]}…"
        self._progress.update(self._task, description=said, completed=self._begun)
        self._begun += 1

    def begun(self, _machine: Machine) -> None:
        """Does nothing, because the bar counts runs and not cells."""

    def planned(self, visits: int) -> None:
        self._visits = self._visited + visits

    def finished(self, _cell: CellResult, /) -> None:
        self._visited += 1
        part = min(1.0, self._visited / self._visits) if self._visits else 0.0
        self._progress.update(self._task, completed=self._begun - 1 + part)

    def say(self, line: str) -> None:
        """Prints each note once, even if several runs have it."""
        if line not in self._said:
            self._said.add(line)
            self._errors.print(line)


# Measures the settings of `linkgauge vary`, keeps every run, compares, and shows it.


MOST_SIGNIFICANCE = 0.2


def check_rounds(rounds: int, significance: str) -> float:
    """Returns the significance as a fraction. Raises InputError if this number of rounds is too
    small to prove any difference, or if either value is too large."""
    alpha = parse_fraction(significance, "significance")
    if alpha > MOST_SIGNIFICANCE:
        raise InputError(f"--significance {significance}: give at most {MOST_SIGNIFICANCE:.0%}")
    least = least_rounds(alpha)
    if rounds < least:
        raise InputError(
            f"--rounds {rounds} find no difference at a significance of {alpha:.4%}: give "
            f"--rounds {least} or more, or a larger --significance"
        )
    if max(rounds, least) > MOST_ROUNDS:
        raise InputError(f"--rounds {rounds} are too many: give at most {MOST_ROUNDS}")
    return alpha


class MeasuredRounds(NamedTuple):
    """The runs of all rounds, the comparison of their settings, and the file that keeps it, if
    any. `end` is what ended the rounds early: Ctrl-C or an error."""

    taken: Sequence[RoundRun]
    variation: Variation
    kept: Path | None
    end: BaseException | None


def carry_out(asked: RoundsRequest, form: Format) -> int:
    """Measures the rounds and shows how the settings compare. Returns the exit code of the worst
    run, or 4 if nothing could be compared."""
    errors = make_console(stderr=True)
    with LiveRounds(errors, asked.rounds * len(asked.variants)) as live:
        found = measure_and_compare(asked, live)
    with undisturbed():
        form.write(VARIATION, found.variation)
        console = errors if form.is_document else make_console()
        if found.kept is not None:
            console.print(f"results: {found.kept}")
    if found.end is not None:
        raise found.end
    return _code(found.taken, found.variation)


def measure_and_compare(asked: RoundsRequest, observer: Rounds) -> MeasuredRounds:
    """Measures the rounds, compares the settings, and keeps all of it. What ended the rounds is
    raised if it came before the first run was measured."""
    started, taken = now(), list[RoundRun]()
    end: BaseException | None = None
    try:
        plans = plan_all(asked.variants, observer)
        for one in measure_rounds(asked, plans, observer):
            with observer.keeping():
                taken.append(one)
                if one.folder is not None:
                    run = judge(one.run)
                    write_run(one.folder, run)
                    remember(run, one.folder, observer.say)
            first_round = len(taken) == len(asked.variants)
            if first_round and not can_compare(taken, len(asked.variants)):
                break
    except (KeyboardInterrupt, LinkgaugeError) as reason:
        end = reason
    if end is not None and not taken:
        raise end
    with observer.concluding():
        variation = _compared(asked, taken, started, whole=end is None)
        return MeasuredRounds(taken, variation, _write(asked, taken, variation), end)


def _compared(
    asked: RoundsRequest, taken: Sequence[RoundRun], started: str, *, whole: bool
) -> Variation:
    settings = [variant.setting for variant in asked.variants]
    return by_name(
        Variation,
        asked,
        asked.request,
        simulated=asked.request.settings.simulation is not None,
        started=started,
        finished=now() if whole else None,
        settings=tuple(settings),
        runs=tuple(one.kept for one in taken),
        cells=compare(taken, len(settings), asked.significance),
    )


def _write(asked: RoundsRequest, taken: Sequence[RoundRun], variation: Variation) -> Path | None:
    """Writes the comparison to a new folder, next to the folders of the runs."""
    folder = taken[0].folder
    if folder is None or asked.request.out is None:
        return None
    accelerator = folder.parents[1].name
    own = create_run_folder(
        Path(asked.request.out), accelerator, asked.request.label, variation.started
    )
    return write_document(own / VARY_FILE, variation)


def _code(taken: Sequence[RoundRun], variation: Variation) -> int:
    codes = {exit_code(one.run) for one in taken}
    if worst := next((code for code in (3, 1) if code in codes), 0):
        return worst
    is_compared = any(one.change for cell in variation.cells for one in cell.settings)
    return 0 if is_compared else 4
