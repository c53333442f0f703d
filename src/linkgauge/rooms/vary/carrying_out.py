"""Measures rounds of runs under several settings, shows progress, and compares the settings."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace
from rich.console import Console
from rich.progress import Progress, TaskID

from linkgauge.engine.controller import now
from linkgauge.engine.interrupts import Ending, undisturbed
from linkgauge.engine.kept.folder import create_run_folder
from linkgauge.engine.kept.runs import VARY_FILE
from linkgauge.history.keeping import remember
from linkgauge.judge.compare.likeness import CellFigure, figures_of
from linkgauge.judge.compare.side_tests import Key, key_of
from linkgauge.judge.verdict import judge
from linkgauge.model.by_name import by_name
from linkgauge.model.documents.result import CellResult, Run, exit_code
from linkgauge.model.documents.variation import Compared, Setting, Variation, VariedCell
from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.model.grouped import grouped
from linkgauge.model.stats.changes import Direction, changed_to
from linkgauge.model.stats.ranks import MOST_ROUNDS, Change, changes, least_rounds
from linkgauge.model.units import Better, parse_fraction
from linkgauge.report.console import make_console
from linkgauge.report.files import write_document, write_run
from linkgauge.report.formats import Format
from linkgauge.report.live import INTERRUPTED, say_interrupted
from linkgauge.report.progress import progress_bar

from . import VARIATION
from .rounds import RoundRun, Rounds, RoundsRequest, measure_rounds, plan_all

MOST = 36
"""The most characters before the bar. The whole line has 80 characters."""


class LiveRounds(Ending, Rounds):
    def __init__(self, errors: Console, runs: int) -> None:
        super().__init__(say_interrupted)
        self._errors = errors
        self._bar = ExitStack()
        self._progress: Progress = progress_bar(errors)
        self._task: TaskID = self._progress.add_task("", total=runs)
        self._begun = self._repetitions = self._repeated = 0
        self._said: set[str] = set()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._bar.close()
        super().__exit__(kind, error, traceback)

    def interrupted(self) -> None:
        self._bar.close()
        self.say(INTERRUPTED)

    def prepares(self, setting: Setting, number: int) -> None:
        if not self._begun:
            self._bar.enter_context(self._progress)
        self._repetitions = self._repeated = 0
        what = f"round {number + 1}, {setting}"
        said = what if len(what) <= MOST else f"{what[: MOST - 1]}…"
        self._progress.update(self._task, description=said, completed=self._begun)
        self._begun += 1

    def planned(self, repetitions: int) -> None:
        self._repetitions = self._repeated + repetitions

    def finished(self, _cell: CellResult, /) -> None:
        self._repeated += 1
        part = min(1.0, self._repeated / self._repetitions) if self._repetitions else 0.0
        self._progress.update(self._task, completed=self._begun - 1 + part)

    def say(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._errors.print(line)


# Measures the settings of `linkgauge vary`, keeps every run, compares, and shows it.


MOST_SIGNIFICANCE = 0.2


def check_rounds(rounds: int, significance: str) -> float:
    """Reads the significance as a fraction. Raises InputError for too few or too many rounds."""
    alpha = parse_fraction(significance, "significance")
    if alpha > MOST_SIGNIFICANCE:
        raise InputError(f"--significance {significance}: give at most {MOST_SIGNIFICANCE:.0%}")
    least = least_rounds(alpha)
    if rounds < least:
        raise InputError(
            f"--rounds {rounds} cannot show a difference at a significance of {100 * alpha:g}%: "
            f"give --rounds {least} or more, or a larger --significance"
        )
    if rounds > MOST_ROUNDS:
        raise InputError(f"--rounds {rounds} are too many: give at most {MOST_ROUNDS}")
    return alpha


class MeasuredRounds(NamedTuple):
    """The rounds that were measured. `end` is the exception that ended them early, or None."""

    taken: Sequence[RoundRun]
    variation: Variation
    kept: Path | None
    end: BaseException | None


def carry_out(asked: RoundsRequest, form: Format) -> int:
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
    """Measures and compares settings. If no run was measured, raises the error that was met."""
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
        settings = tuple(variant.setting for variant in asked.variants)
        variation = by_name(
            Variation,
            asked,
            asked.request,
            simulated=asked.request.settings.simulation is not None,
            started=started,
            finished=now() if end is None else None,
            settings=settings,
            runs=tuple(one.kept for one in taken),
            cells=compare(taken, len(settings), asked.significance),
        )
        return MeasuredRounds(taken, variation, _write(taken, variation), end)


def _write(taken: Sequence[RoundRun], variation: Variation) -> Path | None:
    if (folder := taken[0].folder) is None:
        return None
    _, accelerator, out = folder.parents[:3]
    own = create_run_folder(out, accelerator.name, variation.label, variation.started)
    return write_document(own / VARY_FILE, variation)


def _code(taken: Sequence[RoundRun], variation: Variation) -> int:
    codes = {exit_code(one.run) for one in taken}
    if worst := next((code for code in (3, 1) if code in codes), 0):
        return worst
    is_compared = any(one.change for cell in variation.cells for one in cell.settings)
    return 0 if is_compared else 4


# Compares settings by the figures of their rounds.


ALL = "all threads"
"""The column of a cell that uses every CPU of its setting."""
_Own = Mapping[int, CellFigure]
"""The figures of a cell under one setting, by round."""


def compare(runs: Sequence[RoundRun], settings: int, significance: float) -> tuple[VariedCell, ...]:
    """Compares each setting with the first. Holm's method corrects for the number of tests."""
    titles = {result.benchmark: result.title for one in runs for result in one.run.results}
    cells = _cells(runs, settings)
    pairs = [_pairs(own[0], each) for own in cells for each in own[1:]]
    changed = iter(changes(pairs, significance))
    rounds = range(1 + max((one.kept.round for one in runs if one.kept.finished), default=-1))
    varied = []
    for own in cells:
        one = next(found for each in own for found in each.values())
        under = [
            _under(list(map(each.get, rounds)), next(changed) if at else None, one.better)
            for at, each in enumerate(own)
        ]
        varied.append(by_name(VariedCell, one, title=titles[one.benchmark], settings=tuple(under)))
    return tuple(varied)


def can_compare(runs: Sequence[RoundRun], settings: int) -> bool:
    """Whether some cell was measured under the first setting and under another one."""
    for own in _cells(runs, settings):
        first, *others = (any(one.status != "skip" for one in each.values()) for each in own)
        if first and any(others):
            return True
    return False


def _cells(runs: Sequence[RoundRun], settings: int) -> list[Sequence[_Own]]:
    """Collects figures by cell. Leaves out interrupted runs, which may lack cells or samples."""
    threads: dict[Key, set[str]] = {}
    table: dict[Key, list[dict[int, CellFigure]]] = {}
    done = [one for one in runs if one.kept.finished]
    for kept, run, _ in sorted(done, key=lambda one: (one.kept.setting, one.kept.round)):
        for cell in _with_all(run, threads):
            own = table.setdefault(key_of(cell), [{} for _ in range(settings)])
            own[kept.setting][kept.round] = cell
    left_out = {key for key, columns in threads.items() if len(columns) == 1}
    for key in threads.keys() - left_out:
        counted = ((replace(key[0], column=column), *key[1:]) for column in threads[key])
        left_out |= {one for one in counted if one not in table or not all(table[one])}
    tables = grouped((key[0].table, own) for key, own in table.items() if key not in left_out)
    return [own for table in tables.values() for own in table]


def _with_all(run: Run, threads: dict[Key, set[str]]) -> Iterator[CellFigure]:
    cpus = {node.index: len(node.cpus) for node in run.machine.host.nodes}
    every = [(result, cell) for result in run.results for cell in result.cells]
    for (result, cell), figure in zip(every, figures_of(run).cells, strict=True):
        yield figure
        if result.sweep and _uses_all(cell, cpus):
            yield (of_all := replace(figure, column=ALL))
            threads.setdefault(key_of(of_all), set()).add(figure.column)


def _uses_all(cell: CellResult, cpus: Mapping[int, int]) -> bool:
    engines = [transfer.engine for transfer in cell.transfers if transfer.engine.kind == "cpu"]
    there = [cpus.get(engine.owner.index or 0, 0) for engine in engines]
    threads = [engine.count or has for engine, has in zip(engines, there, strict=True)]
    return bool(engines) and threads == there and cell.column == str(sum(threads))


def _pairs(base: _Own, own: _Own) -> list[tuple[float, float]]:
    return [
        (first.figure, second.figure)
        for number, first in base.items()
        if (second := own.get(number)) is not None and first.figure and second.figure
    ]


def _under(own: Sequence[CellFigure | None], changed: Change | None, better: Better) -> Compared:
    figures = tuple(None if found is None else found.figure for found in own)
    known = [figure for figure in figures if figure is not None]
    direction: Direction = "unknown"
    if changed is not None and changed.is_known:
        direction = changed_to(changed.ratio, better) if changed.is_proven else "same"
    reason = None if any(own) else "no such cell"
    without = (f"{one.status}: {one.reason}" for one in own if one and one.status != "pass")
    middle = statistics.median(known) if known else None
    return Compared(figures, middle, changed, direction, reason or next(without, None))
