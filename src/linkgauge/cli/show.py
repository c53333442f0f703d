"""Implements `linkgauge show`, which prints a stored run or compares the labels of several."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from linkgauge.model.errors import InputError
from linkgauge.registry import named
from linkgauge.report.formats import COMPARISONS

from . import common
from .help_text import OUTPUT
from .options import Options, argument, option
from .proposals import labels

if TYPE_CHECKING:
    from linkgauge.report.formats import Format


class ShowOptions(Options):
    run: Path | None = argument(
        "RUN",
        "Show this run.json, journal.jsonl, vary.json, or the folder that holds it; the latest run "
        "of a label; or compare the labels of a folder of runs. Default: the latest run of this "
        "machine.",
        offer=labels,
    )
    against: str | None = option(
        OUTPUT,
        "Compare the other labels of a folder of runs with this one.",
        "LABEL",
        is_input=True,
        offer=labels,
    )
    limits: Path | None = common.LIMITS
    utilization: bool = common.UTILIZATION
    matrix: bool = common.MATRIX
    whole: bool = option(OUTPUT, "Show every figure, not a line per benchmark.", flags="--all")
    no_verdict: bool = common.NO_VERDICT
    verbose: bool = common.VERBOSE
    form: common.RunFormat


def show(asked: ShowOptions) -> int:
    """Show a stored run, or compare the labels of several runs.

    Exits with the code of the run. Of a folder of runs, compares the labels on each
    accelerator: their figures, and how the machines differ.

    Examples:
        linkgauge show
        linkgauge show results/cpu/default/20261121T201500Z
        linkgauge show results/nvidia-h200 --against host
    """
    from linkgauge.engine.kept.runs import find_run, is_run, read_run, run_file
    from linkgauge.report.keeping import Display
    from linkgauge.report.live import show_kept
    from linkgauge.report.reading import kept_at
    from linkgauge.uses.sides import to_stderr

    run = find_run(asked.run, also=named("kept"), say=to_stderr)
    limits = asked.limits
    if (kept := kept_at(run)) is not None:
        asked.form.write(*kept)
        return 0
    if not is_run(run):
        if limits or asked.utilization:
            raise InputError(f"--limits and --utilization take one run: {run} has several")
        return _compare(run, asked.against, asked.form)
    if asked.against is not None:
        raise InputError(f"--against takes a folder of runs: {run} is one run")
    display = Display(
        asked.form, asked.utilization, common.limits_in(limits),
        verdict=not asked.no_verdict, matrix=asked.matrix, whole=asked.whole,
        verbose=asked.verbose,
    )  # fmt: skip
    one = read_run(run)
    if limits and one.is_profiled:
        raise InputError(
            f"--limits: {run} was measured under a profiler, so its figures are not judged"
        )
    return show_kept(one, run_file(run), display)


def _compare(folder: Path, against: str | None, form: Format) -> int:
    from functools import partial

    from linkgauge.judge.compare.configurations import compare
    from linkgauge.report.formats import FLEET
    from linkgauge.report.reading import fleets_in, runs_by_accelerator

    say = partial(print, file=sys.stderr)
    if against is None and (fleets := fleets_in([folder], say)):
        form.write(FLEET, fleets)
        return 0
    found = runs_by_accelerator([folder], against, say)
    comparisons = [
        compare(name, [run for _, run in some], against)
        for name, some in found.items()
        if against is None or any(run.label == against for _, run in some)
    ]
    form.write(COMPARISONS, comparisons)
    if not any(one.aspects for one in comparisons):
        print(
            "nothing to compare: linkgauge run --profile vm --label NAME measures what "
            "configurations are compared by",
            file=sys.stderr,
        )
        return 4
    return 0
