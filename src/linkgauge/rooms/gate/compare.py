"""The command `linkgauge compare`: shows the differences between runs, cell by cell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from linkgauge.cli.help_text import OUTPUT, PRECISION, RUNS, WHAT
from linkgauge.cli.options import Options, argument, option
from linkgauge.model.errors import InputError
from linkgauge.report.formats import Document, Format

_SECTIONS, _WORDS = f"{__package__}.sections", f"{__package__}.words"
COMPARED = Document(
    "a comparison of runs",
    f"{_SECTIONS}:few_cells",
    {
        "json": f"{_WORDS}:comparison_json",
        "csv": f"{_WORDS}:comparison_csv",
        "markdown": f"{_SECTIONS}:every_cell",
    },
)
EVERY_CELL = COMPARED._replace(blocks=f"{_SECTIONS}:every_cell")


class CompareOptions(Options):
    runs: tuple[Path, ...] = argument(
        "A B [C…]",
        "A run.json, a folder of a run or of several, a baseline, or a label; the others are "
        "compared with the first.",
        required=True,
    )
    benchmark: tuple[str, ...] = option(
        WHAT, "Compare only benchmarks that match. Repeatable.", "PATTERN"
    )
    significance: str = option(
        PRECISION, "Accept this rate of comparisons with a false difference.", "P", default="1%"
    )
    detect: str = option(
        PRECISION, "Say how many runs it takes to find this loss.", "LOSS", default="3%"
    )
    no_history: bool = option(RUNS, "Use only the runs that are given.")
    whole: bool = option(OUTPUT, "Show every cell.", flags="--all")
    form: Annotated[Format, COMPARED]


def compare(asked: CompareOptions) -> int:
    """Compare runs, cell by cell.

    A side of several runs (a folder, a baseline) shows how much runs vary. For single runs, earlier
    runs on the same machine show the variation. Exits with 0 whatever differs; use gate to fail.

    Examples:
        linkgauge compare before after
        linkgauge compare before after --benchmark 'host_*'
        linkgauge compare baseline.json after --json"""
    from linkgauge.cli.earlier_runs import history_of
    from linkgauge.cli.sides import aim_of, only, side_of
    from linkgauge.judge.compare.run_comparison import compare_runs
    from linkgauge.judge.compare.side_tests import Sides

    if len(asked.runs) < 2:
        raise InputError("compare what? Give two runs or more: linkgauge compare before after")
    sides = [only(side_of(path), asked.benchmark) for path in asked.runs]
    names = [str(path) for path in asked.runs]
    aim = aim_of(asked.significance, "0", asked.detect)
    every = [run for side in sides for run in side]
    history = [] if asked.no_history else only(history_of(sides[0], every), asked.benchmark)
    found = compare_runs(Sides(names, sides, history), aim)
    asked.form.write(EVERY_CELL if asked.whole else COMPARED, found)
    return 0 if any(found.compared) else 4
