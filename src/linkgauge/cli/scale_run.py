"""Measures a collective over several numbers of devices, then alone what looks slow."""

from __future__ import annotations

from linkgauge.cluster.session import opened
from linkgauge.engine.journal import JOURNAL_FILE
from linkgauge.engine.request import RunRequest
from linkgauge.engine.runs import read_run
from linkgauge.history.keeping import remember
from linkgauge.judge.scaling import pairs_in_doubt, scaling_of
from linkgauge.judge.verdict import judge
from linkgauge.report.live import Display
from linkgauge.report.scale_live import LiveScaling

from .pairs_alone import with_pairs
from .requests import since_earlier


def carry_out(request: RunRequest, display: Display) -> int:
    """Returns the exit code."""
    with opened(request) as session, LiveScaling(display, remember, since_earlier) as report:
        plan = session.plan(report)
        try:
            run = session.measure(plan, report, report.doubts)
            if run.finished is not None:
                pairs = pairs_in_doubt(scaling_of(judge(run)), run)
                run = with_pairs(run, session, plan, report, pairs)
            return report.conclude(run, session.folder)
        except KeyboardInterrupt:  # nothing is being measured: what is journaled is kept
            if session.folder is None or not (session.folder / JOURNAL_FILE).exists():
                raise
            return report.conclude(read_run(session.folder / JOURNAL_FILE), session.folder)
