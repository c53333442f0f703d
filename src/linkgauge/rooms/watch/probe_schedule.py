"""Chooses the cells of the next probe, in turn and within the budget. Busy devices are left out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from itertools import count

from msgspec.structs import replace

from linkgauge.engine.locks import devices_measured, holder
from linkgauge.engine.plan import Plan, able, setup_seconds
from linkgauge.machine.cpu_time import CpuTime, cpu_time
from linkgauge.model.cell_id import CellId, TableId, cell_id
from linkgauge.model.counters import AT_WORK
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.hardware.inventory import Accelerator
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.settings import REPETITION_SECONDS

HOST = "host"
CPUS_AT_WORK = 0.5
"""The host's CPUs are busy if they work for more than this share of the time. Cells of host threads
then wait."""
SPAN = 0.25
"""The seconds over which the load of the host's CPUs is read."""


def busy_devices(machine: Machine, plan: Plan) -> dict[str, str]:
    found = machine.inventory.accelerators if machine.inventory is not None else ()
    used = {str(place) for _, cell in able(plan) for place in cell.places}
    mine = (one for one in found if one.memory in used)
    busy = {one.memory: why for one in mine if (why := _at_work(one)) is not None}
    for key, memory in devices_measured(machine, plan).items():
        if (who := holder(key)) is not None:
            busy[memory] = f"measured by {who}"
    return busy


def _at_work(one: Accelerator) -> str | None:
    others = f" (process {', '.join(map(str, one.processes[:4]))})" if one.processes else ""
    if one.utilization is not None:
        share = f"busy {one.utilization:.0%} of the time{others}"
        return share if one.utilization > AT_WORK else None
    return f"in use{others}" if others else None


def busy_host(
    read: Callable[[], CpuTime | None] = cpu_time, wait: Callable[[float], None] = time.sleep
) -> float:
    """Returns the share of CPU time in use during `SPAN` seconds, or 0 if unknown."""
    before = read()
    began = time.monotonic()
    wait(SPAN)
    after, seconds = read(), time.monotonic() - began
    if before is None or after is None or seconds <= 0:
        return 0.0
    used = after.busy - before.busy + after.stolen - before.stolen
    return used / seconds / (os.cpu_count() or 1)


def is_by_host(cell: PlannedCell) -> bool:
    return any(transfer.engine.kind == "cpu" for transfer in cell.transfers)


def is_free(cell: PlannedCell, busy: Mapping[str, str]) -> bool:
    if HOST in busy and is_by_host(cell):
        return False
    return all(str(place) not in busy for place in cell.places)


# Which cells a probe measures: those whose turn it is, as many as the time allows.


MARGIN = 0.9
"""The share of the remaining time that is planned. Estimates are not exact."""
_NEW = 0.3
"""The weight of the latest duration if it is shorter than the estimate. A longer duration replaces
the estimate at once."""


class ProbeSchedule:
    """A queue of cells to measure. `every` is the seconds between probes; `budget` is the share of
    them that a probe may take. Unused and excess time counts for later probes."""

    def __init__(self, plan: Plan, budget: float, every: float) -> None:
        self._plan = plan
        self._grant = budget * every
        self._credit = 0.0
        self._turns = {cell_id(table, cell): cell for table, cell in able(plan)}
        self._costs: dict[CellId, float] = {}

    def begin(self) -> None:
        dearest = max(map(self._cost, self._turns), default=0.0)
        self._credit = min(self._credit + self._grant, max(self._grant, dearest / MARGIN))

    def choose(self, is_free: Callable[[PlannedCell], bool]) -> list[CellId]:
        """Returns the next cells whose devices are free, as many as the time allows."""
        left, chosen = self._credit * MARGIN, list[CellId]()
        known, guessed = {of.table for of in self._costs}, set[TableId]()
        for of, cell in self._turns.items():
            if not is_free(cell) or of.table in guessed:
                continue
            left -= self._cost(of)
            if left < 0:
                break
            chosen.append(of)
            guessed |= {of.table} - known  # one cell each, because costs are guesses
        return chosen

    def has_room(self, of: CellId, spent: float) -> bool:
        return spent + self._cost(of) <= self._credit

    def spend(self, seconds: float, took: Mapping[CellId, float]) -> None:
        self._credit -= seconds
        for of, latest in took.items():
            known = self._costs.get(of, latest)
            self._costs[of] = latest if latest >= known else known + _NEW * (latest - known)

    def measured(self, cells: Collection[CellId], again: Collection[CellId] = ()) -> None:
        """Moves measured cells to the end of the queue, and cells in `again` to its start."""

        def order(of: CellId) -> int:
            return 1 if of not in cells else 0 if of in again else 2

        self._turns = {of: self._turns[of] for of in sorted(self._turns, key=order)}

    def _cost(self, of: CellId) -> float:
        """Returns a cell's estimated seconds. An unknown cell costs as much as the dearest one."""
        if of in self._costs:
            return self._costs[of]
        return max(self._costs.values(), default=REPETITION_SECONDS * 4 + setup_seconds(of.size))

    def plan_of(self, cells: Collection[CellId]) -> Plan:
        counted = count()
        kept = (
            replace(
                table,
                cells=tuple(
                    replace(cell, number=next(counted))
                    for cell in table.cells
                    if cell_id(table, cell) in cells
                ),
            )
            for table in self._plan
        )
        return tuple(table for table in kept if table.cells)
