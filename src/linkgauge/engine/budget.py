"""Decides how long a run may take in all, and how much of that time is for measuring."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from linkgauge.benchmarks.catalog import ranked
from linkgauge.engine.measuring.sampler import REPETITION_SHARE
from linkgauge.model.documents.result import PlannedCell, PlannedTable
from linkgauge.model.settings import REPETITION_SECONDS, Budget, Settings

from .plan import Plan, able, most_seconds, setup_seconds
from .repetitions import Repetitions

OfPlan = Literal["plan"]
"""The time that a plan needs, in place of a number of seconds."""
QUICK_SECONDS, QUICK_CELL_SECONDS = 30.0, 0.5
"""A quick run aims at no more than the first or, if larger, the second times its cells."""
TIMES = 2.0
"""The factor by which a busy machine may make a run longer."""
START_SECONDS = 30.0
"""Seconds to open the devices, and to choose the fastest kernel of the host."""
FOR_PASSES = 0.9
"""The share of the time for passes over the plan. The rest is for doubtful cells, which are
measured once more."""
LOADS, MOST_LOAD = 5.0, 0.125
"""Ending the run counts as so many times as long as loading the program. Loading counts as at most
this share of the whole time, because the process may have begun long before the run."""
MOST_END = 0.1
"""The largest share of a user's time that is reserved for ending the run. On a busy machine, the
end may take longer and exceed the user's time, so that enough is left for measuring."""
END_CELL_SECONDS = 0.002
"""CPU seconds to judge and to show a cell."""
LEAST_SHARE = 0.2
"""The least share of the time that is for measuring."""


class Promise(NamedTuple):
    """A run's expected duration (`aim`), and its longest duration (`most`), in seconds."""

    aim: float
    most: float


def promise_of(plan: Plan, settings: Settings, asked: float | OfPlan | None) -> Promise | None:
    """Returns a run's duration: what the user `asked` for or, for "plan", what the plan needs.
    Returns None for no limit, and for "plan" with fixed samples, profiler, soak or simulation."""
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


BENCHMARK_SECONDS, SETUP_SECONDS, SAMPLE_SECONDS, LATENCY_SECONDS = 0.38, 0.006, 0.02, 0.01
"""The seconds until a benchmark of devices runs (their library loads kernels and pins memory), and
the seconds of a repetition's start and end, of a sample, and of all samples of a latency. Products
also rest for 0.2 s before their samples. Without these, 29 of 30 recorded runs of one and two H200s
took 0.8 to 1.2 times what was expected."""
SIMULATED_START_SECONDS = 0.7


def expected_seconds(plan: Plan, settings: Settings, promise: Promise | None) -> float | None:
    """Estimates the seconds that a plan takes while the machine is as busy as now. Returns None for
    a run with a profiler, a soak, an AI workload, or a duration that the user gave."""
    if settings.simulation is not None:
        most = most_seconds(plan, settings)
        return None if most is None or promise else SIMULATED_START_SECONDS + most
    is_asked = promise is not None and promise.aim == promise.most
    works = any(cell.workload is not None for _, cell in able(plan))
    if settings.soak or settings.profiler or is_asked or works:
        return None

    def repetition(table: PlannedTable, cell: PlannedCell) -> float:
        own = settings.of(cell)
        sampling = max(REPETITION_SECONDS, REPETITION_SHARE * own.max_time)
        if own.samples is not None:
            sampling = own.samples * SAMPLE_SECONDS + (0.0 if cell.does.product is None else 0.2)
        elif cell.report.is_latency:
            sampling = LATENCY_SECONDS
        by_device = any(place.is_device for place in cell.places)
        return sampling + (SETUP_SECONDS if by_device else setup_seconds(table.size))

    needs = Repetitions(plan, settings).usual_seconds(repetition)
    needs += BENCHMARK_SECONDS * len({table.benchmark for table, _ in able(plan)})
    needs *= _slowed()
    return needs if promise is None else min(needs, FOR_PASSES * promise.aim)


def _slowed() -> float:
    """Returns the factor by which waiting for CPUs has slowed down this process so far."""
    from linkgauge.engine.workers.process import waits_for_cpu  # a simulated machine never waits

    return 1 + max(waits_for_cpu(os.getpid()).values(), default=0.0) / time.process_time()


def budget_of(
    plan: Plan,
    settings: Settings,
    asked: float | OfPlan | None,
    began: float,
    named: Sequence[str] = (),
) -> Budget | None:
    """Returns the time budget of a run that began at `began` (monotonic clock), or None if it has
    no limit. Time to end the run is reserved, more of it on a slow machine. If the user gave a
    time, the benchmarks in `named` are measured first."""
    found = promise_of(plan, settings, asked)
    if found is None:
        return None
    order: tuple[str, ...] = ()
    if asked != "plan":
        of_host = {table.benchmark: table.backend == "host" for table in plan}
        order = ranked(of_host, named, settings.profile)
    if settings.simulation is not None:  # where only measuring takes time
        return Budget(*found, FOR_PASSES * found.aim, found.most, order)
    slowed, loading, opening = _slowed(), time.process_time(), time.monotonic() - began
    showing = slowed * END_CELL_SECONDS * sum(len(table.cells) for table in plan)

    def measuring(seconds: float) -> float:
        end = LOADS * min(slowed * loading, MOST_LOAD * seconds) + showing
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
