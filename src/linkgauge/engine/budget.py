"""Decides how long a run may take in all, and how much of that time is for measuring."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from linkgauge.benchmarks.catalog import ranked
from linkgauge.engine.workers.process import waits_for_cpu
from linkgauge.model.settings import Budget, Settings

from .plan import Plan, able, most_seconds

OfPlan = Literal["plan"]
"""The time that a plan needs, in place of a number of seconds."""
QUICK_SECONDS, QUICK_CELL_SECONDS = 30.0, 0.5
"""The aim of a quick run: it grows with the number of cells where that is too short for all."""
TIMES = 2.0
"""The factor by which a busy machine may make a run longer."""
START_SECONDS = 30.0
"""Seconds to open the devices, and to choose the fastest kernel of the host."""
FOR_PASSES = 0.9
"""The share of the time for passes over the plan. The rest is for doubtful cells, which are
measured once more."""
LOADS, MOST_LOAD = 5.0, 0.125
"""To load the program and to end the run takes as long as to load it so many times. Loading counts
as at most this share of the whole time, because the process may have begun long before the run."""
MOST_END = 0.1
"""The most of the time that a user gave which is kept for the end. What the end takes longer on a
busy machine comes on top, so that the time that was given is used for measuring."""
END_CELL_SECONDS = 0.002
"""CPU seconds to judge and to show a cell."""
LEAST_SHARE = 0.2
"""The least share of the time that is for measuring."""


class Promise(NamedTuple):
    """A run's expected duration (`aim`), and its longest duration (`most`), in seconds."""

    aim: float
    most: float


def promise_of(plan: Plan, settings: Settings, asked: float | OfPlan | None) -> Promise | None:
    """Returns the duration that the user `asked` for or, for "plan", what the plan needs. Returns
    None without `asked`, and for "plan" with fixed samples, a profiler, a soak or a simulation."""
    if asked is None or asked != "plan":
        return None if asked is None else Promise(asked, asked)
    if settings.simulation or settings.soak or settings.profiler:
        return None
    needs = most_seconds(plan, settings)
    if needs is None:
        return None
    aim = float(round(START_SECONDS + TIMES * needs))
    if settings.profile == "quick":
        aim = min(aim, max(QUICK_SECONDS, QUICK_CELL_SECONDS * sum(1 for _ in able(plan))))
    return Promise(aim, TIMES * aim)


def budget_of(
    plan: Plan,
    settings: Settings,
    asked: float | OfPlan | None,
    began: float,
    named: Sequence[str] = (),
) -> Budget | None:
    """Returns the time budget of a run that began at `began` (monotonic clock), or None if it has
    no limit. Some time is reserved for the end of the run: more if loading took long or waited for
    CPUs. If the user gave a time, the benchmarks in `named` are measured first."""
    found = promise_of(plan, settings, asked)
    if found is None:
        return None
    order: tuple[str, ...] = ()
    if asked != "plan":
        of_host = {table.benchmark: table.backend == "host" for table in plan}
        order = ranked(of_host, named, settings.profile)
    if settings.simulation is not None:  # where only measuring takes time
        return Budget(*found, FOR_PASSES * found.aim, found.most, order)
    cpu, waited = time.process_time(), max(waits_for_cpu(os.getpid()).values(), default=0.0)
    showing = (1 + waited / cpu) * END_CELL_SECONDS * sum(len(table.cells) for table in plan)
    opening = time.monotonic() - began

    def measuring(seconds: float) -> float:
        end = LOADS * min(cpu + waited, MOST_LOAD * seconds) + showing
        if asked != "plan":
            end = min(end, MOST_END * found.aim)
        return max(seconds - opening - end, LEAST_SHARE * seconds)

    return Budget(*found, measuring(FOR_PASSES * found.aim), measuring(found.most), order)


def seconds_between(began: str, now: str) -> float:
    """Returns the seconds between two ISO 8601 times; 0 if negative or if one is unreadable."""
    try:
        passed = datetime.fromisoformat(now) - datetime.fromisoformat(began)
    except (TypeError, ValueError):
        return 0.0
    return max(passed.total_seconds(), 0.0)
