"""Finds earlier runs in folders and in the history. They show how much runs vary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from linkgauge.engine.budget import seconds_between
from linkgauge.engine.controller import now
from linkgauge.engine.kept.again import AGAIN
from linkgauge.engine.kept.folder import label_name
from linkgauge.engine.kept.ranges import with_ranges_of
from linkgauge.engine.kept.runs import RESULTS, run_folders, usable
from linkgauge.engine.plan import Plan
from linkgauge.history import is_off
from linkgauge.history.keeping import medians_before, runs_before
from linkgauge.judge.compare.earlier import (
    FEWEST,
    as_figures,
    between_runs,
    changes_since,
    earlier,
    is_in_same_state,
)
from linkgauge.judge.compare.likeness import RunFigures, figures_of
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.settings import Settings

from .sides import Say, to_stderr

MOST = 50
"""The most earlier runs that are read: the latest ones."""
_LATEST = 20
_TIMED = 5
"""The latest runs that show how long a plan takes."""
_MOST_FIGURES = 20_000
"""The most figures in all earlier runs with which a kept run is compared. Comparing them takes a
second."""


def since(run: Run) -> tuple[Run, str | None]:
    """Compares a judged run with earlier runs in the history. Returns the run with ranges
    that earlier runs imply, and a line on its differences or on a failure to read the history. The
    line is None without earlier runs, and for incomplete, profiled or very large runs."""
    from linkgauge.report.words.figures import since_line

    count = sum(len(result.cells) for result in run.results)
    last = min(_LATEST, _MOST_FIGURES // max(1, count))
    if run.finished is None or run.is_profiled or run.label.endswith(AGAIN) or not last:
        return run, None
    try:
        past = medians_before(run, last, is_in_same_state, FEWEST)
        if past is None:
            return run, None
        figures = figures_of(run)
        if vary := between_runs(past, figures):
            run = with_ranges_of(replace(run, between_runs=vary))
            figures = figures_of(run)
        found = changes_since(past, figures)
    except Exception as error:  # noqa: BLE001  # the run is worth more than its comparison
        return run, f"not compared with earlier runs: {error}"
    if found is None:
        return run, None
    known = run if found.earlier is None else replace(run, earlier=found.earlier)
    return known, since_line(found)


class _Begun(NamedTuple):
    id: str
    started: str
    machine: Machine
    settings: Settings


def usual_seconds(plan: Plan, machine: Machine, settings: Settings) -> float | None:
    """Returns the median duration in seconds of the latest runs on this machine with as many cells
    and the same settings; None without such runs or without a readable history."""
    cells = sum(len(table.cells) for table in plan)
    try:
        past = runs_before(_Begun("", now(), machine, settings), _TIMED)
    except LinkgaugeError:
        return None
    taken = [
        seconds_between(one.run.started, one.run.finished) for one in past
        if one.run.finished is not None and (one.run.cells, one.settings) == (cells, settings)
    ]  # fmt: skip
    return median(taken) if taken else None


def history_of(
    first: Sequence[RunFigures], used: Sequence[RunFigures], say: Say = to_stderr
) -> list[RunFigures]:
    """Returns earlier runs with the machine, state and settings of `first`, oldest first, without
    the runs in `used`. `say` gets the reason if the history cannot be read."""
    found = list(_of_folders(RESULTS, {(label_name(run.label), run.id) for run in used}))
    try:
        found += _of_history(first, {cell.benchmark for run in used for cell in run.cells})
    except LinkgaugeError as error:
        say(f"judged without the history: {error}")
    return earlier(first, used, found, MOST)


def _of_folders(below: Path, known: set[tuple[str, str]]) -> Iterator[RunFigures]:
    folders = [p for p in run_folders(below) if (p.parent.name, p.name) not in known]
    latest = sorted(folders, key=lambda path: path.name)[-MOST:]
    for _, run in usable(latest, lambda line: None):
        if run.finished is not None and not run.label.endswith(AGAIN):
            yield figures_of(run)


def _of_history(first: Sequence[RunFigures], benchmarks: set[str]) -> Iterator[RunFigures]:
    if is_off():
        return
    try:
        from linkgauge.history.address import address
        from linkgauge.history.reading import earlier_runs
        from linkgauge.history.records import machine_row, setup_row
        from linkgauge.history.store import is_there, opened
    except ImportError as error:
        raise LinkgaugeError(f"{error.name} is not installed") from error

    url = address()
    if url is None or not is_there(url):
        return
    # Of each machine and choice of settings the latest run, before which others are looked for.
    latest = {
        (machine_row(run.machine)["digest"], setup_row(run.settings)["digest"]): run
        for run in sorted(first, key=lambda run: run.started)
    }
    with opened(url) as store:
        for run in latest.values():
            for past in earlier_runs(store, run, last=MOST, benchmarks=benchmarks):
                equivalent = (as_figures(past, one) for one in first)
                own = next((one for one in equivalent if one is not None), None)
                if own is not None and not own.label.endswith(AGAIN):
                    yield own
