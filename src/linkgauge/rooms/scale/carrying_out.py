"""Measures a collective over several numbers of devices. Then measures pairs of devices that look
slow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console

from linkgauge.cli.requests import concluded, keeper_of
from linkgauge.engine.ranks.opening import opened
from linkgauge.engine.request import RunRequest
from linkgauge.engine.visits import CellAt
from linkgauge.judge.outcome import Outcome, doubtful
from linkgauge.judge.verdict import unjudged
from linkgauge.model.documents.result import Result, Run
from linkgauge.model.units import COLLECTIVE
from linkgauge.report.files import write_document
from linkgauge.report.keeping import Display, Keeper, Kept
from linkgauge.report.live import LiveReport, summary_blocks
from linkgauge.report.render.terminal import print_blocks
from linkgauge.report.sections.verdict import Closing

from .command import SCALING
from .scaling import pairs_in_doubt, scaling_of
from .sections import ending_of

SCALE_FILE = "scale.json"


class ScalingKeeper(Keeper):
    """Judges a run by its scaling instead of single sizes, and keeps the scaling, too."""

    def doubts(self, run: Run) -> Collection[CellAt]:
        return doubtful(run, self._judged_by_count) if self.display.verdict else ()

    def _judged_by_count(self, run: Run) -> Run:
        run = self.judge(run)
        return replace(run, results=_by_count(run.results))

    def pairs_in_doubt(self, run: Run) -> Sequence[tuple[str, str]]:
        if run.finished is None:
            return ()
        return pairs_in_doubt(scaling_of(self.judge(run)), run)

    def outcome(self, run: Run) -> Outcome:
        outcome = super().outcome(replace(run, results=_by_count(run.results)))
        is_low = ending_of(scaling_of(run)).is_low and outcome.verdict
        return replace(outcome, code=outcome.code or int(is_low))

    def write(self, folder: Path, run: Run) -> None:
        super().write(folder, run)
        write_document(folder / SCALE_FILE, scaling_of(run))


class LiveScaling(LiveReport):
    """A report that ends with the scaling instead of single results."""

    def _show(self, kept: Kept, console: Console) -> None:
        scaling = scaling_of(kept.run)
        self._display.format.write(SCALING, scaling)
        closing = Closing(ending_of(scaling), kept.folder, kept.since)
        by_count = replace(kept.run, results=_by_count(kept.run.results))
        print_blocks(console, summary_blocks(by_count, kept.outcome, self._display, closing))


def _by_count(results: Sequence[Result]) -> tuple[Result, ...]:
    """Returns the results without verdicts on single sizes of a collective, because each number of
    devices gets one verdict."""

    def without(result: Result) -> Result:
        return unjudged(result) if result.unit == COLLECTIVE.symbol else result

    return tuple(map(without, results))


def carry_out(request: RunRequest, display: Display) -> int:
    """Measures the scaling, and shows and keeps the result. Returns the exit code."""
    keeper = keeper_of(display, ScalingKeeper)
    with opened(request) as session, LiveScaling(keeper) as report:
        plan = session.plan(report)
        return concluded(session, plan, report, keeper, report.conclude)
