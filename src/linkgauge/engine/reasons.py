"""Why a cell has no figures, in the words of its reason."""

from __future__ import annotations

from msgspec.structs import replace

from linkgauge.model.errors import LinkgaugeError, OutcomeKind, Phase, TookTooLong, Unsupported
from linkgauge.model.ranks import RankLost
from linkgauge.model.result import CellResult, PlannedCell, Status
from linkgauge.model.transfer import Cell

DOING: dict[Phase, str] = {
    "plan": "planning",
    "allocate": "allocating",
    "warm up": "warming up",
    "fill": "filling the buffers",
    "measure": "measuring",
    "verify": "verifying",
}
"""Phases as a reason words them."""


def failure_reason(planned: PlannedCell, phase: Phase, what: str) -> str:
    """A reason: what happened to a cell, in which phase, and to which memories."""
    memories = (memory for t in planned.transfers for memory in t.memories)
    places = ", ".join(dict.fromkeys(str(memory.place) for memory in memories))
    where = f" ({places})" if places else ""
    return f"while {DOING[phase]}{where}: {what}"


def unmeasured(
    planned: Cell, status: Status, reason: str, kind: OutcomeKind, phase: Phase | None = None
) -> CellResult:
    """A cell without figures, and why: while it was in this phase."""
    place = planned.row, planned.column, planned.transfers, planned.report
    return CellResult(
        *place,
        status,
        reason,
        operation=planned.operation,
        workload=planned.workload,
        kind=kind,
        phase=phase,
    )


def skipped_by_plan(planned: PlannedCell) -> CellResult | None:
    """The result of a cell that the plan gives a reason to skip; None for any other."""
    if planned.reason is None:
        return None
    return unmeasured(planned, "skip", planned.reason, "size")


def refused(planned: PlannedCell, error: LinkgaugeError) -> CellResult:
    """The result of a cell that was not even begun, because of this error."""
    status: Status = "skip" if isinstance(error, Unsupported) else "error"
    return _of_rank(unmeasured(planned, status, str(error), error.kind), error)


def failed(planned: PlannedCell, phase: Phase, error: LinkgaugeError) -> CellResult:
    """The result of a cell that failed with an error in this phase."""
    if isinstance(error, Unsupported):
        return refused(planned, error)
    reason = failure_reason(planned, phase, str(error))
    status: Status = "timeout" if isinstance(error, TookTooLong) else "error"
    cell = replace(unmeasured(planned, status, reason, error.kind, phase), round=planned.round)
    return _of_rank(cell, error)


def _of_rank(cell: CellResult, error: LinkgaugeError) -> CellResult:
    """With the rank whose loss the error is, if it is one."""
    return replace(cell, lost=error.lost.number) if isinstance(error, RankLost) else cell
