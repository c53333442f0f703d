"""How often intervals were shown to contain the figure of another run.

Intervals are formed to contain it 95 times in 100. Where fresh processes confirmed that, this is
what an interval states; where they did not, because a busy host varies more between runs than
within one, it states the coverage they showed (bench/interval_coverage.py; tables in
docs/intervals.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.model.stats.intervals import COVERAGE
from linkgauge.model.transfer import Report, Transfer

_HOST_THREADS = 51 / 72
_OPENCL = 64 / 72
_HOST_LATENCY = 26 / 48
_HOST_BY_DEVICES = 34 / 48
"""Share of intervals that held: 24 runs of each cell, on the machine with the lowest coverage."""


def proven_coverage(transfers: Sequence[Transfer], report: Report, *, simulated: bool) -> float:
    """The coverage proven for this kind of cell; a simulated machine varies as its description
    says."""
    if simulated:
        return COVERAGE
    owners = {transfer.engine.owner.backend for transfer in transfers}
    kinds = {transfer.engine.kind for transfer in transfers}
    crosses = any(memory.is_host for transfer in transfers for memory in transfer.memories)
    found = [COVERAGE]
    if "cpu" in kinds:
        found.append(_HOST_THREADS)
    if "opencl" in owners:
        found.append(_OPENCL)
    elif crosses and kinds != {"cpu"}:
        found.append(_HOST_LATENCY if report.is_latency else _HOST_BY_DEVICES)
    return round(min(found), 2)
