"""From a status that a native call returns to what the doctor says of the cell."""

from __future__ import annotations

from msgspec.structs import replace

from doctor_kit import found, inventory, measured
from linkgauge.engine.measuring.measure import measure_together
from linkgauge.engine.measuring.measurement import Measurement
from linkgauge.engine.measuring.pool import BufferPool
from linkgauge.model.documents.result import CellResult, PlannedCell
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report

CHECKS = {"memory": "out-of-memory", "lost": "lost", "timeout": "hang", "call": None}
"""The doctor's check by the kind of a cell's outcome."""


def outcome(backend, text, size=4096, operation="copy", report=Report.FIRST) -> CellResult:
    """What becomes of this cell on a backend."""
    transfers = parse_transfers(text)
    planned = PlannedCell("0", "0", transfers, report, operation=operation)
    settings = Settings((size,), samples=6, loops=2)
    cell = Measurement(planned, size, settings, [backend] * len(transfers))
    pool = BufferPool()
    (result,) = measure_together([cell], settings, pool).cells
    pool.free_idle()  # memory that is pinned and then forgotten stays pinned
    return result


def found_by_the_doctor(cell: CellResult) -> str | None:
    """Its check that tells of this cell."""
    result = replace(measured(), cells=(cell,), status=cell.status)
    checks = {finding.check for finding in found(inventory(), None, result)}
    told = checks & set(filter(None, CHECKS.values()))
    return next(iter(told), None)
