"""How often intervals have been shown to hold what another run finds.

An interval is made to hold it 95 times in 100. Where fresh processes showed that it does, it says
so; where they did not, because a busy host varies from run to run as it does not within one, it
says what they showed instead (bench/interval_coverage.py; docs/benchmarks.md has the tables).
"""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.model.intervals import COVERAGE
from linkgauge.model.transfer import Report, Transfer

_HOST_THREADS = 51 / 72
_OPENCL = 64 / 72
_HOST_LATENCY = 26 / 48
_HOST_BY_DEVICES = 34 / 48
"""Intervals that held, of all: 24 runs of each cell, on the machine that showed the least."""


def proven_coverage(transfers: Sequence[Transfer], report: Report, *, simulated: bool) -> float:
    """Of a cell's kind; a simulated machine varies as it says it does."""
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
