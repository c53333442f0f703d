"""Measures a simulated machine with and without `--change`, and shows what the change does."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from linkgauge.engine.controller import Observer
from linkgauge.engine.request import RunRequest
from linkgauge.model.documents.result import Run
from linkgauge.model.settings import Simulation
from linkgauge.report.console import make_console
from linkgauge.report.keeping import Display
from linkgauge.report.live import LiveReport
from linkgauge.report.render.terminal import print_blocks
from linkgauge.report.sections.what_if import what_if_blocks
from linkgauge.uses.measuring import opened_by_launch

from .measuring import concluded, keeper_of, planned


def carry_out(request: RunRequest, unchanged: Simulation, display: Display) -> int:
    """Measures the machine with and without the change, and shows the differences. Returns the exit
    code of the run with the change."""
    console = make_console(stderr=display.format.is_document)
    changed = list[Run]()

    with opened_by_launch(request) as session, LiveReport(keeper_of(display)) as report:

        def conclude(run: Run, folder: Path | None) -> int:
            changed.append(run)
            return report.conclude(run, folder)

        plan = planned(session, report, display)
        code = concluded(session, plan, report, report.keeper, conclude)
    settings = replace(request.settings, simulation=unchanged, soak=None)
    with opened_by_launch(replace(request, settings=settings, out=None)) as session:
        before = session.measure(session.plan(Observer()), Observer())
    console.print()
    print_blocks(console, what_if_blocks(before, changed[0]))
    return code
