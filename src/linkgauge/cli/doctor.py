"""Implements `linkgauge doctor`, which checks this machine or the machine of a stored run."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from linkgauge.report.formats import CHECKS, FINDINGS

from . import common
from .help_text import OUTPUT
from .options import Options, argument, option
from .proposals import labels
from .remedies import FIX_SCRIPT, write_fixes

if TYPE_CHECKING:
    from linkgauge.judge.findings import Finding
    from linkgauge.judge.outcome import Outcome
    from linkgauge.model.documents.result import Run
    from linkgauge.model.hardware.machine import Machine
    from linkgauge.report.words.remedies import Command


class DoctorOptions(Options):
    run: Path | None = argument(
        "RUN",
        "Judge this run.json, the run in this folder, or the latest run of a label or of a folder "
        "of runs.",
        offer=labels,
    )
    root: Path | None = common.ROOT
    machine: str | None = common.MACHINE
    fix_script: Path | None = FIX_SCRIPT
    checks: bool = option(OUTPUT, "List all checks: what they read, their limits, and what to do.")
    form: common.FindingsFormat


def doctor(asked: DoctorOptions) -> int:
    """Find what is wrong with this machine, and how to fix it.

    With RUN, judges what that run recorded of its machine, and exits with the code of the run.
    Otherwise exits with 1 if a check fails.

    Examples:
        linkgauge doctor
        linkgauge doctor results/cpu/default/20261121T201500Z
        linkgauge doctor --machine vm-degraded
        linkgauge doctor --checks --json
    """
    from linkgauge.judge.outcome import outcome_of_setup
    from linkgauge.report.sections.findings import Diagnosis
    from linkgauge.report.sections.verdict import of_machine

    if asked.checks:
        from linkgauge.judge.doctor.catalogue import catalogue

        asked.form.write(CHECKS, catalogue())
        return 0
    check_source(asked)
    if asked.run is not None:
        return _examine(asked.run, asked.fix_script, asked.form)
    machine, findings = of_setup(asked, brief=not asked.form.is_document)
    write_fixes(asked.fix_script, findings, machine.simulated or "this machine")
    then = look_at_a_run() if asked.root is None and asked.machine is None else None
    conclusion = tuple(of_machine(machine, findings, then))
    outcome = outcome_of_setup(findings)
    asked.form.write(FINDINGS, Diagnosis(findings, machine.simulated, conclusion, outcome))
    return outcome.code


def check_source(asked: DoctorOptions) -> None:
    from linkgauge.model.errors import InputError

    if sum(source is not None for source in (asked.run, asked.root, asked.machine)) > 1:
        raise InputError("give only one of RUN, --root and --machine")


def of_setup(asked: DoctorOptions, *, brief: bool = False) -> tuple[Machine, tuple[Finding, ...]]:
    """Returns the machine that the options name, and the doctor's findings without any run."""
    from linkgauge.judge.doctor import diagnose
    from linkgauge.judge.findings import Evidence

    from .devices import open_root, read, survey

    root = asked.root
    machine = read(open_root(root)) if root else survey((), asked.machine, brief=brief)
    return machine, diagnose(Evidence(machine))


def of_run(path: Path) -> tuple[Path, Run, Outcome]:
    from linkgauge.engine.kept.runs import one_run, read_run, run_file
    from linkgauge.judge.outcome import outcome_of
    from linkgauge.judge.verdict import judge

    file = run_file(one_run(path))
    run = judge(read_run(file))
    return file, run, outcome_of(run)


def look_at_a_run() -> Command:
    """Returns a command that shows more: `doctor` on this machine's latest run, else `run`."""
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
    from linkgauge.engine.kept.runs import place_of_run
    from linkgauge.report.live import kept_line
    from linkgauge.report.sections.findings import Diagnosis
    from linkgauge.report.sections.verdict import Closing, ending, uncounted

    file, run, outcome = of_run(path)
    write_fixes(fix_script, outcome.found, f"the machine of {file}")
    scripted = fix_script is not None
    closing = Closing(kept=place_of_run(file), by_doctor=True, scripted=scripted)
    conclusion = (
        *uncounted(outcome),
        *ending(run, outcome, closing, verbose=True),
        kept_line(file),
    )
    form.write(FINDINGS, Diagnosis(outcome.found, run.machine.simulated, conclusion, outcome))
    return outcome.code
