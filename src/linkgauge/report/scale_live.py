"""A run of `linkgauge scale` as its user sees it: a bar, then how the collective scales."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console

from linkgauge.engine.runs import SCALE_FILE
from linkgauge.engine.visits import CellAt
from linkgauge.judge.outcome import Outcome, doubtful
from linkgauge.judge.scaling import scaling_of
from linkgauge.judge.verdict import judge, unjudged
from linkgauge.model.result import Result, Run
from linkgauge.model.units import COLLECTIVE

from .files import write_document, write_run
from .formats import SCALING
from .live import LiveReport, summary_blocks
from .render.terminal import shown
from .scale_text import ending_of
from .sections.verdict import Closing


class LiveScaling(LiveReport):
    """Ends with the scaling instead of the results one by one."""

    def doubts(self, run: Run) -> Collection[CellAt]:
        return doubtful(run, lambda one: _by_count(judge(one))) if self._display.verdict else ()

    def _outcome(self, run: Run) -> Outcome:
        outcome = super()._outcome(_by_count(run))
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
        for line in shown(summary_blocks(_by_count(run), outcome, self._display, closing)):
            console.print(line)


def _by_count(run: Run) -> Run:
    """The run without verdicts on single sizes of a collective: here each number of devices has
    one."""

    def without(result: Result) -> Result:
        return unjudged(result) if result.unit == COLLECTIVE.symbol else result

    return replace(run, results=tuple(map(without, run.results)))
