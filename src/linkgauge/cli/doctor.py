"""`linkgauge doctor`: what is wrong with this machine, or with one that a run was kept of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .devices import RootOption
from .options import Json, Machine

if TYPE_CHECKING:
    from linkgauge.judge.findings import Evidence


def doctor(
    run: Annotated[
        Path | None, typer.Argument(help="A run.json or a run's folder: judge what it kept.")
    ] = None,
    root: RootOption = None,
    machine: Machine = None,
    json: Json = False,
) -> int:
    """Check this machine, or what a run kept of one: what was found, why it matters, what mends it.

    Exits with 1 if a check failed. Example: linkgauge doctor results/cpu/default/20261121T201500Z
    """
    from linkgauge.judge.doctor import diagnose, failed
    from linkgauge.report.doctor import print_findings, write_findings
    from linkgauge.report.terminal import make_console, simulated

    evidence = _gather(run, root, machine)
    findings = diagnose(evidence)
    if json:
        write_findings(findings)
    else:
        console = make_console()
        if evidence.before.simulated is not None:
            console.print(simulated().append(f" {evidence.before.simulated}"))
        print_findings(console, findings)
    return 1 if failed(findings) else 0


def _gather(run: Path | None, root: Path | None, machine: str | None) -> Evidence:
    """Raises InputError where more than one is asked for, or it cannot be read."""
    from linkgauge.engine.runs import read_run
    from linkgauge.judge.findings import evidence_of
    from linkgauge.judge.verdict import judge
    from linkgauge.model.errors import InputError

    if sum(source is not None for source in (run, root, machine)) > 1:
        raise InputError("give one of RUN, --root and --machine")
    if run is not None:
        return evidence_of(judge(read_run(run)))
    if root is not None:
        return _captured(root)
    return _here(machine)


def _captured(root: Path) -> Evidence:
    from linkgauge.judge.findings import Evidence

    from .devices import open_root, read

    return Evidence(read(open_root(root)))


def _here(machine: str | None) -> Evidence:
    from contextlib import closing

    from linkgauge.engine.supervisor import Supervisor
    from linkgauge.judge.findings import Evidence
    from linkgauge.model.result import Settings

    from .session import choose_backends, make_simulation

    simulation = make_simulation(machine, None)
    accelerators, _ = choose_backends(None, simulation)
    with closing(Supervisor(Settings(sizes=(), simulation=simulation))) as worker:
        return Evidence(worker.survey(accelerators))
