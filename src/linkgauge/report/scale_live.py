"""A run of `linkgauge scale` as its user sees it: a bar, then how the collective scales."""

from __future__ import annotations

from pathlib import Path

from linkgauge.engine.interrupts import undisturbed
from linkgauge.engine.runs import SCALE_FILE
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.scaling import scaling_of
from linkgauge.judge.verdict import judge
from linkgauge.model.errors import ResultsError
from linkgauge.model.result import Run

from .files import write_document, write_run
from .live import LiveReport, summary_lines
from .scale_text import ending_of


class LiveScaling(LiveReport):
    """Ends with the scaling instead of the results one by one."""

    def conclude(self, run: Run, folder: Path | None) -> int:
        """Judges the run, keeps it and shows how it scales. Returns the exit code."""
        self._bar.close()
        with undisturbed():
            run, problem, kept = judge(run), None, None
            scaling = scaling_of(run)
            try:
                if folder is not None:
                    kept = write_run(folder, run)
                    write_document(folder / SCALE_FILE, scaling)
            except ResultsError as error:
                problem = error
            form, outcome, ending = self._display.format, outcome_of(run), ending_of(scaling)
            console = self._errors if form.is_document else self._console
            form.write("scaling", scaling)
            folder = kept and kept.parent
            for line in summary_lines(run, outcome, self._display, folder, ending):
                console.print(line)
            if problem is not None:
                raise problem
            if kept is not None:
                console.print(f"results: {kept}")
                self._remember(run, kept.parent)
        return outcome.code or int(ending.is_low and outcome.verdict)
