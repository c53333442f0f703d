"""Measures pairs of devices alone whose collective is slower than their links should be."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from linkgauge.benchmarks.scaling import PAIR_SIZE, of_pairs
from linkgauge.engine.plan import Plan
from linkgauge.engine.session import Session
from linkgauge.model.result import Run
from linkgauge.report.live import LiveReport


def with_pairs(
    run: Run,
    session: Session,
    plan: Plan,
    report: LiveReport,
    pairs: Sequence[tuple[str, str]],
) -> Run:
    """The run, and each of the pairs alone, by the backend of its first result."""
    if not pairs:
        return run
    report.say(f"slower than expected: measuring {len(pairs)} pairs of devices alone")
    cells = sum(len(sheet.cells) for sheet in plan)
    alone = of_pairs(pairs, run.results[0].backend)
    more = session.measure_more(
        session.plan_of([alone], (PAIR_SIZE,), first=cells), report, report.doubts
    )
    return replace(
        run, results=(*run.results, *more.results), finished=more.finished, after=more.after
    )
