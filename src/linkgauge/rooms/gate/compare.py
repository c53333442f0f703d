"""The command `linkgauge compare`: shows the differences between runs, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from linkgauge.cli.help_text import OUTPUT, PRECISION, RUNS, WHAT
from linkgauge.cli.options import Options, argument, option
from linkgauge.cli.proposals import labels
from linkgauge.model.errors import InputError
from linkgauge.report.formats import Document, Format

if TYPE_CHECKING:
    from linkgauge.judge.compare.likeness import RunFigures
    from linkgauge.judge.compare.run_comparison import RunComparison
    from linkgauge.uses.sides import Say

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
        offer=labels,
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
    runs on the same machine show the variation. Exits with 0 whatever differs, with 4 if nothing
    can be compared; use gate to fail.

    Examples:
        linkgauge compare before after
        linkgauge compare before after --benchmark 'host_*'
        linkgauge compare baseline.json after --json"""
    from linkgauge.uses.sides import side_of

    if len(asked.runs) < 2:
        raise InputError("compare what? Give two runs or more: linkgauge compare before after")
    found = compared(asked, [(str(path), side_of(path)) for path in asked.runs])
    asked.form.write(EVERY_CELL if asked.whole else COMPARED, found)
    return 0 if any(found.compared) else 4


def compared(
    asked: CompareOptions, given: Sequence[tuple[str, Sequence[RunFigures]]], say: Say | None = None
) -> RunComparison:
    """The comparison, as the options say, of sides with their names. `say` takes messages for
    people (None: they go to stderr)."""
    from linkgauge.judge.compare.run_comparison import compare_runs
    from linkgauge.judge.compare.side_tests import Sides
    from linkgauge.uses.earlier_runs import history_of
    from linkgauge.uses.sides import aim_of, only, refuse_unknown, to_stderr

    patterns = asked.benchmark
    refuse_unknown(patterns, *(runs for _, runs in given))
    sides = [only(runs, patterns) for _, runs in given]
    aim = aim_of(asked.significance, "0", asked.detect)
    every = [run for side in sides for run in side]
    history = (
        [] if asked.no_history else only(history_of(sides[0], every, say or to_stderr), patterns)
    )
    return compare_runs(Sides([name for name, _ in given], sides, history), aim)
