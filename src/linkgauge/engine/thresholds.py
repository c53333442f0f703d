"""A worker that holds what is measured against what its user expects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from linkgauge.backends.base import Tried
from linkgauge.model.inventory import Inventory
from linkgauge.model.machine import Machine
from linkgauge.model.result import CellResult, PlannedCell

from .worker import Worker

Objection = Callable[[CellResult], str | None]
"""Why a measured cell is not good enough, in one line; None where it is."""


class Thresholds:
    """A `Worker` whose cells are `fail` where there is an objection, with that as the reason."""

    def __init__(self, worker: Worker, objection: Objection) -> None:
        self._worker = worker
        self._objection = objection

    def measure(self, cells: Sequence[PlannedCell], size: int) -> tuple[CellResult, ...]:
        return tuple(map(self._judged, self._worker.measure(cells, size)))

    def _judged(self, cell: CellResult) -> CellResult:
        reason = self._objection(cell) if cell.status == "pass" else None
        if reason is None:
            return cell
        return msgspec.structs.replace(cell, status="fail", reason=reason)

    def survey(self, accelerators: Sequence[str]) -> Machine:
        return self._worker.survey(accelerators)

    def look(self, accelerators: Sequence[str]) -> Inventory:
        return self._worker.look(accelerators)

    def tune(self, device: str, peer: str | None, tell: Callable[[Tried], None]) -> bool:
        return self._worker.tune(device, peer, tell)

    def close(self) -> None:
        self._worker.close()
