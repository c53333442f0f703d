"""Measures a collective over several numbers of devices, then alone what looks slow."""

from __future__ import annotations

from msgspec.structs import replace

from linkgauge.benchmarks.scaling import PAIR_SIZE, of_pairs
from linkgauge.cluster.session import opened
from linkgauge.engine.journal import JOURNAL_FILE
from linkgauge.engine.plan import Plan
from linkgauge.engine.request import RunRequest
from linkgauge.engine.runs import read_run
from linkgauge.engine.session import Session
from linkgauge.history.keeping import remember
from linkgauge.judge.scaling import pairs_in_doubt, scaling_of
from linkgauge.judge.verdict import judge
from linkgauge.model.result import Run
from linkgauge.report.live import Display
from linkgauge.report.scale_live import LiveScaling


def carry_out(request: RunRequest, display: Display) -> int:
    """Returns the exit code."""
    with opened(request) as session, LiveScaling(display, remember) as report:
        plan = session.plan(report)
        try:
            run = session.measure(plan, report, report.doubts)
            if run.finished is not None:
                run = _with_pairs(run, session, plan, report)
            return report.conclude(run, session.folder)
        except KeyboardInterrupt:  # nothing is being measured: what is journaled is kept
            if session.folder is None or not (session.folder / JOURNAL_FILE).exists():
                raise
            return report.conclude(read_run(session.folder / JOURNAL_FILE), session.folder)


def _with_pairs(run: Run, session: Session, plan: Plan, report: LiveScaling) -> Run:
    """The run, and each pair alone where the collective is slower than its links should be."""
    scaling = scaling_of(judge(run))
    pairs = pairs_in_doubt(scaling, run)
    if not pairs:
        return run
    report.say(f"slower than expected: measuring {len(pairs)} pairs of devices alone")
    cells = sum(len(sheet.cells) for sheet in plan)
    alone = session.plan_of([of_pairs(pairs, scaling.backend)], (PAIR_SIZE,), first=cells)
    more = session.measure_more(alone, report, report.doubts)
    return replace(
        run, results=(*run.results, *more.results), finished=more.finished, after=more.after
    )
