"""Measures a collective over several numbers of devices, then pairs of devices that may be slow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console

from linkgauge.engine.request import RunRequest
from linkgauge.model.documents.result import Run
from linkgauge.report.files import write_document
from linkgauge.report.keeping import Display, Keeper, Kept
from linkgauge.report.live import LiveReport, summary_blocks
from linkgauge.report.render.terminal import print_blocks
from linkgauge.report.sections.verdict import Closing
from linkgauge.uses.measuring import concluded, keeper_of, opened_by_launch

from . import SCALING
from .scaling import pairs_in_doubt, scaling_of

SCALE_FILE = "scale.json"


class ScalingKeeper(Keeper):
    def pairs_in_doubt(self, run: Run) -> Sequence[tuple[str, str]]:
        if (found := super().pairs_in_doubt(run)) or run.finished is None:
            return found
        return pairs_in_doubt(scaling_of(self.judge(run)), run)

    def write(self, folder: Path, run: Run) -> None:
        super().write(folder, run)
        write_document(folder / SCALE_FILE, scaling_of(run))


class LiveScaling(LiveReport):
    def _show(self, kept: Kept, console: Console) -> None:
        scaling, one = scaling_of(kept.run), kept.outcome
        judged = {"verdict": one.word, "exit_code": one.code, "findings": one.findings}
        self._display.format.write(SCALING, replace(scaling, **judged))
        closing = Closing(kept.folder, kept.since)
        print_blocks(console, summary_blocks(kept.run, one, self._display, closing))


def carry_out(request: RunRequest, display: Display) -> int:
    keeper = keeper_of(display, ScalingKeeper)
    with opened_by_launch(request) as session, LiveScaling(keeper) as report:
        plan = session.plan(report)
        return concluded(session, plan, report, keeper, report.conclude)
