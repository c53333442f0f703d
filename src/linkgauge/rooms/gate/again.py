"""Measures cells again for the gate, and judges runs by limits."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from linkgauge.engine.controller import Observer
from linkgauge.engine.kept.again import measure_again
from linkgauge.judge.limits import Limit, apply, refuse_unmatched
from linkgauge.judge.verdict import judge
from linkgauge.model.cell_id import CellId
from linkgauge.model.documents.result import Run
from linkgauge.model.units import count_of
from linkgauge.report.files import write_run
from linkgauge.uses.sides import Say


def all_limited(run: Run, bounds: tuple[Limit, ...]) -> Run:
    """Judges the run, by the limits, too: a cell beyond a limit fails. Raises InputError for a
    limit that fits no cell."""
    refuse_unmatched(run.results, run.machine, bounds)
    return limited(run, bounds)


def limited(run: Run, bounds: tuple[Limit, ...]) -> Run:
    """Judges the run, by the limits, too: a cell beyond a limit fails."""
    return apply(judge(run), bounds)


def measured_again(
    of: tuple[Path | None, Run],
    cells: Collection[CellId],
    times: int,
    out: Path,
    say: Say,
    *,
    wait: bool,
) -> Iterator[Run]:
    """Yields `times` new runs with these cells of the run at this path (None: it is not kept); each
    new run is kept below `out`. Raises KeyboardInterrupt after Ctrl-C; finished runs stay."""
    path, first = of
    for number in range(1, times + 1):
        say(f"measuring {count_of(len(cells))} in doubt again ({number}/{times})")
        run, folder = measure_again(first, path, cells, number, out, Observer(), wait=wait)
        if folder is not None:
            write_run(folder, judge(run))
        if run.finished is None:
            raise KeyboardInterrupt
        yield run
