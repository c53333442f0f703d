"""Measures pairs of devices alone if a collective was slower than their links allow."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec.structs import replace

from linkgauge.engine.controller import Observer
from linkgauge.engine.plan import Plan
from linkgauge.engine.session import Session
from linkgauge.model.documents.result import Run
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Benchmark, Cell, Engine, Report, Transfer
from linkgauge.model.units import count_of
from linkgauge.report.keeping import Keeper

PAIRS, PAIR_SIZE = "device_to_device_memcpy_write_sm", 512 << 20
"""The benchmark by which a pair is measured alone, and its size in bytes. At smaller sizes, the
start of a copy may hide a slow link."""


def with_pairs(
    pairs: Sequence[tuple[str, str]],
    run: Run,
    session: Session,
    plan: Plan,
    observer: Observer,
    keeper: Keeper,
) -> Run:
    """Measures the pairs. Returns the run with their results, or unchanged if no time is left."""
    if time.monotonic() >= session.until:
        return run
    observer.say(f"to explain slow collectives: measuring {count_of(len(pairs), 'pair')} alone")
    cells = sum(len(table.cells) for table in plan)
    alone = of_pairs(pairs, run.results[0].backend)
    more = session.measure_more(
        session.plan_of([alone], (PAIR_SIZE,), first=cells), observer, keeper.doubts
    )
    return replace(
        run, results=(*run.results, *more.results), finished=more.finished, after=more.after
    )


def of_pairs(pairs: Sequence[tuple[str, str]], backend: str) -> Benchmark:
    """Returns a benchmark: a kernel on each pair's first device writes to the second device."""
    cells = tuple(
        Cell(one, other, (_write(parse_memory(one), parse_memory(other)),), Report.FIRST)
        for one, other in pairs
    )
    return Benchmark(PAIRS, "pairs alone: device(row) -> device(column)", backend, cells)


def _write(source: Memory, destination: Memory) -> Transfer:
    return Transfer(source, destination, Engine(source, "sm"))
