"""How threads follow a random cycle of pointers to cache lines while others load the memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing

from linkgauge import _native
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.machine import Node
from linkgauge.model.transfer import FULL_LOAD

from .native import native_errors
from .protocol import Copy, SamplingPolicy

HOPS = 1 << 14
"""The number of accesses in one loop. They take at least 16 µs, a thousand times as long as reading
the clock."""
POLICY = SamplingPolicy(loops=1, steps=HOPS)
RATE_RUNS, RATE_SECONDS = 4, 0.02
"""The number of runs that determine a full rate, and the seconds of a run."""


def check(copies: Sequence[Copy]) -> None:
    """Raises Unsupported unless copy 0 is one thread's chase and the other copies are endless."""
    chase = copies[0].transfer
    if chase.load != FULL_LOAD:
        raise Unsupported(f"{chase}: a chase has no load: write host:0 -> null by cpu*1")
    if (chase.engine.count or 1) > 1:
        raise Unsupported(f"{chase}: one thread follows pointers: write cpu*1")
    if not all(copy.endless for copy in copies[1:]):
        raise Unsupported("only a load on the memory can run during a chase")


def place(copies: Sequence[Copy], nodes: Mapping[int, Node]) -> list[tuple[int, ...]]:
    """Returns each copy's own CPUs. Raises Unsupported if a node has too few CPUs for this."""
    owners = [copy.transfer.engine.owner.index or 0 for copy in copies]
    counts = [1, *(copy.transfer.engine.count or 1 for copy in copies[1:])]
    needed: Counter[int] = Counter()
    placed = []
    for node, count in zip(owners, counts, strict=True):
        first = needed[node]
        needed[node] += count
        placed.append(nodes[node].cpus[first : first + count])
    for node, count in needed.items():
        has = len(nodes[node].cpus)
        if count > has:
            of = f"{count} CPUs of host:{node}, which has {has}"
            raise Unsupported(f"needs {of}: one follows pointers, the others load the memory")
    return placed


def chase_job(copy: Copy, address: int, cpu: int) -> _native.Job:
    return _native.Job(_native.Op.READ, address, 0, copy.size, copy.seed, [cpu], chase=HOPS)


def rates(jobs: Sequence[_native.Job], warm_up: int) -> list[float]:
    """Returns each job's highest rate in bytes/s. A first run of `warm_up` loops fills caches."""
    most = [0.0] * len(jobs)
    loops = warm_up
    with native_errors("load the memory"), closing(_native.Team(jobs)) as team:
        for _ in range(RATE_RUNS if len(jobs) > 1 else 1):
            team.arm(loops)
            team.open()
            spans = team.wait()
            each = (spans[0].end - spans[0].begin) / loops
            loops = max(1, math.ceil(RATE_SECONDS / max(each, 1e-9)))
            for number, (job, span) in enumerate(zip(jobs, spans, strict=True)):
                rate = job.size * span.passes / (span.end - span.begin)
                most[number] = max(most[number], rate)
    return most


def warm_up_loops(size: int, cache: int) -> int:
    return math.ceil(min(size, cache) / _native.LINK / HOPS)
