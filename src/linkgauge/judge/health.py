"""Whether a node is fit for work, by a brief run of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from linkgauge.engine.bounded import Bounded, Doing
from linkgauge.model.cell_id import CellId
from linkgauge.model.result import Run, Status
from linkgauge.model.stats.changes import Aim

from .doctor import failed
from .earlier import held_against
from .gate import FAILURES, GateCell, hold
from .likeness import Runs, unlike
from .limit_checks import apply
from .limits import Limit
from .machine_facts import Fact
from .outcome import Outcome, outcome_of
from .run_figures import RunFigures, figures_of
from .verdict import judge

Reason = Literal[
    "LinksHealthy", "Busy", "CheckFailed", "Hung", "DeviceMissing", "MeasurementFailed",
    "WrongBytes", "BelowLimit", "FaultFound", "SlowTransfer", "UnlikeBaseline", "Regression",
    "NotMeasured", "NothingMeasured",
]  # fmt: skip
"""As a node condition words it; all but the first say that the node is not healthy."""


class Health(msgspec.Struct, frozen=True):
    """The verdict on a node: what was measured, judged (`run`, null if nothing was), what has lost
    against the baseline, in what the node is unlike it, and how many accelerators there are of how
    many."""

    reason: Reason
    bounded: Bounded
    run: Run | None = None
    outcome: Outcome | None = None
    lost: tuple[GateCell, ...] = ()
    unlike: tuple[Fact, ...] = ()
    devices: tuple[int, int] | None = None

    @property
    def is_healthy(self) -> bool:
        return self.reason == "LinksHealthy"


_AIM = Aim(0.01, 0.05, 0.1)


def health_of(
    bounded: Bounded,
    limits: tuple[Limit, ...] = (),
    baseline: Sequence[RunFigures] = (),
    devices: int | None = None,
    timeout: float = 10.0,
) -> Health:
    """The verdict on what was measured in time, held against what the hardware should do, limits,
    the runs of a baseline, and the number of accelerators that the node has (None: whatever there
    are). A cell that takes longer than `timeout` seconds hangs. The gravest reason counts."""
    if bounded.run is None:
        busy = bounded.error is not None and bounded.error.is_busy
        why: Reason = "Busy" if busy else "CheckFailed" if bounded.error else "Hung"
        return Health(why, bounded)
    run = apply(judge(bounded.run), limits)
    outcome = outcome_of(run)
    health = Health("LinksHealthy", bounded, run, outcome)
    there = sum(not device.is_cpu for device in run.machine.all_devices)
    if devices is not None and there < devices:
        return replace(health, reason="DeviceMissing", devices=(there, devices))
    if (reason := _by_run(bounded, run, outcome, timeout)) is not None:
        return replace(health, reason=reason)
    if baseline:
        health = _held(health, run, baseline)
    if health.is_healthy and bounded.missing:
        return replace(health, reason="NotMeasured")
    return health


def _by_run(bounded: Bounded, run: Run, outcome: Outcome, timeout: float) -> Reason | None:
    """What is wrong by the run itself."""
    cells = [cell for result in run.results for cell in result.cells]
    has: set[Status] = {cell.status for cell in cells}
    if "timeout" in has or _is_hanging(bounded.doing, timeout):
        return "Hung"
    if "error" in has or bounded.error is not None:
        return "MeasurementFailed"
    if "fail" in has:
        limit = all(cell.kind == "limit" for cell in cells if cell.status == "fail")
        return "BelowLimit" if limit else "WrongBytes"
    if "pass" not in has:
        return "NotMeasured" if bounded.missing else "NothingMeasured"
    if failed(outcome.findings):
        return "FaultFound"
    return "SlowTransfer" if any(cell.verdict == "low" for cell in cells) else None


def _is_hanging(doing: tuple[Doing, float] | None, timeout: float) -> bool:
    """Whether it was ended at something that had gone on for too long."""
    return doing is not None and doing[1] > timeout


def _held(health: Health, run: Run, baseline: Runs) -> Health:
    """Holds what was measured against the same cells of the baseline."""
    current = figures_of(run)
    if facts := tuple(unlike([baseline, [current]])):
        return replace(health, reason="UnlikeBaseline", unlike=facts)
    measured = {cell.id for cell in current.cells}
    lost = hold([_only(one, measured) for one in baseline], [current], [], _AIM).of(*FAILURES)
    if not lost:
        return health
    since = held_against(baseline, current)
    run = replace(run, earlier=since.earlier) if since and since.earlier else run
    return replace(health, reason="Regression", lost=lost, outcome=outcome_of(run))


def _only(run: RunFigures, keys: Collection[CellId]) -> RunFigures:
    return replace(run, cells=tuple(cell for cell in run.cells if cell.id in keys))


def worst(lost: Sequence[GateCell]) -> GateCell:
    """The one that has lost most; one without a figure before all others."""
    return max(lost, key=lambda one: 1.0 if one.loss is None else one.loss)
