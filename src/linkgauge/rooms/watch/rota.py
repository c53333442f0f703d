"""The turns of a watch's cells within its budget, and the devices that other processes use, which
it leaves alone."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from linkgauge.engine.locks import devices_measured, holder
from linkgauge.engine.plan import SETUP_RATE, SETUP_SECONDS, Plan, able
from linkgauge.machine.cpu_time import CpuTime, cpu_time
from linkgauge.model.documents.result import PlannedCell, PlannedTable
from linkgauge.model.hardware.inventory import Accelerator
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.settings import VISIT_SECONDS

HOST = "host"
AT_WORK = 0.05
"""The share of time above which a working device is busy."""
CPUS_AT_WORK = 0.5
"""The share of time above which the host's CPUs are busy; cells of host threads then wait."""
SPAN = 0.25
"""The seconds over which the load of the host's CPUs is read."""


def busy_devices(machine: Machine, plan: Plan) -> dict[str, str]:
    """The devices of the plan that other processes keep busy, with the reason."""
    found = machine.inventory.accelerators if machine.inventory is not None else ()
    used = {str(place) for _, cell in able(plan) for place in cell.places}
    mine = (one for one in found if one.memory in used)
    busy = {one.memory: why for one in mine if (why := _at_work(one)) is not None}
    for key, memory in devices_measured(machine, plan).items():
        if (who := holder(key)) is not None:
            busy[memory] = f"measured by {who}"
    return busy


def _at_work(one: Accelerator) -> str | None:
    """How busy an accelerator is; if that is unknown, the processes that use it; None if
    neither."""
    others = f" (process {', '.join(map(str, one.processes[:4]))})" if one.processes else ""
    if one.utilization is not None:
        share = f"at work for {one.utilization:.0%} of the time{others}"
        return share if one.utilization > AT_WORK else None
    return f"in use{others}" if others else None


def busy_host(
    read: Callable[[], CpuTime | None] = cpu_time, wait: Callable[[float], None] = time.sleep
) -> float:
    """The share of the CPUs' time that is used now; 0 if the kernel does not report it. Takes
    `SPAN` seconds, in which this process does nothing."""
    before = read()
    began = time.monotonic()
    wait(SPAN)
    after, seconds = read(), time.monotonic() - began
    if before is None or after is None or seconds <= 0:
        return 0.0
    used = after.busy - before.busy + after.stolen - before.stolen
    return used / seconds / (os.cpu_count() or 1)


def by_host(cells: Iterable[PlannedCell]) -> bool:
    """Whether threads of the host carry out any of these cells."""
    return any(is_by_host(cell) for cell in cells)


def is_by_host(cell: PlannedCell) -> bool:
    return any(transfer.engine.kind == "cpu" for transfer in cell.transfers)


def is_free(cell: PlannedCell, busy: Mapping[str, str]) -> bool:
    """Whether no device or node of the cell is busy."""
    if HOST in busy and is_by_host(cell):
        return False
    return all(str(place) not in busy for place in cell.places)


# Which cells a probe measures: those whose turn it is, as many as the time allows.


MARGIN = 0.9
"""The share of the remaining time that is planned, because estimates are not exact."""
_NEW = 0.3
"""The weight of the latest duration in an estimate that falls; an estimate that rises does so at
once."""


class Rota:
    """The cells of a plan in turn. A probe may keep devices busy for the share `budget` of `every`
    seconds. Time that it leaves is available to the next probes, and time that it takes too much is
    subtracted from theirs."""

    def __init__(self, plan: Plan, budget: float, every: float) -> None:
        self._plan = plan
        self._grant = budget * every
        self._credit = 0.0
        self._turns = deque(_Turn(sheet, cell) for sheet, cell in able(plan))
        self._costs: dict[int, float] = {}
        self._known: set[int] = set()
        """The tables of which a cell was measured, by their identity."""

    def __len__(self) -> int:
        return len(self._turns)

    def begin(self) -> None:
        """Begins a probe: grants it the time of its interval."""
        dearest = max(map(self._cost, self._turns), default=0.0)
        self._credit = min(self._credit + self._grant, max(self._grant, dearest / MARGIN))

    def choose(self, is_free: Callable[[PlannedCell], bool]) -> tuple[PlannedCell, ...]:
        """The free cells that are next and fit, in turn. Cells that are not free keep their turn,
        and so do all but one of a table without measurements, since its first cost is only a
        guess."""
        left = self._credit * MARGIN
        chosen, guessed = [], set[int]()
        for turn in self._turns:
            sheet = id(turn.sheet)
            if not is_free(turn.cell) or sheet in guessed:
                continue
            left -= self._cost(turn)
            if left < 0:
                break
            chosen.append(turn.cell)
            if sheet not in self._known:
                guessed.add(sheet)
        return tuple(chosen)

    def has_room(self, number: int, spent: float) -> bool:
        """Whether the cell of this number fits once more; `spent` seconds are gone."""
        turn = next(turn for turn in self._turns if turn.cell.number == number)
        return spent + self._cost(turn) <= self._credit

    def spend(self, seconds: float) -> None:
        """Records that devices were kept busy for this long."""
        self._credit -= seconds

    def took(self, number: int, seconds: float) -> None:
        """Records the seconds of the cell with this number."""
        known = self._costs.get(number)
        if known is not None and seconds < known:
            seconds = known + _NEW * (seconds - known)
        self._costs[number] = seconds
        self._known |= {id(turn.sheet) for turn in self._turns if turn.cell.number == number}

    def measured(self, numbers: Sequence[int], again: Sequence[int] = ()) -> None:
        """Moves these cells to the end; those to be measured `again` come next."""
        done = [turn for turn in self._turns if turn.cell.number in numbers]
        soon = [turn for turn in done if turn.cell.number in again]
        others = [turn for turn in self._turns if turn.cell.number not in numbers]
        late = [turn for turn in done if turn.cell.number not in again]
        self._turns = deque((*soon, *others, *late))

    def _cost(self, turn: _Turn) -> float:
        """The cost of a cell: its last one, else the highest one of any cell, else a guess."""
        known = self._costs.get(turn.cell.number)
        if known is not None:
            return known
        guess = VISIT_SECONDS * 4 + SETUP_SECONDS + turn.sheet.size / SETUP_RATE
        return max(self._costs.values(), default=guess)

    def plan_of(self, cells: Sequence[PlannedCell]) -> Plan:
        """The tables with only these cells, numbered from 0."""
        return tuple(_only(self._plan, {cell.number for cell in cells}))


class _Turn:
    """A cell and its table."""

    def __init__(self, sheet: PlannedTable, cell: PlannedCell) -> None:
        self.sheet, self.cell = sheet, cell


def _only(plan: Plan, numbers: set[int]) -> Iterator[PlannedTable]:
    count = 0
    for sheet in plan:
        own = [cell for cell in sheet.cells if cell.number in numbers]
        if own:
            cells = (replace(cell, number=count + at) for at, cell in enumerate(own))
            yield replace(sheet, cells=tuple(cells))
            count += len(own)
