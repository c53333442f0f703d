"""Implements `linkgauge doctor`, which checks this machine or a machine that a stored run
describes."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from linkgauge.report.formats import FINDINGS

from . import common
from .options import Options, argument
from .remedies import FIX_SCRIPT, write_fixes

if TYPE_CHECKING:
    from linkgauge.judge.findings import Evidence
    from linkgauge.report.words.remedies import Command


class DoctorOptions(Options):
    run: Path | None = argument(
        "RUN",
        "Judge this run.json, the run in this folder, or the latest run of a label or of a folder "
        "of runs.",
    )
    root: Path | None = common.ROOT
    machine: str | None = common.MACHINE
    fix_script: Path | None = FIX_SCRIPT
    form: common.FindingsFormat


def doctor(asked: DoctorOptions) -> int:
    """Find what is wrong with this machine, and how to fix it.

    With RUN, judges what that run recorded of its machine, and exits with the code of the run.
    Otherwise exits with 1 if a check fails.

    Examples:
        linkgauge doctor
        linkgauge doctor results/cpu/default/20261121T201500Z
        linkgauge doctor --machine vm-degraded
    """
    from linkgauge.judge.doctor import diagnose, failed
    from linkgauge.model.errors import InputError
    from linkgauge.report.sections.findings import Diagnosis
    from linkgauge.report.sections.verdict import of_machine

    root, machine = asked.root, asked.machine
    if sum(source is not None for source in (asked.run, root, machine)) > 1:
        raise InputError("give one of RUN, --root and --machine")
    if asked.run is not None:
        return _examine(asked.run, asked.fix_script, asked.form)
    evidence = _gather(root, machine)
    findings = diagnose(evidence)
    write_fixes(asked.fix_script, findings, evidence.machine.simulated or "this machine")
    then = _look_at_a_run() if root is None and machine is None else None
    conclusion = tuple(of_machine(evidence.machine, findings, then))
    asked.form.write(FINDINGS, Diagnosis(findings, evidence.machine.simulated, conclusion))
    return 1 if failed(findings) else 0


def _look_at_a_run() -> Command:
    """Returns the command that shows more than the setup: `doctor` on this machine's latest run, or
    a first run."""
    from linkgauge.engine.kept.runs import own_run
    from linkgauge.model.errors import InputError
    from linkgauge.report.words.remedies import Command
    from linkgauge.report.words.sentences import program

    try:
        folder = quote(str(own_run()))
    except InputError:
        return Command((program(), "run", "--profile", "quick"))
    return Command((program(), "doctor", folder), "what the latest run shows")


def _examine(path: Path, fix_script: Path | None, form: common.FindingsFormat) -> int:
    """Shows all findings of a kept run, with its verdict. Returns the exit code."""
    from linkgauge.engine.kept.runs import one_run, read_run, run_file
    from linkgauge.judge.outcome import outcome_of
    from linkgauge.judge.verdict import judge
    from linkgauge.report.live import kept_line
    from linkgauge.report.sections.findings import Diagnosis
    from linkgauge.report.sections.verdict import Closing, uncounted, verdict

    file = run_file(one_run(path))
    run = judge(read_run(file))
    outcome = outcome_of(run)
    write_fixes(fix_script, outcome.found, f"the machine of {file}")
    scripted = fix_script is not None
    closing = Closing(kept=file.parent, by_doctor=True, scripted=scripted)
    conclusion = (*uncounted(outcome), *verdict(run, outcome, closing), kept_line(file))
    form.write(FINDINGS, Diagnosis(outcome.found, run.machine.simulated, conclusion))
    return outcome.code


def _gather(root: Path | None, machine: str | None) -> Evidence:
    from linkgauge.judge.findings import Evidence

    from .devices import open_root, read, survey

    if root is not None:
        return Evidence(read(open_root(root)))
    return Evidence(survey((), machine))
