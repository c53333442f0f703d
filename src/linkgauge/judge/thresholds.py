"""Measured figures against what the user asked for."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from linkgauge.benchmarks.traffic import gigabits, volume_of
from linkgauge.model.result import CellResult, Result, Run, worst

Objection = Callable[[CellResult], str | None]
"""Why a measured cell is not good enough, in one line; None if it is."""


def hold(result: Result, objection: Objection) -> Result:
    """The result, with each passed cell that meets an objection failed for that reason."""
    cells = tuple(_held(cell, objection) for cell in result.cells)
    return replace(result, cells=cells, status=worst(cell.status for cell in cells))


def hold_run(run: Run, objection: Objection | None) -> Run:
    if objection is None:
        return run
    return replace(run, results=tuple(hold(result, objection) for result in run.results))


def _held(cell: CellResult, objection: Objection) -> CellResult:
    reason = objection(cell) if cell.status == "pass" else None
    return cell if reason is None else replace(cell, status="fail", reason=reason, kind="limit")


def objection(
    cell: CellResult, least_device: float, least_host: float, *, device: str = "device"
) -> str | None:
    """Why a cell is not good enough, in one line: a side that took part was slower than its minimum
    in bytes/s (0: no minimum)."""
    volume = volume_of(cell)
    if volume is None:
        return None
    sides = ((device, volume.device_rate, least_device), ("host", volume.host_rate, least_host))
    for name, rate, least in sides:
        if rate is not None and rate < least:
            return f"{name} bandwidth {gigabits(rate)} Gb/s, at least {gigabits(least)} expected"
    return None
