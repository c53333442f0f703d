"""Which devices others keep busy: a watch leaves them alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping

from linkgauge.engine.locks import devices_measured, holder
from linkgauge.engine.plan import Plan, able
from linkgauge.machine.cpu_time import CpuTime, cpu_time
from linkgauge.model.inventory import Accelerator
from linkgauge.model.machine import Machine
from linkgauge.model.result import PlannedCell

HOST = "host"
AT_WORK = 0.05
"""A device that works for more than this share of the time is busy."""
CPUS_AT_WORK = 0.5
"""The same of the host's CPUs: cells of host threads then wait."""
SPAN = 0.25
"""Seconds over which the host's CPUs are looked at."""


def busy_devices(machine: Machine, plan: Plan) -> dict[str, str]:
    """The devices of the plan that others keep busy, and how."""
    found = machine.inventory.accelerators if machine.inventory is not None else ()
    used = {str(place) for _, cell in able(plan) for place in cell.places}
    mine = (one for one in found if one.memory in used)
    busy = {one.memory: why for one in mine if (why := _at_work(one)) is not None}
    for key, memory in devices_measured(machine, plan).items():
        if (who := holder(key)) is not None:
            busy[memory] = f"measured by {who}"
    return busy


def _at_work(one: Accelerator) -> str | None:
    """By how much it works; where that is not known, by who is there."""
    others = f" (process {', '.join(map(str, one.processes[:4]))})" if one.processes else ""
    if one.utilization is not None:
        share = f"at work for {one.utilization:.0%} of the time{others}"
        return share if one.utilization > AT_WORK else None
    return f"in use{others}" if others else None


def busy_host(
    read: Callable[[], CpuTime | None] = cpu_time, wait: Callable[[float], None] = time.sleep
) -> float:
    """The share of the CPUs' time that is used now; 0 where the kernel does not tell. Takes `SPAN`
    seconds, in which this process does nothing."""
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
    """Whether nothing that takes part in the cell is busy."""
    if HOST in busy and is_by_host(cell):
        return False
    return all(str(place) not in busy for place in cell.places)
