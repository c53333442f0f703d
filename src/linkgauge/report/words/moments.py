"""Names moments of a soak, and the rounds of samples (visits) that failed at them."""

from __future__ import annotations

from linkgauge.model.documents.soak import FailedVisit, Moment
from linkgauge.model.units import clock
from linkgauge.report.blocks import Line, Span, line


def when(moment: Moment) -> str:
    """Returns when a moment of a soak was, as in `at 0:03:12, in round 12 (2026-11-24 17:03:12
    UTC)`."""
    return f"at {clock(moment.at)}, in round {moment.round} ({day(moment)} UTC)"


def day(moment: Moment) -> str:
    return moment.time[:19].replace("T", " ")


def failed_line(failed: FailedVisit) -> Line:
    """Makes a line about a round of samples (visit) that failed."""
    reason = f": {failed.reason}" if failed.reason else ""
    return line(
        Span(failed.status.upper(), "bad"), f"  {failed.cell}  {when(failed.moment)}{reason}"
    )
