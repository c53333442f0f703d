"""Measures in worker processes, so that the failure of a worker costs only one cell.

Each accelerator backend has its own process, and so has the host. The controller loads no
accelerator library. A worker that ends, hangs or reports an error is in an unknown state: a new one
replaces it before the next cell."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from linkgauge.backends import SIMULATED, hook_of_backend, hook_of_backends
from linkgauge.hooks import watched
from linkgauge.machine.processes.process import ProcessLost
from linkgauge.model.documents.result import CellResult, PlannedCell
from linkgauge.model.errors import BackendError, LinkgaugeError
from linkgauge.model.hardware.gaps import Gap
from linkgauge.model.hardware.inventory import Inventory
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.notation import parse_memory
from linkgauge.model.settings import Profiler, Settings, Tried

from .messages import (
    WORK_SETUP_SECONDS,
    Command,
    Deadlines,
    FindBuffer,
    Heartbeat,
    Measure,
    ReadInventory,
    Release,
    Survey,
    Tune,
)
from .outcomes import (
    FIRST,
    NOT_REACHED,
    Repetition,
    failed,
    failure_reason,
    measure_able,
    unmeasured,
)
from .process import BriefWorker, Output, WorkerProcess
from .survey import (
    NOT_NEEDED,
    SURVEY_SECONDS,
    has_no_driver,
    merge_inventories,
    merge_machines,
    reaches_accelerators,
)

if TYPE_CHECKING:
    from .profiled import Reports

_A = TypeVar("_A")

TIMES_PROFILED = 10
"""The factor for all these limits under a profiler, which slows down the process."""
FAILURES = 3
"""The number of consecutive failed cells after which a device is set aside."""


class Supervisor:
    """Measures in worker processes. `first` is a running worker. If `brief` is given, it only
    surveys the machine, waits at most `brief` seconds for a backend, and awaits no worker's end."""

    def __init__(
        self,
        settings: Settings = Settings(sizes=()),  # noqa: B008
        first: WorkerProcess | None = None,
        brief: float | None = None,
    ) -> None:
        self._settings = settings
        self._brief = brief
        self._began = time.monotonic()
        self._until = math.inf
        """The moment after which a brief survey waits for no other backend."""
        self._surroundings = settings.surroundings
        if settings.simulation is not None:  # whose CPUs these are
            self._surroundings = msgspec.structs.replace(self._surroundings, cpus=())
        self._first = first
        self._output = Output() if first is None else first.output
        self._reports: Reports | None = None
        """The profiler's reports, while workers run under it."""
        self._workers: dict[str | None, WorkerProcess] = {}
        self._last: str | None = None
        self._failed: Counter[str] = Counter()
        self._aside: dict[str, str] = {}
        self._failed_alone: set[str] = set()

    def survey(self, accelerators: Sequence[str]) -> Machine:
        machines: list[Machine] = []
        failed: dict[str, LinkgaugeError] = {}
        is_brief = self._brief is not None
        survey = partial(Survey, brief=is_brief)
        for name, found in self._ask_each(accelerators, survey, Machine):
            if isinstance(found, Machine):
                machines.append(found)
                if has_no_driver(name) and not found.devices:  # its worker serves the next backend
                    self._first = self._workers.pop(name)
                if is_brief and reaches_accelerators(found):
                    self._until = time.monotonic()  # the others would only add names to these
            elif self._settings.simulation is not None:
                raise found
            else:
                failed[str(name)] = found
        if not machines:
            self._worker(None).ask(survey())
            machines.append(self._answer(None, Machine))
        return merge_machines(machines, failed)

    def look(self, accelerators: Sequence[str]) -> Inventory:
        seen: list[Inventory] = []
        for name, found in self._ask_each(accelerators or (None,), ReadInventory, Inventory):
            why = Gap(str(found), f"accelerators of {name or 'host'}")
            seen.append(found if isinstance(found, Inventory) else Inventory(unknown=(why,)))
        return merge_inventories(seen)

    def _ask_each(
        self,
        names: Sequence[str | None],
        command: Callable[[tuple[str, ...]], Survey | ReadInventory],
        kind: type[_A],
    ) -> Iterator[tuple[str | None, _A | LinkgaugeError]]:
        if self._settings.simulation is not None:
            names = (SIMULATED,)
        soon = [name for name in names if has_no_driver(name)]
        for some in (soon, [name for name in names if name not in soon]):
            for name in some:  # all at once: they take seconds to open
                self._worker(name).ask(command(() if name is None else (name,)))
            for name in some:
                try:
                    yield name, self._answer(name, kind)
                except LinkgaugeError as error:
                    yield name, error

    def _answer(self, name: str | None, kind: type[_A]) -> _A:
        hook = hook_of_backend(name or "host")
        within, began, until = SURVEY_SECONDS, time.monotonic(), math.inf
        if self._brief is not None and name is not None:
            within, began, until = self._brief, self._began, self._until
        try:
            with watched(hook):
                return self._workers[name].result(
                    kind, lambda _: began + within - time.monotonic(), until=until
                )
        except ProcessLost as lost:
            self._retire(name)
            reason = str(lost)
            if lost.kind == "timeout":
                reason = NOT_NEEDED if until < math.inf else f"no answer within {within:g} s"
            error = BackendError("open the backend" if hook.is_ours else str(hook), reason)
            error.kind = lost.kind
            raise error from lost

    def measure(
        self, cells: Sequence[PlannedCell], size: int, repetition: Repetition = FIRST
    ) -> tuple[CellResult, ...]:
        return measure_able(
            cells, self._skipped, lambda able: self._measure(Measure(able, size, repetition))
        )

    def _skipped(self, cell: PlannedCell) -> CellResult | None:
        for name in _devices(cell) if self._aside else ():
            # What touches the device alone tells it from the links that the others crossed.
            tells = len(cell.places) == 1 and name not in self._failed_alone
            if name in self._aside and not tells:
                return unmeasured(cell, "skip", self._aside[name], "set-aside")
        return None

    def _measure(self, command: Measure) -> tuple[CellResult, ...]:
        cells, size = command.cells, command.size
        name = self._worker_for(cells[0])
        watch = _Watch(cells, size, self._settings, command.repetition.most)
        try:
            results = self._ask(name, command).result(
                tuple[CellResult, ...], watch.left, until=watch.end
            )
        except ProcessLost as lost:
            at = self._workers[name].standing if name in self._workers else Heartbeat()
            self._retire(name)
            if watch.is_cut(lost):
                return tuple(unmeasured(cell, "skip", NOT_REACHED, "budget") for cell in cells)
            if len(cells) > 1:  # one cell of a round must not cost the others
                return tuple(
                    cell for one in cells for cell in self.measure((one,), size, command.repetition)
                )
            return (self._note(cells[0], watch.verdict(cells[0], lost, at)),)
        if any(cell.status == "error" for cell in results):
            self._retire(name)
        return tuple(map(self._note, cells, results))

    def _note(self, cell: PlannedCell, result: CellResult) -> CellResult:
        failed = result.status in ("error", "timeout")
        if not failed and not self._failed:
            return result
        if failed and len(cell.places) == 1:
            self._failed_alone.update(_devices(cell))
        for device in _devices(cell):
            if result.status != "skip":
                self._failed[device] = self._failed[device] + 1 if failed else 0
            if self._failed[device] == FAILURES and device not in self._aside:
                self._aside[device] = (
                    f"{device} set aside after {FAILURES} cells in a row that failed "
                    f"(the last: {result.reason})"
                )
        return result

    def tune(self, device: str, peer: str | None, on_trial: Callable[[Tried], None]) -> bool:
        name = SIMULATED if self._settings.simulation else parse_memory(device).backend
        try:
            return self._ask(name, Tune(device, peer)).result(bool, heard=on_trial)
        except LinkgaugeError as error:
            if isinstance(error, ProcessLost):
                self._retire(name)
            raise BackendError(f"tune {device}", str(error)) from error

    def find_buffer(self, node: int, least: int, most: int) -> int:
        try:
            return self._ask(None, FindBuffer(node, least, most)).result(int)
        except ProcessLost:
            self._retire(None)
            return least

    def _ask(self, name: str | None, command: Command) -> WorkerProcess:
        worker = self._worker(name)
        if self._last != name and self._last in self._workers:  # one measures, and keeps buffers
            self._workers[self._last].send(Release())
        self._last = name
        worker.ask(command)
        return worker

    def _worker(self, name: str | None) -> WorkerProcess:
        if name not in self._workers:  # Ctrl-C at any moment leaves it where close() finds it
            self._first = self._first or self._start()
            self._first.begin(self._settings)
            self._workers[name] = self._first
            self._first = None
        return self._workers[name]

    def _start(self) -> WorkerProcess:
        if self._reports is None:
            made = WorkerProcess if self._brief is None else BriefWorker
            return made(self._surroundings, self._output)
        from .profiled import ProfiledProcess

        return ProfiledProcess(self._reports, self._surroundings)

    def keep_output(self, folder: Path) -> None:
        """Sets the folder to which the output of ended workers is written."""
        self._output.folder = folder

    def profile(self, profiler: Profiler, folder: Path) -> None:
        """Restarts workers under this profiler, which writes to `folder`. Raises InputError if the
        profiler is not installed, BackendError if no worker starts."""
        from .profiled import Reports

        self.close()
        self._reports = Reports(profiler, folder)
        try:
            self._first = self._start()
        except ProcessLost as lost:
            raise BackendError(f"--{profiler}", str(lost)) from lost

    def end_profile(self, say: Callable[[str], None]) -> tuple[str, ...]:
        """Ends the workers under the profiler, waits for its files, and returns their names."""
        if self._reports is None:
            return ()
        say(f"waiting for {self._reports.profiler} to write its files")
        self.close()
        reports, self._reports = self._reports, None
        for problem in reports.missing():
            say(problem)
        return reports.files()

    def _worker_for(self, cell: PlannedCell) -> str | None:
        """Returns the backend whose worker measures a cell; None for the host's worker."""
        if self._settings.simulation is not None:
            return SIMULATED
        owners = {transfer.engine.owner.backend for transfer in cell.transfers} - {"host"}
        return min(owners, default=None)

    def _retire(self, name: str | None) -> None:
        worker = self._workers.pop(name, None)
        if worker is not None:
            worker.kill()

    def end(self) -> None:
        """Tells all workers to end, without waiting until they have."""
        for worker in filter(None, (self._first, *self._workers.values())):
            worker.end()

    def close(self) -> None:
        self.end()  # all at once: drivers take long to close
        if self._first is not None:
            self._first.close()
            self._first = None
        while self._workers:
            self._workers.popitem()[1].close()
        self._output.keep()


class _Watch:
    def __init__(
        self, cells: Sequence[PlannedCell], size: int, settings: Settings, most: float | None = None
    ) -> None:
        self._settings = settings
        self._most = math.inf if most is None else most
        self._cells, self._size = cells, size
        self._asked = time.monotonic()
        slow = 1 if settings.profiler is None else TIMES_PROFILED
        self._deadlines = Deadlines(slow, settings.timeout)

    @cached_property
    def _set_up(self) -> float:
        moved = sum(t.bytes_moved(self._size) for cell in self._cells for t in cell.transfers)
        works = any(cell.workload is not None for cell in self._cells)
        return self._deadlines.of_start(moved, WORK_SETUP_SECONDS if works else 0.0)

    def left(self, at: Heartbeat) -> float:
        return self._deadline(at) - time.monotonic()

    @property
    def end(self) -> float:
        return self._asked + self._most

    def is_cut(self, lost: ProcessLost) -> bool:
        return lost.kind == "timeout" and time.monotonic() >= self.end

    def _deadline(self, at: Heartbeat) -> float:
        if at.phase == "plan":  # starting a worker is not charged to the cell
            return self._asked + self._set_up
        if self._deadlines.limit is not None:
            return at.begun + self._deadlines.limit
        if at.phase in ("allocate", "warm up"):
            return at.begun + self._set_up
        if at.phase != "measure":
            return at.since + self._deadlines.of_step(at.warm_up)
        # Before the first sample, a loop is assumed to take no longer than the warm-up. One gate
        # may hold batches for as long as there is time to sample.
        sample = at.longest or at.warm_up * (self._settings.loops or 1)
        longest = max(sample, at.warm_up)
        return at.since + self._deadlines.of_step(longest) + self._settings.max_time

    def verdict(self, cell: PlannedCell, lost: ProcessLost, at: Heartbeat) -> CellResult:
        hook = hook_of_backends(transfer.engine.owner.backend for transfer in cell.transfers)
        whose = "" if hook.is_ours else f"{hook}: "
        if lost.kind != "timeout":
            return failed(cell, at.phase, ProcessLost(f"{whose}{lost}", lost.kind))
        took = time.monotonic() - (at.begun or self._asked)
        what = failure_reason(cell, at.phase, f"{whose}still running after {took:.3g} s")
        return unmeasured(cell, "timeout", what, lost.kind, at.phase)


def _devices(cell: PlannedCell) -> list[str]:
    return [str(place) for place in cell.places if place.is_device]
