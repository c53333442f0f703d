"""Runs judged anew, for those who read them."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from linkgauge.judge.outcome import Outcome, outcome_of
from linkgauge.judge.verdict import judge, unjudged
from linkgauge.model.result import Run

from .rows import OneRun


def judged(run: Run, path: Path | None = None) -> OneRun:
    """A run, judged anew, that this path keeps."""
    run = judge(run)
    folder = path if path is None or path.is_dir() else path.parent
    return shown_as(run, outcome_of(run), folder)


def shown_as(run: Run, outcome: Outcome, folder: Path | None = None) -> OneRun:
    """A judged run. The figures of one that is not to be judged have no verdicts."""
    if not outcome.verdict:
        run = replace(run, results=tuple(map(unjudged, run.results)))
    return OneRun(run, outcome, folder)
