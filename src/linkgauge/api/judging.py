"""Judges machines and runs: `devices`, `expect`, `doctor`, `judge_files`, `compare` and `gate`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from linkgauge.judge.compare.likeness import RunFigures, figures_of
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.uses.sides import runs_of, side_of

from .calling import LOG, Say, asked, path_of, takes
from .keywords import (
    CompareKeywords,
    DevicesKeywords,
    DoctorKeywords,
    ExpectKeywords,
    GateKeywords,
    JudgeKeywords,
    StrPath,
)
from .runs import MeasuredRun, view_of
from .shown import Findings

if TYPE_CHECKING:
    from linkgauge.judge.compare.gate import GateDocument
    from linkgauge.judge.compare.run_comparison import RunComparison
    from linkgauge.model.hardware.machine import Machine
    from linkgauge.rooms.expect.expecting import ExpectedMachine

Side = MeasuredRun | StrPath
"""A run in memory, or what a command takes: a run's file or folder, a folder of runs, a baseline or
a label."""


@takes(DevicesKeywords)
def devices(run: Side | None = None, **options: Unpack[DevicesKeywords]) -> Machine:
    """Returns the hardware of a run's machine, as `linkgauge devices` does. Without `run`, returns
    that of this machine, or of the simulated or captured machine in `options`. Rates of links are
    in bytes/s. Raises InputError if a run or capture cannot be read."""
    from linkgauge.cli.devices import DevicesOptions, found_machine
    from linkgauge.engine.kept.runs import one_run, read_run

    if isinstance(run, MeasuredRun):
        return run.run.machine
    with asked("devices", DevicesOptions, () if run is None else (run,), options) as given:
        if given.run is None:
            return found_machine(given)
        if any(options.values()):
            raise InputError("a run has its own machine: leave out all options")
        return read_run(one_run(given.run, command="devices")).machine


@takes(ExpectKeywords)
def expect(what: str | None = None, **options: Unpack[ExpectKeywords]) -> ExpectedMachine:
    """Returns the figures in SI units that the machine `what` (default: this one) should reach,
    with the arithmetic, as `linkgauge expect` does. Raises InputError for an unknown machine."""
    from linkgauge.rooms.expect.command import ExpectOptions, expected

    with asked("expect", ExpectOptions, () if what is None else (what,), options) as given:
        return expected(given)


@takes(DoctorKeywords)
def doctor(run: Side | None = None, **options: Unpack[DoctorKeywords]) -> Findings:
    """Returns the problems in a run, as `linkgauge doctor` does. Without `run`, returns the
    problems in the setup of this machine, or of the simulated or captured machine in `options`.
    Raises InputError if a run or capture cannot be read."""
    from linkgauge.cli.doctor import DoctorOptions, check_source, of_run, of_setup

    if isinstance(run, MeasuredRun):
        return Findings(run.outcome.found)
    with asked("doctor", DoctorOptions, () if run is None else (run,), options) as given:
        check_source(given)
        return Findings(of_setup(given)[1] if given.run is None else of_run(given.run)[2].found)


@takes(JudgeKeywords)
def judge_files(
    paths: StrPath | Sequence[StrPath], **options: Unpack[JudgeKeywords]
) -> MeasuredRun:
    """Judges figures in another tool's output, as `linkgauge judge` does. `paths` are the files of
    this output, and files that describe the machine unless `machine` names it (`8 x H100 SXM`). For
    several hosts, returns the worst host's run. Runs are kept below `out`, or nowhere if `out` is
    None (the default). Raises InputError without figures or a machine to judge them by."""
    from linkgauge.report.keeping import judge_kept
    from linkgauge.rooms.judge_files.command import JudgeOptions, reported_runs

    names = (paths,) if isinstance(paths, str | PathLike) else tuple(paths)
    with asked("judge", JudgeOptions, names, options) as given:
        reported = reported_runs(given)
        return view_of(judge_kept(reported.run, reported.kept, reported.display))


@takes(CompareKeywords)
def compare(
    *runs: Side | Sequence[Side], say: Say = LOG, **options: Unpack[CompareKeywords]
) -> RunComparison:
    """Compares runs cell by cell, as `linkgauge compare` does. The first side is the baseline.
    Several runs of a side (a folder, a sequence) show how much runs vary. `significance` is the
    accepted rate of false differences. `detect` is a loss: the result says how many runs are needed
    to detect it. Both options are fractions or text (`1%`). Figures are in each cell's SI unit,
    differences are ratios. Raises InputError for fewer than two sides, or a side without runs."""
    from linkgauge.rooms.gate.command import CompareOptions, compared

    if len(runs) < 2:
        raise InputError("compare what? Give two runs or more")
    names = _names(runs)
    with asked("compare", CompareOptions, names, options) as given:
        sides = zip(names, runs, strict=True)
        return compared(given, [(name, _side(one, say)) for name, one in sides], say)


@takes(GateKeywords)
def gate(
    current: Side | Sequence[Side] | None = None,
    *,
    baseline: Side | Sequence[Side],
    say: Say = LOG,
    **options: Unpack[GateKeywords],
) -> GateDocument:
    """Compares a run with a baseline, as `linkgauge gate` does. Without `current`, the run is this
    machine's latest. The result's `code` is 0 for a pass, 1 if a cell is slower, missing or has a
    worse status, 3 if the comparison is inconclusive, 4 if no cell could be compared. `rerun` is
    how many more times to measure cells that may be slower; these measurements raise what `run`
    raises. Fractions are numbers or text. Raises InputError if a side has no runs, or machines or
    settings differ (unless `force`)."""
    from linkgauge.rooms.gate.command import GateOptions, held

    (name,) = _names((baseline,))
    with asked("gate", GateOptions, (), {"baseline": name, **options}) as given:
        return held(given, lambda: (_side(baseline, say), _runs(current, say)), say)


def _side(side: Side | Sequence[Side], say: Say) -> list[RunFigures]:
    if isinstance(side, MeasuredRun):
        return [figures_of(side.run)]
    if isinstance(side, str | PathLike):
        return side_of(path_of(side), say)
    return [figures for one in _several(side) for figures in _side(one, say)]


def _runs(side: Side | Sequence[Side] | None, say: Say) -> list[tuple[Path | None, Run]]:
    if isinstance(side, MeasuredRun):
        return [(side.folder, side.run)]
    if side is None or isinstance(side, str | PathLike):
        return runs_of(None if side is None else path_of(side), say)
    return [run for one in _several(side) for run in _runs(one, say)]


def _several(side: Sequence[Side]) -> Sequence[Side]:
    if not side:
        raise InputError("a side has no runs: give a run, or several")
    return side


def _names(sides: Sequence[Side | Sequence[Side]]) -> list[str]:
    """Returns a label or a path for each side. Sides with equal names get a number."""
    found = [_name(side) for side in sides]
    return [
        name if found.count(name) == 1 else f"{name} ({number})"
        for number, name in enumerate(found, 1)
    ]


def _name(side: Side | Sequence[Side]) -> str:
    if isinstance(side, MeasuredRun):
        return side.run.label
    if isinstance(side, str | PathLike):
        return str(path_of(side))
    return ", ".join(dict.fromkeys(map(_name, side)))
