"""A run of `linkgauge scale` as its user sees it: a bar, then how the collective scales."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from linkgauge.engine.runs import SCALE_FILE
from linkgauge.judge.outcome import Outcome
from linkgauge.judge.scaling import scaling_of
from linkgauge.model.result import Run

from .files import write_document, write_run
from .live import LiveReport, summary_lines


class LiveScaling(LiveReport):
    """Ends with the scaling instead of the results one by one."""

    def _write(self, folder: Path, run: Run) -> Path:
        kept = write_run(folder, run)
        write_document(folder / SCALE_FILE, scaling_of(run))
        return kept

    def _show(self, run: Run, outcome: Outcome, console: Console, kept: Path | None) -> None:
        self._display.format.write("scaling", scaling_of(run))
        for line in summary_lines(run, outcome, self._display, kept):
            console.print(line)
