"""Implements `--resume`, which continues an interrupted run."""

from __future__ import annotations

from pathlib import Path

from linkgauge.engine.kept.journal import JOURNAL_FILE
from linkgauge.engine.kept.resume import go_on, of_ranks
from linkgauge.engine.kept.runs import RESULTS, latest_run, run_folders
from linkgauge.machine.processes.launch import launched
from linkgauge.model.errors import InputError
from linkgauge.report.keeping import Display
from linkgauge.report.live import LiveReport

from .measuring import keeper_of, measured, stoppable


def resume(
    folder: Path, given: dict[str, str], command: tuple[str, ...], display: Display, *, wait: bool
) -> int:
    """Continues a run, and returns the exit code. `given` has the typed options, `command` the
    whole command line. If `wait`, waits for other runs that use the devices. Raises InputError for
    several processes or if `folder` has no run."""
    if launched().size > 1:
        raise InputError(of_ranks(folder))
    if not (folder / JOURNAL_FILE).exists():
        for below in filter(run_folders, (folder, RESULTS)):
            latest = f"the latest run below {below} is {latest_run(below)}"
            raise InputError(f"{str(folder)!r} is not the folder of a run; {latest}")
    with (
        LiveReport(keeper_of(display)) as report,
        stoppable(report, lambda: folder),
    ):
        run = measured(
            lambda: go_on(
                folder, given, report, command=command, wait=wait,
                doubts=report.keeper.doubts,
            ),
            lambda: folder,
        )  # fmt: skip
        code = report.conclude(run, folder)
        display.refuse_unmatched(run.results, run.machine)
        return code
