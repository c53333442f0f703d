"""The command `linkgauge gate`: fails if a run is worse than a baseline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from linkgauge.cli import common
from linkgauge.cli.help_text import OUTPUT, PRECISION, RUNS, WHAT
from linkgauge.cli.options import Count, Options, option
from linkgauge.cli.proposals import labels
from linkgauge.model.errors import InputError
from linkgauge.report.formats import Document, Format

if TYPE_CHECKING:
    from linkgauge.judge.compare.gate import GateDocument
    from linkgauge.judge.compare.likeness import RunFigures, Runs
    from linkgauge.model.documents.result import Run
    from linkgauge.uses.sides import Say

BaselineAndRuns = tuple["list[RunFigures]", "list[tuple[Path | None, Run]]"]
"""The runs of a baseline, and the runs to judge, with the paths of those that are kept."""

MOST_AGAIN = 100

_SECTIONS, _WORDS = f"{__package__}.sections", f"{__package__}.words"
GATE = Document(
    "the gate's judgement",
    f"{_SECTIONS}:gate",
    {
        "json": f"{_WORDS}:gate_json",
        "csv": f"{_WORDS}:gate_csv",
        "markdown": f"{_SECTIONS}:gate",
        "junit": f"{_WORDS}:gate_junit",
    },
)


class GateOptions(Options):
    baseline: tuple[Path, ...] = option(
        WHAT,
        "Hold against this: a baseline, a run, a folder of runs, a label. Repeatable.",
        "REF",
        required=True,
        offer=labels,
    )
    current: Path | None = option(
        WHAT,
        "Judge this run, folder of runs or label. Default: the latest run of this machine.",
        "RUN",
        is_input=True,
        offer=labels,
    )
    benchmark: tuple[str, ...] = option(
        WHAT, "Judge only benchmarks that match. Repeatable.", "PATTERN"
    )
    force: bool = option(WHAT, "Judge although machines, settings or load differ.")
    significance: str = option(
        PRECISION, "Accept this rate of runs that fail for nothing.", "P", default="1%"
    )
    min_loss: str = option(PRECISION, "Fail no cell that loses less.", "LOSS", default="3%")
    detect: str | None = option(
        PRECISION,
        "Exit with 3 where this loss may be unseen, and say how many runs it takes to find it. "
        "Default: 50 %, and twice --min-loss.",
        "LOSS",
    )
    allow_blind: bool = option(PRECISION, "Pass although a loss of --detect may be unseen.")
    rerun: Count | None = option(
        PRECISION, "Measure the cells in doubt N times more before failing.", "N"
    )
    no_history: bool = option(RUNS, "Use only the runs that are given.")
    limits: Path | None = common.LIMITS
    wait: bool = common.WAIT
    out: Path = option(
        RUNS, "Keep what is measured again below this folder.", "DIR", default=Path("results")
    )
    form: Annotated[Format, GATE]
    github: bool = option(OUTPUT, "Also print annotations for GitHub Actions.")
    output: Path | None = option(
        OUTPUT, "Write the document to this file, and the text to stdout.", "FILE", "-o"
    )


def gate(asked: GateOptions) -> int:
    """Fail if a run has lost against a baseline.

    Exits with 1 if a cell has lost, is missing or ends worse. Exits with 3 if no cell has lost, but
    some are inconclusive: the machine was loaded differently, its virtual CPUs were moved, or
    figures vary so much that a loss of half may be unseen. Exits with 2 if machines or settings are
    unlike.

    Examples:
        linkgauge gate --baseline baseline.json --current after
        linkgauge gate --baseline before --current after --rerun 2
        linkgauge gate --baseline before --junit -o gate.xml"""
    from linkgauge.cli import streams
    from linkgauge.report.files import write_asked
    from linkgauge.report.formats import TERMINAL, formats
    from linkgauge.uses.sides import runs_of, side_of

    from .words import gate_annotations

    form, output = asked.form, asked.output
    if output is not None and not form.is_document:
        raise InputError("-o FILE: of which format? Give --json, --csv, --markdown or --junit, too")

    def read() -> BaselineAndRuns:
        before = [figures for one in asked.baseline for figures in side_of(one)]
        return before, runs_of(asked.current)

    found = held(asked, read)
    if output is not None:
        write_asked(output, form.document(GATE, found))
        form = formats()[TERMINAL]
    form.write(GATE, found)
    if asked.github:
        stream = sys.stderr if form.is_document else sys.stdout
        for line in gate_annotations(found):
            streams.command(line, stream)
    return found.code


def held(
    asked: GateOptions, read: Callable[[], BaselineAndRuns], say: Say | None = None
) -> GateDocument:
    """The gate's judgement, as the options say, of the runs that `read` gives after the options are
    checked. Cells in doubt are measured again. `say` takes messages for people (None: they go to
    stderr). Raises InputError for unlike runs."""
    from linkgauge.judge.compare.gate import hold, suspects
    from linkgauge.judge.compare.likeness import figures_of
    from linkgauge.judge.outcome import outcome_of
    from linkgauge.uses.earlier_runs import history_of
    from linkgauge.uses.sides import aim_of, only, refuse_unknown, refuse_unlike, to_stderr

    from .again import all_limited, limited, measured_again

    say, times = say or to_stderr, asked.rerun or 0
    if times > MOST_AGAIN:
        raise InputError(f"--rerun {times} is too many: give at most {MOST_AGAIN}")
    aim, patterns = aim_of(asked.significance, asked.min_loss, asked.detect), asked.benchmark
    bounds = common.limits_in(asked.limits)
    before, kept = read()
    judged = [all_limited(run, bounds) for _, run in kept]
    findings = tuple(one for run in judged for one in outcome_of(run).findings)
    after: Runs = [figures_of(run) for run in judged]
    refuse_unknown(patterns, before, after)
    if not asked.force:
        refuse_unlike(before, after)
    before, after = only(before, patterns), only(after, patterns)
    history = [] if asked.no_history else only(history_of(before, [*before, *after], say), patterns)
    judge = partial(
        hold, before,
        history=history, aim=aim, force=asked.force, allow_blind=asked.allow_blind,
        findings=findings,
    )  # fmt: skip
    found = judge(after)
    doubts = suspects(found) if times else ()
    if not doubts:
        return found
    last = max(kept, key=lambda one: one[1].started)
    runs = measured_again(last, doubts, times, asked.out, say, wait=asked.wait)
    more = [figures_of(limited(run, bounds), again=True) for run in runs]
    return judge([*after, *only(more, patterns)], again=(len(doubts), times))
