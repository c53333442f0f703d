"""Measured figures against what the user asked for."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

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
