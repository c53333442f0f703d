"""The commands `linkgauge gate`, `compare` and `baseline`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from linkgauge.cli import common
from linkgauge.cli.help_text import OUTPUT, PRECISION, RUNS, WHAT
from linkgauge.cli.options import Count, Options, argument, option
from linkgauge.cli.proposals import labels
from linkgauge.model.errors import InputError
from linkgauge.report.formats import Document, Format

if TYPE_CHECKING:
    from linkgauge.judge.compare.gate import GateDocument
    from linkgauge.judge.compare.likeness import RunFigures, Runs
    from linkgauge.judge.compare.run_comparison import RunComparison
    from linkgauge.model.cell_id import CellId
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
        "Compare with this: a baseline, a run, a folder of runs, a label. Repeatable.",
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
        PRECISION, "Accept this rate of runs that fail without a loss.", "P", default="1%"
    )
    min_loss: str = option(
        PRECISION, "Fail no cell that is slower by less than this.", "LOSS", default="3%"
    )
    detect: str | None = option(
        PRECISION,
        "Exit with 3 where this loss may go undetected, and say how many runs it takes to find it. "
        "By default, exits at a loss of 50%, and says the runs for twice --min-loss.",
        "LOSS",
    )
    allow_noisy: bool = option(PRECISION, "Pass although a loss of --detect may go undetected.")
    rerun: Count | None = option(
        PRECISION, "Measure doubtful cells N times more before failing.", "N"
    )
    no_history: bool = option(RUNS, "Use only the runs that are given.")
    limits: Path | None = common.LIMITS
    waivers: Path | None = common.WAIVERS
    wait: bool = common.WAIT
    out: Path = option(
        RUNS, "Keep the runs of --rerun below this folder.", "DIR", default=Path("results")
    )
    form: Annotated[Format, GATE]
    github: bool = option(OUTPUT, "Also print annotations for GitHub Actions.")
    output: Path | None = option(
        OUTPUT, "Write the result as JSON to this file, and the text to stdout.", "FILE", "-o"
    )


def gate(asked: GateOptions) -> int:
    """Fail if a run is slower than a baseline.

    Exits with 1 if a cell is slower, missing or has a worse status. Exits with 3 if there is no
    such cell, but some are inconclusive: the machine was loaded differently, its virtual CPUs were
    moved, or figures vary so much that a loss of half may go undetected. Exits with 2 if machines
    or settings cannot be compared.

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
    """Checks options, compares the runs that `read` returns, and measures unclear cells again.
    `say` prints messages (None: to stderr). Raises InputError for runs that cannot be compared."""
    from linkgauge.judge.compare.gate import hold, suspects
    from linkgauge.judge.compare.likeness import figures_of
    from linkgauge.judge.limits import apply, refuse_unmatched
    from linkgauge.judge.outcome import outcome_of
    from linkgauge.judge.verdict import judge as judge_run
    from linkgauge.uses.earlier_runs import history_of
    from linkgauge.uses.sides import aim_of, only, refuse_unknown, refuse_unlike, to_stderr

    say, times = say or to_stderr, asked.rerun or 0
    if times > MOST_AGAIN:
        raise InputError(f"--rerun {times} is too many: give at most {MOST_AGAIN}")
    aim, patterns = aim_of(asked.significance, asked.min_loss, asked.detect), asked.benchmark
    bounds = common.limits_in(asked.limits)
    waivers = common.waivers_in(asked.waivers)
    before, read_runs = read()
    kept = [(path, common.with_waivers(run, waivers)) for path, run in read_runs]
    for _, run in kept:
        refuse_unmatched(run.results, run.machine, bounds)
    judged = [apply(judge_run(run), bounds) for _, run in kept]
    findings = tuple(one for run in judged for one in outcome_of(run).answer[2])
    after: Runs = [figures_of(run) for run in judged]
    refuse_unknown(patterns, before, after)
    if not asked.force:
        refuse_unlike(before, after)
    before, after = only(before, patterns), only(after, patterns)
    history = [] if asked.no_history else only(history_of(before, [*before, *after], say), patterns)
    judge = partial(
        hold, before,
        history=history, aim=aim, force=asked.force, allow_noisy=asked.allow_noisy,
        findings=findings, waivers=waivers,
    )  # fmt: skip
    found = judge(after)
    doubts = suspects(found) if times else ()
    if not doubts:
        return found
    last = max(kept, key=lambda one: one[1].started)
    runs = _measured_again(last, doubts, asked, say)
    more = [figures_of(apply(judge_run(run), bounds), again=True) for run in runs]
    return judge([*after, *only(more, patterns)], again=(len(doubts), times))


def _measured_again(
    of: tuple[Path | None, Run], cells: Collection[CellId], asked: GateOptions, say: Say
) -> Iterator[Run]:
    from linkgauge.engine.kept.again import measure_again
    from linkgauge.judge.verdict import judge
    from linkgauge.model.units import count_of
    from linkgauge.report.files import write_run

    (path, first), times = of, asked.rerun or 0
    for number in range(1, times + 1):
        say(f"measuring {count_of(len(cells), 'doubtful cell')} again ({number}/{times})")
        run, folder = measure_again(first, path, cells, number, asked.out, wait=asked.wait)
        if folder is not None:
            write_run(folder, judge(run))
        if run.finished is None:
            raise KeyboardInterrupt
        yield run


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
        PRECISION, "Print how many runs it takes to find a loss of this size.", "LOSS", default="3%"
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


BASELINE = Document("a baseline", f"{_SECTIONS}:baseline")


class BaselineOptions(Options):
    runs: tuple[Path, ...] = argument(
        "RUN...",
        "Runs of one machine, or of equivalent ones: files, folders of runs, labels.",
        required=True,
        offer=labels,
    )
    output: Path = option(
        OUTPUT, "Write the baseline to this file.", "FILE", "-o", default=Path("baseline.json")
    )
    write_limits: Path | None = option(
        OUTPUT, "Also write limits for run and gate to this file.", "FILE"
    )
    min_loss: str = option(
        PRECISION, "Leave room for this loss in the written limits.", "LOSS", default="3%"
    )


def baseline(asked: BaselineOptions) -> int:
    """Make a baseline of several runs, or of equivalent machines.

    The file keeps each run's figures. The command prints how much they vary, and the outliers.
    Five runs or more make a good baseline.

    Examples:
        linkgauge baseline results/nvidia-h200/before
        linkgauge baseline before after -o two.json
        linkgauge baseline before --write-limits limits.yml"""
    from linkgauge.engine.controller import now
    from linkgauge.judge.compare.baseline import baseline_of
    from linkgauge.judge.compare.likeness import unlike
    from linkgauge.model.units import parse_fraction
    from linkgauge.report.files import json_document, write_asked
    from linkgauge.report.formats import TERMINAL, formats
    from linkgauge.report.words.figures import said
    from linkgauge.uses.sides import side_of

    from .words import baseline_limits

    room = parse_fraction(asked.min_loss, "minimum loss")
    # Runs of different labels that began in the same second have the same id.
    found = list({(run.id, run.label, run.machine.host.hostname): run
                  for path in asked.runs for run in side_of(path)}.values())  # fmt: skip
    sides = [[run] for run in found]
    names = [run.name for run in found]
    differing = [fact for fact in unlike(sides) if fact.name != "machine"]
    if differing:
        raise InputError(
            f"unlike runs make no baseline: {differing[0].name}: {said(differing[0], names)}"
        )
    made = baseline_of(found, now())
    formats()[TERMINAL].write(BASELINE, made)
    write_asked(asked.output, json_document(made).encode())
    print(f"baseline: {asked.output}")
    if asked.write_limits is not None:
        write_asked(asked.write_limits, baseline_limits(made, room).encode())
        print(f"limits: {asked.write_limits}")
    return 0
