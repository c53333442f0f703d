"""Measures a collective over several numbers of devices. Then measures pairs of devices that look
slow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console

from linkgauge.cli.pairs_alone import with_pairs
from linkgauge.cli.requests import since_earlier
from linkgauge.engine.kept.journal import JOURNAL_FILE
from linkgauge.engine.kept.runs import read_run
from linkgauge.engine.ranks.opening import opened
from linkgauge.engine.request import RunRequest
from linkgauge.engine.visits import CellAt
from linkgauge.history.keeping import remember
from linkgauge.judge.outcome import Outcome, doubtful
from linkgauge.judge.verdict import unjudged
from linkgauge.model.documents.result import Result, Run
from linkgauge.model.units import COLLECTIVE
from linkgauge.report.files import write_document, write_run
from linkgauge.report.live import Display, LiveReport, summary_blocks
from linkgauge.report.render.terminal import print_blocks
from linkgauge.report.sections.verdict import Closing

from .command import SCALING
from .scaling import pairs_in_doubt, scaling_of
from .sections import ending_of

SCALE_FILE = "scale.json"


class LiveScaling(LiveReport):
    """The display of a run that ends with its scaling instead of its results."""

    def doubts(self, run: Run) -> Collection[CellAt]:
        verdicts = self.judge.verdicts
        return doubtful(run, lambda one: _by_count(verdicts(one))) if self._display.verdict else ()

    def _outcome(self, run: Run) -> Outcome:
        outcome = super()._outcome(replace(run, results=_by_count(run.results)))
        is_low = ending_of(scaling_of(run)).is_low and outcome.verdict
        return replace(outcome, code=outcome.code or int(is_low))

    def _write(self, folder: Path, run: Run) -> Path:
        kept = write_run(folder, run)
        write_document(folder / SCALE_FILE, scaling_of(run))
        return kept

    def _show(self, run: Run, outcome: Outcome, console: Console, kept: Path | None) -> None:
        scaling = scaling_of(run)
        self._display.format.write(SCALING, scaling)
        closing = Closing(ending_of(scaling), kept)
        by_count = replace(run, results=_by_count(run.results))
        print_blocks(console, summary_blocks(by_count, outcome, self._display, closing))


def _by_count(results: Sequence[Result]) -> tuple[Result, ...]:
    """Returns the results without verdicts on single sizes of a collective, because each number of
    devices gets one verdict."""

    def without(result: Result) -> Result:
        return unjudged(result) if result.unit == COLLECTIVE.symbol else result

    return tuple(map(without, results))


def carry_out(request: RunRequest, display: Display) -> int:
    """Measures the scaling, and shows and keeps the result. Returns the exit code."""
    with opened(request) as session, LiveScaling(display, remember, since_earlier) as report:
        plan = session.plan(report)
        try:
            run = session.measure(plan, report, report.doubts)
            if run.finished is not None:
                pairs = pairs_in_doubt(scaling_of(report.judge(run)), run)
                run = with_pairs(run, session, plan, report, pairs)
            return report.conclude(run, session.folder)
        except KeyboardInterrupt:  # nothing is being measured: what is journaled is kept
            if session.folder is None or not (session.folder / JOURNAL_FILE).exists():
                raise
            return report.conclude(read_run(session.folder / JOURNAL_FILE), session.folder)
