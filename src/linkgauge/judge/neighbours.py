"""Finds other processes that used devices, by the use that the device's library reports for each
process, or by the device's load before the run, or else by processes' CPU time during cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linkgauge.model.counters import AT_WORK
from linkgauge.model.documents.result import Result
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.inventory import Accelerator, Inventory


def at_work(
    before: Inventory | None, after: Inventory | None, results: Iterable[Result]
) -> dict[str, tuple[int, ...]]:
    loads = (cell.load for result in results for cell in result.cells)
    busy = frozenset(load.pid for load in loads if load is not None and load.pid is not None)
    found = grouped(
        (one.memory, pid)
        for inventory in (before, after)
        for one in (inventory.accelerators if inventory is not None else ())
        for pid in _seen(one, busy, is_quiet=inventory is before)
    )
    return {memory: tuple(dict.fromkeys(pids)) for memory, pids in found.items()}


def _seen(one: Accelerator, busy: frozenset[int], *, is_quiet: bool) -> Iterator[int]:
    """Yields processes that used a device. `busy` are processes that used CPU time. With
    `is_quiet`, this run had not used the device yet, so that all use is others'."""
    pids = one.processes or ()
    if one.process_use is not None:
        yield from (p for p, use in zip(pids, one.process_use, strict=False) if use > AT_WORK)
    elif one.utilization is None:
        yield from (pid for pid in pids if pid in busy)
    elif is_quiet and one.utilization > AT_WORK:
        yield from pids
