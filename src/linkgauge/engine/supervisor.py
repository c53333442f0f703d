"""Measures by worker processes, so that whatever befalls one costs one cell.

Each accelerator backend has a process of its own, and the host one; the controller loads no
accelerator's library. A worker that ends, hangs or reports an error is replaced before the next
cell: nobody knows what it left behind.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from linkgauge.backends import SIMULATED
from linkgauge.backends.base import Phase, Tried
from linkgauge.model.errors import BackendError, LinkgaugeError
from linkgauge.model.machine import Machine
from linkgauge.model.notation import parse_cell, parse_memory
from linkgauge.model.result import CellResult, PlannedCell, Settings, Status
from linkgauge.model.transfer import Transfer

from .measure import befell, unmeasured
from .messages import (
    Answer,
    Entered,
    Measure,
    Refused,
    Release,
    Request,
    Results,
    Survey,
    Surveyed,
    Trying,
    Tune,
    Tuned,
)
from .process import WorkerLost, WorkerProcess

SURVEY_SECONDS = 60.0
"""A driver that does not say in this time what it has is taken for one that never will."""
SETUP_SECONDS, SETUP_RATE = 30.0, 100e6
"""What a cell may take until it is warmed up: so long, and its bytes at this rate (bytes/s)."""
WARM_UPS_MORE = 20
LEAST_SECONDS = 10.0
"""What it may take from then on, beside the time it is asked to sample: so many times its warm-up,
and no less than this."""
LONGEST_SECONDS = 1e6
"""The system waits for no longer than about a fortnight."""
_A = TypeVar("_A", bound=Answer)

FAILURES = 3
"""Cells that may fail in a row with the same device."""


class Supervisor:
    """A `Worker` that has others do the work, for a run with these settings."""

    def __init__(self, settings: Settings = Settings(sizes=())) -> None:  # noqa: B008
        self._settings = settings
        self._workers: dict[str | None, WorkerProcess] = {}
        self._last: str | None = None
        self._failed: Counter[str] = Counter()
        self._aside: dict[str, str] = {}

    def survey(self, accelerators: Sequence[str]) -> Machine:
        names: Sequence[str | None] = accelerators
        if self._settings.simulation is not None:
            names = (SIMULATED,)
        machines: list[Machine] = []
        unavailable: dict[str, str] = {}
        for name in names:  # all at once: they take seconds to open
            self._worker(name).ask(Survey())
        for name in names:
            try:
                machines.append(self._machine(name))
            except LinkgaugeError as error:
                if self._settings.simulation is not None:
                    raise
                unavailable[str(name)] = str(error)
        if not machines:
            self._worker(None).ask(Survey())
            machines.append(self._machine(None))
        return msgspec.structs.replace(
            machines[0],
            devices={name: of for machine in machines for name, of in machine.devices.items()},
            unavailable=unavailable
            | {name: why for machine in machines for name, why in machine.unavailable.items()},
        )

    def _machine(self, name: str | None) -> Machine:
        """Raises LinkgaugeError where the worker cannot say."""
        try:
            answer = self._workers[name].answer(lambda _: SURVEY_SECONDS)
        except WorkerLost as lost:
            self._retire(name)
            within = f"no answer within {SURVEY_SECONDS:g} s"
            reason = within if lost.timed_out else str(lost)
            raise BackendError("open the backend", reason) from lost
        if isinstance(answer, Refused):
            raise LinkgaugeError(answer.reason)
        return _expect(answer, Surveyed).machine

    def measure(self, cells: Sequence[PlannedCell], size: int) -> tuple[CellResult, ...]:
        able = [cell for cell in cells if cell.reason is None and not self._why_aside(cell)]
        measured = dict(zip(able, self._measure(able, size), strict=True)) if able else {}
        return tuple(measured.get(cell) or self._skipped(cell) for cell in cells)

    def _skipped(self, cell: PlannedCell) -> CellResult:
        return unmeasured(cell, "skip", cell.reason or self._why_aside(cell) or "")

    def _why_aside(self, cell: PlannedCell) -> str | None:
        return next((self._aside[name] for name in _devices(cell) if name in self._aside), None)

    def _measure(self, cells: Sequence[PlannedCell], size: int) -> tuple[CellResult, ...]:
        name = self._worker_for(cells[0])
        watch = _Watch(cells, size, self._settings)
        try:
            results = _expect(self._ask(name, Measure(tuple(cells), size), watch.heard), Results)
        except WorkerLost as lost:
            self._retire(name)
            if len(cells) > 1:  # one of a round must not cost the others
                return tuple(result for cell in cells for result in self.measure((cell,), size))
            return (self._note(cells[0], watch.verdict(cells[0], lost)),)
        if any(cell.status == "error" for cell in results.cells):
            self._retire(name)
        return tuple(map(self._note, cells, results.cells))

    def _note(self, cell: PlannedCell, result: CellResult) -> CellResult:
        """Counts failures of its devices in a row, and sets aside those that have too many."""
        failed = result.status in ("error", "timeout")
        for device in _devices(cell):
            if result.status != "skip":
                self._failed[device] = self._failed[device] + 1 if failed else 0
            if self._failed[device] == FAILURES and device not in self._aside:
                self._aside[device] = (
                    f"{device} set aside after {FAILURES} cells in a row that failed "
                    f"(the last: {result.reason})"
                )
        return result

    def tune(self, device: str, peer: str | None, tell: Callable[[Tried], None]) -> bool:
        def heard(message: Entered | Trying) -> None:
            if isinstance(message, Trying):
                tell(message.tried)

        name = SIMULATED if self._settings.simulation else parse_memory(device).backend
        try:
            answer = self._ask(name, Tune(device, peer), heard)
        except WorkerLost as lost:
            self._retire(name)
            raise BackendError(f"tune {device}", str(lost)) from lost
        if isinstance(answer, Refused):
            raise BackendError(f"tune {device}", answer.reason)
        return _expect(answer, Tuned).found

    def _ask(
        self, name: str | None, request: Request, heard: Callable[[Entered | Trying], float | None]
    ) -> Answer:
        worker = self._worker(name)
        if self._last != name and self._last in self._workers:
            # Only one of them measures, and only one keeps buffers for the next cell.
            self._workers[self._last].tell(Release())
        self._last = name
        worker.ask(request)
        return worker.answer(heard)

    def _worker(self, name: str | None) -> WorkerProcess:
        if name not in self._workers:
            self._workers[name] = WorkerProcess(name, self._settings)
        return self._workers[name]

    def _worker_for(self, cell: PlannedCell) -> str | None:
        """The accelerator that the cell needs; None for the host alone. Of two, any: its worker
        says that they do not run in one cell."""
        if self._settings.simulation is not None:
            return SIMULATED
        owners = {transfer.engine.owner.backend for transfer in _transfers(cell)} - {"host"}
        return min(owners, default=None)

    def _retire(self, name: str | None) -> None:
        worker = self._workers.pop(name, None)
        if worker is not None:
            worker.kill()

    def close(self) -> None:
        while self._workers:
            self._workers.popitem()[1].close()


class _Watch:
    """Follows a cell while it is measured: what it is at, and how long that may take."""

    def __init__(self, cells: Sequence[PlannedCell], size: int, settings: Settings) -> None:
        self._settings = settings
        self._phase: Phase = "plan"
        self._begun = self._since = time.monotonic()
        moved = sum(t.bytes_moved(size) for cell in cells for t in _transfers(cell))
        self._deadline = self._begun + SETUP_SECONDS + moved / SETUP_RATE

    def heard(self, message: Entered | Trying) -> float:
        """Seconds until the deadline of what now begins."""
        now = time.monotonic()
        if isinstance(message, Entered):
            if message.phase == "allocate" and self._settings.timeout is not None:
                # From here on: starting a worker and opening its backend are not the cell's.
                self._begun, self._deadline = now, now + self._settings.timeout
            if self._phase == "warm up" and self._settings.timeout is None:
                warm_up = now - self._since
                more = max(LEAST_SECONDS, WARM_UPS_MORE * warm_up)
                self._deadline = now + more + self._sampling(warm_up)
            self._phase, self._since = message.phase, now
        return min(max(0.0, self._deadline - now), LONGEST_SECONDS)

    def _sampling(self, warm_up: float) -> float:
        """Seconds of sampling that were asked for, at most."""
        if self._settings.samples is None:
            return self._settings.max_time
        # The warm-up ran at least as many loops as an adaptive sample has, and two at the least.
        return self._settings.samples * warm_up * (self._settings.loops or 1)

    def verdict(self, cell: PlannedCell, lost: WorkerLost) -> CellResult:
        """What becomes of the cell whose worker was lost."""
        status: Status = "timeout" if lost.timed_out else "error"
        took = time.monotonic() - self._begun
        what = f"no end after {took:.3g} s" if lost.timed_out else str(lost)
        return unmeasured(cell, status, befell(cell, self._phase, what))


def _transfers(cell: PlannedCell) -> tuple[Transfer, ...]:
    return parse_cell(cell.transfers)


def _devices(cell: PlannedCell) -> list[str]:
    """The accelerators that take part."""
    places = (place for t in _transfers(cell) for place in (*t.memories, t.engine.owner))
    return list(dict.fromkeys(str(place.place) for place in places if place.is_device))


def _expect(answer: Answer, kind: type[_A]) -> _A:
    if not isinstance(answer, kind):
        raise TypeError(f"expected {kind.__name__} of a worker, got {answer!r}")
    return answer
