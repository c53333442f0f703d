"""What a session measures with: processes of this machine, or ranks of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from linkgauge.model.inventory import Inventory
from linkgauge.model.machine import Machine
from linkgauge.model.result import CellResult, PlannedCell
from linkgauge.model.settings import Profiler, Tried

from .messages import FIRST, Visit


class Workers(Protocol):
    """`Supervisor` is one, and documents the methods."""

    def survey(self, accelerators: Sequence[str]) -> Machine: ...
    def look(self, accelerators: Sequence[str]) -> Inventory: ...
    def measure(
        self, cells: Sequence[PlannedCell], size: int, visit: Visit = FIRST
    ) -> tuple[CellResult, ...]: ...
    def tune(self, device: str, peer: str | None, on_trial: Callable[[Tried], None]) -> bool: ...
    def keep_output(self, folder: Path) -> None: ...
    def profile(self, profiler: Profiler, folder: Path) -> None: ...
    def end_profile(self, say: Callable[[str], None]) -> tuple[str, ...]: ...
    def close(self) -> None: ...
