"""What the threads of a cell met with, as text, for work that each does by itself."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.model.counters import Counters
from linkgauge.model.result import Result
from linkgauge.model.units import unit_of

from .blocks import Line, plain
from .matrix import shown

STOLEN = 0.01
"""A share of the time from which on it is said of a run."""


def thread_lines(result: Result) -> Iterator[Line]:
    """A line for each cell: how fast and how alike its threads are, and what disturbed them."""
    for cell in result.cells:
        if cell.counters is not None and cell.counters.threads:
            yield plain("; ".join(_parts(cell.counters, result.unit)), "dim")


def steal_lines(result: Result) -> Iterator[Line]:
    """The most time that a hypervisor took from the threads of a cell, where it matters."""
    shares = [
        counters.steal / counters.seconds
        for cell in result.cells
        if (counters := cell.counters) and counters.steal is not None and counters.seconds
    ]
    if shares and max(shares) >= STOLEN:
        yield plain(f"steal up to {max(shares):.1%}", "warn")


def _parts(counters: Counters, unit: str) -> Iterator[str]:
    count = len(counters.threads)
    name = "1 thread" if count == 1 else f"{count} threads"
    if (fair := counters.fairness) is not None:
        each = f"{shown(fair.mean, unit)} {unit_of(unit).shown} each"
        name += f": {each}, stddev {shown(fair.stddev, unit)} ({fair.variation:.2%})"
    yield name
    if counters.steal is not None and counters.seconds:
        yield f"steal {counters.steal / counters.seconds:.2%}"
    if counters.involuntary is not None:
        plural = "" if counters.involuntary == 1 else "es"
        yield f"{counters.involuntary} involuntary context switch{plural}"
    if counters.cycles and counters.instructions is not None and counters.seconds:
        yield f"{counters.cycles / counters.seconds / 1e9:.2f} GHz"
        yield f"{counters.instructions / counters.cycles:.2f} instructions a cycle"
