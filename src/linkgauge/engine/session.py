"""A session: a machine opened for measuring, as a `RunRequest` asks."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from linkgauge.backends import ACCELERATORS, ON_REQUEST, SHAPED
from linkgauge.benchmarks.table import COMPARISON
from linkgauge.engine.interrupts import collecting_seldom
from linkgauge.engine.kept.folder import (
    accelerator_name,
    check_writable,
    create_run_folder,
    keep_topology,
)
from linkgauge.engine.kept.journal import JOURNAL_FILE, Journal, Opened
from linkgauge.engine.workers import workers_of
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.pcie import is_accelerator
from linkgauge.model.settings import EngineSettings
from linkgauge.model.transfer import Benchmark

from .budget import budget_of
from .controller import Doubts, Observer, Sink, end_profile, execute, now
from .interrupts import Interrupts
from .locks import devices_measured, hold
from .plan import Plan, able, make_plan
from .request import RunRequest, Selection, is_first_look
from .rounds import draw

if TYPE_CHECKING:
    from linkgauge.engine.workers.messages import Workers
    from linkgauge.engine.workers.process import WorkerProcess


class Session:
    """A machine that is open for measuring. `machine` is the result of the last survey. `folder` is
    None until the run's folder exists, and stays None if the run is not stored."""

    def __init__(self, request: RunRequest, worker: Workers) -> None:
        self._began = time.monotonic()
        self.until = math.inf
        """The moment at which the time for measuring ends."""
        self.request = request
        self.folder: Path | None = None
        self._worker = worker
        self._accelerators = request.what.accelerators(request)
        self.machine = self._survey()

    def _survey(self) -> Machine:
        whole = not self.request.only_first
        found = self._worker.survey(self._accelerators) if whole else self._first()
        named = bool(self.request.backends) or self._accelerators != ACCELERATORS
        for name in () if named else unasked(found):
            more = self._worker.survey((name,))
            found = _with_unanswered(found, more)
            # The host's processor by one more name is not worth a figure.
            there = more.devices.get(name, ())
            if devices := tuple(device for device in there if not device.is_cpu):
                found = msgspec.structs.replace(found, devices=found.devices | {name: devices})
        if not self.request.stated:
            return found
        from linkgauge.machine.hardware import state

        return state(found, self.request.stated)

    def _first(self) -> Machine:
        """Surveys backends one by one until one has devices, because opening each takes seconds."""
        unavailable: dict[str, str] = {}
        unanswered: tuple[str, ...] = ()
        for name in self._accelerators:
            machine = self._worker.survey((name,))
            if machine.devices.get(name):
                return machine
            unavailable |= machine.unavailable
            unanswered += machine.unanswered
        host = self._worker.survey(())
        return msgspec.structs.replace(
            host, devices={}, unavailable=unavailable, unanswered=unanswered
        )

    def look_first(self, *, measures: bool = True) -> None:
        """Finds the size of the buffers by measuring for about a second, if the request is a first
        look at the host. If `measures` is false, takes the smallest size."""
        request = self.request
        if not is_first_look(request, self.machine) or self.machine.simulated is not None:
            return
        from . import first_look

        settings = first_look.settings_of(request.settings)
        ends, buffer = first_look.ends_of(self.machine), None
        if request.profile is not None and ends is not None:  # the user chose no size
            most = ends.most if measures else ends.least
            buffer = self._worker.find_buffer(ends.node.index, ends.least, most)
        budget = first_look.BUDGET if request.budget == "plan" else request.budget
        self.request = msgspec.structs.replace(
            request, settings=settings, buffer=buffer, budget=budget
        )

    def plan(self, observer: Observer) -> Plan:
        """Returns the request's plan. Raises InputError if there is nothing to measure."""
        request, soak = self.request, self.request.settings.soak
        if soak is not None and soak.max_temperature is not None and self.machine.simulated is None:
            found = self.machine.known.accelerators
            if all(one.temperature is None for one in found):
                raise InputError("--max-temperature: no accelerator here reports its temperature")
        benchmarks = request.what.lay_out(request, self.machine)
        if request.memory or request.engine is not None or request.graph:
            from .rewriting import rewritten

            benchmarks = rewritten(benchmarks, request.memory, request.engine, request.graph)
        if request.settings.sample_pairs is not None:
            benchmarks = draw(benchmarks, request.settings.sample_pairs)
        plan = make_plan(
            benchmarks,
            self.machine,
            request.settings.sizes,
            parallel_pairs=request.settings.parallel_pairs,
            profile=request.profile,
        )
        if (note := check_shape(request.settings.engines, plan)) is not None:
            observer.say(note)
        what = request.what
        fleet = what.fleet(request, self.machine) if isinstance(what, Selection) else None
        if fleet is not None:
            cells = sum(1 for _ in able(plan))
            observer.say(
                f"note: {fleet}: benchmarks between nodes replace those between devices, "
                f"{cells:,} cells in all; name one, with --sample-pairs 1000, to measure some of "
                "the pairs"
            )
        return plan

    def plan_of(
        self, benchmarks: Sequence[Benchmark], sizes: Sequence[int] | None = None, first: int = 0
    ) -> Plan:
        """Returns the plan of these benchmarks. `sizes` are in bytes, by default the settings'.
        Cells are numbered from `first` on, so that several plans can share one numbering."""
        sizes = sizes or self.request.settings.sizes
        return make_plan(benchmarks, self.machine, sizes, first=first)

    def measure(self, plan: Plan, observer: Observer, doubts: Doubts = lambda run: ()) -> Run:
        """Measures the plan, then once more the cells that `doubts` returns. After Ctrl-C, the run
        has the results so far and its `finished` is None. Raises DeviceBusy if another run measures
        a device, and InputError or ResultsError if results cannot be written."""
        request = self.request
        if request.out is not None:
            check_writable(Path(request.out))
        with ExitStack() as held:
            held.enter_context(collecting_seldom())
            devices = devices_measured(self.machine, plan)
            if devices:
                held.enter_context(hold(devices, wait=request.wait, tell=observer.say))
            if request.tune:
                self._tune(observer)
            opened = self._open(plan)
            sink: Sink = lambda record: None  # noqa: E731
            try:
                with Interrupts() as interrupts, interrupts.held():
                    if self.folder is not None:
                        self._worker.keep_output(self.folder)
                        if request.settings.profiler is not None:
                            self._worker.profile(request.settings.profiler, self.folder)
                        journal = Journal.begin(self.folder / JOURNAL_FILE, opened)
                        sink = held.enter_context(closing(journal)).append
                log = None
                if not opened.simulated:  # a simulated machine has no kernel
                    from linkgauge.machine.kernel_log import following

                    log = held.enter_context(following(self.machine))
                observer.begun(self.machine)
                return execute((opened,), self._worker, sink, observer, doubts, log)
            except KeyboardInterrupt:  # the journal is there, and so has to be what it names
                end_profile(opened.settings, self._worker, sink, observer)
                raise

    def measure_more(self, plan: Plan, observer: Observer, doubts: Doubts = lambda run: ()) -> Run:
        """Measures a plan that the caller adds to another run. Stores nothing in a folder."""
        request, folder = self.request, self.folder
        self.request, self.folder = msgspec.structs.replace(request, out=None), None
        try:
            return self.measure(plan, observer, doubts)
        finally:
            self.request, self.folder = request, folder

    def end(self) -> None:
        """Tells the workers to end, without waiting. Nothing can be measured afterwards."""
        self._worker.end()

    def _open(self, plan: Plan) -> Opened:
        request, machine = self.request, self.machine
        started = now()
        if request.out is not None:
            accelerator = accelerator_name(machine, plan)
            self.folder = create_run_folder(Path(request.out), accelerator, request.label, started)
            if request.settings.profile == COMPARISON:
                keep_topology(self.folder, machine)
        named = request.what.names if isinstance(request.what, Selection) else ()
        budget = budget_of(plan, request.settings, request.budget, self._began, named)
        if budget is not None:  # a session's later plans get the time that is left
            left = max(self.until - time.monotonic(), 0.0)
            budget = msgspec.structs.replace(budget, measuring=min(budget.measuring, left))
            self.until = time.monotonic() + budget.measuring
        return Opened(
            id=self.folder.name if self.folder else started,
            label=request.label,
            simulated=machine.simulated is not None,
            command=request.command,
            started=started,
            machine=machine,
            settings=request.settings,
            plan=plan,
            budget=budget,
            options=request.options,
        )

    def _tune(self, observer: Observer) -> None:
        """Tunes one device of each model, for 30 to 40 s. Raises InputError if no device can be."""
        tuned = False
        for fabric in self.request.over(self.machine):
            for device in {device.model: device for device in reversed(fabric.devices)}.values():
                peers = [other.memory for other in fabric.devices if other != device]
                if self._worker.tune(device.memory, next(iter(peers), None), observer.tried):
                    observer.say(f"remembered for {device.model}, by {device.memory}")
                    tuned = True
        if not tuned:
            raise InputError("nothing to tune: only backend cuda searches settings")
        self.machine = self._survey()  # now with the remembered settings


def _with_unanswered(machine: Machine, more: Machine) -> Machine:
    late = {name: more.unavailable[name] for name in more.unanswered}
    return msgspec.structs.replace(
        machine,
        unavailable=machine.unavailable | late,
        unanswered=(*machine.unanswered, *late),
    )


def unasked(machine: Machine) -> list[str]:
    """Returns installed optional backends, if no other backend supports the accelerators here."""
    reached = any(not device.is_cpu for device in machine.all_devices)
    there = any(map(is_accelerator, machine.inventory.pci if machine.inventory else ()))
    # Their names are those of the packages that they use.
    return [name for name in ON_REQUEST if there and not reached and find_spec(name) is not None]


@contextmanager
def opened(
    request: RunRequest, first: WorkerProcess | None = None, brief: float | None = None
) -> Iterator[Session]:
    """Opens a session. `first` is a worker process that already runs. If `brief` is given, the
    session is only for showing and planning, and waits at most `brief` seconds for each backend."""
    with closing(workers_of(request.settings, first, brief)) as worker:
        yield Session(request, worker)


def survey(
    request: RunRequest, first: WorkerProcess | None = None, brief: float | None = None
) -> Machine:
    with opened(request, first, brief) as session:
        return session.machine


def check_shape(engines: EngineSettings, plan: Plan) -> str | None:
    """Returns a note if some backends of the plan ignore the options for the shape of copies, or
    None. Raises InputError if all backends ignore them."""
    shape = ("kernel", "blocks", "threads", "streams")
    names = ", ".join(f"--{name}" for name in shape if getattr(engines, name) is not None)
    if not names:
        return None
    taking = {t.engine.owner.backend for _, cell in able(plan) for t in cell.transfers}
    deaf = ", ".join(sorted(taking - set(SHAPED)))
    if deaf and taking.isdisjoint(SHAPED):
        raise InputError(f"{names}: only backend {', '.join(SHAPED)} supports this, not {deaf}")
    return f"note: {deaf} ignores {names}" if deaf else None
