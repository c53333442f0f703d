"""What a worker is asked to measure, and the results of cells that it cannot measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from linkgauge.machine.processes.channel import encode, value_of
from linkgauge.model.by_name import by_name
from linkgauge.model.documents.result import CellResult, PlannedCell, Status
from linkgauge.model.errors import LinkgaugeError, OutcomeKind, Phase, TookTooLong, Unsupported
from linkgauge.model.ranks import RankLost
from linkgauge.model.transfer import Cell


class Repetition(msgspec.Struct, frozen=True):
    """A repetition of cells. `number` counts repetitions from 0. `taken` is the number of samples
    in earlier repetitions, and `spent` is the seconds that these took. `passed` is the number of
    cells in earlier rounds; simulated faults begin after a number of cells. `most` is the number of
    seconds until the run's time budget ends and the repetition is aborted (None: no budget)."""

    number: int = 0
    taken: int = 0
    spent: float = 0.0
    benchmark: str = ""
    passed: int = 0
    most: float | None = None


FIRST = Repetition()


# Why a cell has no figures, in the words of its reason.

DOING: dict[Phase, str] = {
    "plan": "planning",
    "allocate": "allocating",
    "warm up": "warming up",
    "fill": "filling the buffers",
    "measure": "measuring",
    "verify": "verifying",
}
"""The phases of a cell in the words of a reason."""
NOT_REACHED = "the time budget of the run was used up"


def failure_reason(planned: PlannedCell, phase: Phase, what: str) -> str:
    memories = (memory for t in planned.transfers for memory in t.memories)
    places = ", ".join(dict.fromkeys(str(memory.place) for memory in memories))
    where = f" ({places})" if places else ""
    return f"while {DOING[phase]}{where}: {what}"


def unmeasured(
    planned: Cell, status: Status, reason: str, kind: OutcomeKind, phase: Phase | None = None
) -> CellResult:
    known = {"status": status, "reason": reason, "kind": kind, "phase": phase, "round": None}
    return by_name(CellResult, planned, **known)


def skipped_by_plan(planned: PlannedCell) -> CellResult | None:
    if planned.reason is None:
        return None
    return unmeasured(planned, "skip", planned.reason, "size")


def measure_able(
    cells: Sequence[PlannedCell],
    check: Callable[[PlannedCell], CellResult | None],
    measure: Callable[[tuple[PlannedCell, ...]], Iterable[CellResult]],
) -> tuple[CellResult, ...]:
    """Measures cells and returns all results in order. `check` returns None for a cell that can be
    measured; for others, it returns a result or raises an error. `measure` gets the cells that
    neither the plan nor `check` excludes: none, if `check` raises an error for one `at_once`."""
    refusals: dict[int, CellResult] = {}
    able: list[PlannedCell] = []
    for at, cell in enumerate(cells):
        try:
            result = skipped_by_plan(cell) or check(cell)
        except LinkgaugeError as error:
            if cell.at_once:
                return tuple(refused(one, error) for one in cells)
            result = refused(cell, error)
        if result is None:
            able.append(cell)
        else:
            refusals[at] = result
    measured = iter(measure(tuple(able)) if able else ())
    return tuple([refusals.get(at) or next(measured) for at in range(len(cells))])


def received(cells: tuple[CellResult, ...]) -> tuple[CellResult, ...]:
    """Returns results as another process would receive them. Raises if a value cannot be sent."""
    return value_of(msgspec.Raw(encode(cells)), tuple[CellResult, ...])


def refused(planned: PlannedCell, error: LinkgaugeError) -> CellResult:
    status: Status = "skip" if isinstance(error, Unsupported) else "error"
    return _of_rank(unmeasured(planned, status, str(error), error.kind), error)


def failed(planned: PlannedCell, phase: Phase, error: LinkgaugeError) -> CellResult:
    if isinstance(error, Unsupported):
        return refused(planned, error)
    reason = failure_reason(planned, phase, str(error))
    status: Status = "timeout" if isinstance(error, TookTooLong) else "error"
    cell = replace(unmeasured(planned, status, reason, error.kind, phase), round=planned.round)
    return _of_rank(cell, error)


def _of_rank(cell: CellResult, error: LinkgaugeError) -> CellResult:
    return replace(cell, lost=error.lost.number) if isinstance(error, RankLost) else cell
