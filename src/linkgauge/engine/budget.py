"""Decides how long a run may take in all, and which part of that time is for measuring."""

from __future__ import annotations

import os
import time
from typing import Literal

from linkgauge.engine.workers.process import waits_for_cpu
from linkgauge.model.settings import Budget, Settings

from .plan import Plan, able, most_seconds

OfPlan = Literal["plan"]
"""The time budget that a plan needs, in place of a number of seconds."""
QUICK_SECONDS, QUICK_CELL_SECONDS = 30.0, 0.5
"""The time budget of a quick run. It grows with the number of cells where that time is too short to
visit each of them."""
TIMES = 2.0
"""The factor by which a plan may take longer than its estimate: a machine may be busy."""
START_SECONDS = 10.0
"""Seconds to open the devices, and to choose the fastest kernel of the host."""
END_SECONDS, END_CELL_SECONDS = 2.0, 0.002
"""CPU seconds to load the program and to write its report, and to judge and show a cell."""
LEAST_SHARE = 0.2
"""The least share of a time budget that is for measuring."""


def promised(plan: Plan, settings: Settings, asked: float | OfPlan | None) -> float | None:
    """Returns the seconds that a run takes at most, because it then ends: those that were asked
    for, or as many as the plan needs. Returns None for a run that has no such limit: without
    `asked`, and with a fixed number of samples, under a profiler, for a plan that is repeated, and
    on a simulated machine unless a number of seconds was asked for."""
    needs = most_seconds(plan, settings)
    if asked != "plan":
        return asked
    if needs is None or settings.simulation or settings.soak or settings.profiler:
        return None
    seconds = START_SECONDS + TIMES * needs
    if settings.profile == "quick":
        cells = sum(1 for _ in able(plan))
        seconds = min(seconds, max(QUICK_SECONDS, QUICK_CELL_SECONDS * cells))
    return float(round(seconds))


def budget_of(
    plan: Plan, settings: Settings, asked: float | OfPlan | None, began: float
) -> Budget | None:
    """Returns the time budget of a run that began to open the machine at `began`, a time of the
    monotonic clock. Returns None for a run without one. Some time is left for the report: more on a
    busy machine, where this process has waited for CPUs since its start."""
    seconds = promised(plan, settings, asked)
    if seconds is None or settings.simulation is not None:
        return None if seconds is None else Budget(seconds, seconds)
    waited = max(waits_for_cpu(os.getpid()).values(), default=0.0)
    slow = 1.0 + waited / time.process_time()
    end = slow * (END_SECONDS + END_CELL_SECONDS * sum(len(sheet.cells) for sheet in plan))
    left = seconds - (time.monotonic() - began) - end
    return Budget(seconds, max(left, LEAST_SHARE * seconds))
