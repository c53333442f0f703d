"""`linkgauge compare`: what differs between runs, cell by cell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkgauge.cli.help_text import OUTPUT, PRECISION, RUNS, WHAT
from linkgauge.cli.options import Option, headed, own
from linkgauge.model.errors import InputError
from linkgauge.report.formats import Format

from .documents import COMPARED, EVERY_CELL


@own(
    **headed(WHAT, benchmark=Option("Compare only benchmarks that match. Repeatable.", "PATTERN")),
    **headed(
        PRECISION,
        significance=Option("Accept this rate of comparisons with a false difference.", "P"),
        detect=Option("Say how many runs it takes to find this loss.", "LOSS"),
    ),
    no_history=Option("Use only the runs that are given.", heading=RUNS),
    whole=Option("Show every cell.", flag="--all", heading=OUTPUT),
)
def compare(
    *,
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="A B [C…]",
            help="A run.json, a folder of a run or of several, a baseline, or a label; the others "
            "are compared with the first.",
        ),
    ],
    benchmark: list[str] | None = None,
    significance: str = "1%",
    detect: str = "3%",
    no_history: bool = False,
    whole: bool = False,
    form: Annotated[Format, COMPARED],
) -> int:
    """Compare runs, cell by cell.

    A side of several runs (a folder, a baseline) shows how much runs vary; of single runs, earlier
    runs on the same machine do. Exits with 0 whatever differs: gate fails.

    Examples:
        linkgauge compare before after
        linkgauge compare before after --benchmark 'host_*'
        linkgauge compare baseline.json after --json
    """
    from linkgauge.cli.earlier_runs import history_of
    from linkgauge.cli.sides import aim_of, only, side_of
    from linkgauge.judge.run_comparison import compare_runs
    from linkgauge.judge.side_tests import Sides

    if len(runs) < 2:
        raise InputError("compare what? Give two runs or more: linkgauge compare before after")
    sides = [only(side_of(path), benchmark or ()) for path in runs]
    names = [str(path) for path in runs]
    aim = aim_of(significance, "0", detect)
    every = [run for side in sides for run in side]
    history = [] if no_history else only(history_of(sides[0], every), benchmark or ())
    found = compare_runs(Sides(names, sides, history), aim)
    form.write(EVERY_CELL if whole else COMPARED, found)
    return 0 if any(found.compared) else 4
