"""Runs judged anew, for those who read them."""

from __future__ import annotations

from msgspec.structs import replace

from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge, unjudged
from linkgauge.model.result import Run

from .rows import JudgedRun


def judged(run: Run) -> JudgedRun:
    """The run, judged anew. The figures of a run that is not judged have no verdicts."""
    run = judge(run)
    outcome = outcome_of(run)
    if not outcome.verdict:
        results = tuple(map(unjudged, run.results))
        run = replace(run, results=results)
    return JudgedRun(run, outcome)
