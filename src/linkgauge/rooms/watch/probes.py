"""Makes one probe after another, reports events, and counts the time that devices are busy."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from linkgauge.engine.controller import Observer, now
from linkgauge.engine.interrupts import Interrupts
from linkgauge.engine.plan import Plan, able
from linkgauge.engine.repetitions import CellAt
from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import opened
from linkgauge.history import is_off
from linkgauge.history.keeping import not_added, runs_before
from linkgauge.judge.doctor import failed
from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome, doubtful, outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.model.by_name import by_name
from linkgauge.model.cell_id import CellId, cell_id, table_id
from linkgauge.model.documents.history import figures_by_result
from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable, Run
from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.model.hardware.machine import Machine
from linkgauge.report.files import write_run

from .degradation import Degradation, WatchedCell
from .events import (
    Begun,
    Event,
    LeftAlone,
    MeasuredAgain,
    Probed,
    ProbeFailed,
    WatchEnded,
)
from .probe_schedule import (
    CPUS_AT_WORK,
    HOST,
    ProbeSchedule,
    busy_devices,
    busy_host,
    is_by_host,
    is_free,
)

EARLIER = 300
"""The number of latest runs in the history from which usual figures are learnt."""
Tell = Callable[[Event], None]


class WallClock:
    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))


class Asked(msgspec.Struct, frozen=True):
    """A watch. `every` is the seconds between probes. The watch ends after `seconds`, or after
    `probes` probes, if these are given. `budget` limits the share of time that devices are busy.
    `least` is the least loss to report."""

    request: RunRequest
    every: float
    budget: float
    least: float | None
    seconds: float | None = None
    probes: int | None = None


class Watch:
    def __init__(self, asked: Asked, plan: Plan, tell: Tell, clock: WallClock) -> None:
        self._asked, self._plan, self._tell, self._clock = asked, plan, tell, clock
        self._schedule = ProbeSchedule(plan, asked.budget, asked.every)
        self._degradation = Degradation(asked.least)
        self._has_learnt = self._is_judged = False
        self._findings: dict[str, Finding] = {}
        self._alone: dict[str, str] = {}
        self._number = self._cells = 0
        self._busy = 0.0
        self._began = clock.now()

    def carry_out(self) -> int:
        """Watches, and returns the exit code. Raises KeyboardInterrupt on Ctrl-C or SIGTERM."""
        try:
            self._probe()
            while self._number != self._asked.probes and self._wait():
                self._probe()
        finally:
            self._end()
        return self._outcome().code

    def _wait(self) -> bool:
        every, limit = self._asked.every, self._asked.seconds
        passed = self._clock.now() - self._began
        due = (math.floor(passed / every) + 1) * every
        is_last = limit is not None and due >= limit * (1 - 1e-9)
        self._clock.sleep((limit if is_last and limit is not None else due) - passed)
        return not is_last

    def _probe(self) -> None:
        self._number += 1
        busy_before, cells = self._busy, 0
        try:
            cells = self._measure()
        except LinkgaugeError as error:
            self._tell(ProbeFailed(time=now(), reason=str(error)))
        self._tell(
            Probed(
                time=now(), number=self._number, cells=cells, seconds=self._busy - busy_before,
                degraded=len(self._degradation.degraded()), left_alone=self._alone, **self._duty(),
            )
        )  # fmt: skip

    def _duty(self) -> dict[str, float]:
        elapsed = max(self._number * self._asked.every, self._clock.now() - self._began)
        return {"busy": self._busy, "elapsed": elapsed, "duty": self._busy / elapsed}

    def _measure(self) -> int:
        request, host = self._next()
        with opened(request) as session:
            self._leave_alone(busy_devices(session.machine, self._plan) | host)
            self._schedule.begin()
            chosen = self._schedule.choose(lambda cell: is_free(cell, self._alone))
            if not chosen:
                return 0
            timer, plan = _Timer(self._clock), self._schedule.plan_of(chosen)
            try:
                run = session.measure(plan, timer, lambda run: self._doubts(run, timer))
            finally:
                self._busy += timer.busy
                self._schedule.spend(timer.busy, timer.took)
                self._cells += len(timer.took)
            with Interrupts() as interrupts, interrupts.held():
                self._learn(run)
                self._look_at(judge(run), session.folder)
        if run.finished is None:
            raise KeyboardInterrupt
        return len(chosen)

    def _next(self) -> tuple[RunRequest, dict[str, str]]:
        """Returns the next request, and why devices are busy, by device."""
        request = self._asked.request
        if (simulation := request.settings.simulation) is not None:
            # Simulated faults begin after a number of cells.
            settings = request.settings.simulating(passed=simulation.passed + self._cells)
            return replace(request, settings=settings), {}
        by_host = any(is_by_host(cell) for _, cell in able(self._plan))
        share = busy_host(wait=self._clock.sleep) if by_host else 0.0
        is_busy = share > CPUS_AT_WORK
        return request, {HOST: f"{share:.0%} of the CPUs are at work"} if is_busy else {}

    def _leave_alone(self, busy: dict[str, str]) -> None:
        for device in self._alone.keys() - busy.keys():
            self._tell(MeasuredAgain(time=now(), device=device))
        for device, why in busy.items():
            if device not in self._alone:
                self._tell(LeftAlone(time=now(), device=device, why=why))
        self._alone = busy

    def _learn(self, run: Run) -> None:
        if self._has_learnt:
            return
        self._has_learnt = True
        better = {table_id(one): one.better for one in self._plan}
        try:
            names = {result.benchmark for result in run.results}
            self._degradation.learn(runs_before(run, EARLIER, run.label, names), better)
        except LinkgaugeError as error:
            self._tell(ProbeFailed(time=now(), reason=str(error)))

    def _doubts(self, run: Run, timer: _Timer) -> tuple[CellAt, ...]:
        self._learn(run)
        judged = judge(run)
        tables = {id(result): number for number, result in enumerate(judged.results)}
        doubted, seen = doubtful(run, lambda _: judged), tuple(_seen(judged))
        slow = {one.cell for one in self._degradation.suspects(seen)}
        suspects, spent = [], timer.busy
        for one in seen:
            of = cell_id(one.result, one.found)
            at = CellAt(tables[id(one.result)], one.found.place)
            if (one.cell in slow or at in doubted) and self._schedule.has_room(of, spent):
                spent += timer.took.get(of, 0.0)
                suspects.append(at)
        return tuple(suspects)

    def _look_at(self, run: Run, folder: Path | None) -> None:
        measured = {cell_id(seen.result, seen.found): seen for seen in _seen(run)}
        for seen in measured.values():
            event = self._degradation.observe(seen, self._clock.now(), now())
            if event is not None:
                self._tell(event)
        again = {of for of, seen in measured.items() if self._degradation.is_open(seen.cell)}
        self._schedule.measured(measured, again)
        if folder is not None:
            write_run(folder, run)
        outcome = outcome_of(run)
        self._findings |= {one.name: one for one in outcome.findings}
        self._is_judged |= outcome.judged
        if run.results and (why := not_added(run, folder, outcome.word)) is not None:
            self._tell(ProbeFailed(time=now(), reason=f"this probe is not in the history: {why}"))

    def _end(self) -> None:
        outcome = self._outcome()
        self._tell(
            WatchEnded(
                verdict=outcome.word, exit_code=outcome.code, findings=outcome.findings,
                time=now(), probes=self._number, cells=self._cells,
                degraded=self._degradation.degraded(), **self._duty(),
            )
        )  # fmt: skip

    def _outcome(self) -> Outcome:
        """Returns the outcome. Its exit code is 3 if a cell cannot be measured, else 1 for a loss
        or a failure, else 4 if nothing was measured."""
        whys, findings = self._degradation.whys(), tuple(self._findings.values())
        is_stopped = not {"error", "timeout"}.isdisjoint(whys)
        code = 3 if is_stopped else int(bool(whys) or failed(findings))
        return Outcome(
            code or (0 if self._cells else 4), findings, low=bool(whys),
            broken=is_stopped or "fail" in whys, judged=self._is_judged,
        )  # fmt: skip


class _Timer(Observer):
    """Measures `busy`: the seconds from the start of the first cell to the end of the last."""

    def __init__(self, clock: WallClock) -> None:
        self._clock = clock
        self._first: float | None = None
        self._started: tuple[CellId, float] | None = None
        self.busy = 0.0
        self.took: dict[CellId, float] = {}

    def begun(self, _machine: Machine) -> None:
        self._first = self._clock.now()

    def started(self, table: PlannedTable, cell: PlannedCell) -> None:
        self._started = cell_id(table, cell), self._clock.now()

    def finished(self, _cell: CellResult, /) -> None:
        at = self._clock.now()
        if self._started is not None:
            of, began = self._started
            self.took[of] = max(at - began, self.took.get(of, 0.0))
        self.busy = at - (self._first if self._first is not None else at)


def _seen(run: Run) -> Iterator[WatchedCell]:
    for result, figures in figures_by_result(run.results):
        for figure, found in zip(figures, result.cells, strict=True):
            yield WatchedCell(figure.cell, found, result)


def teller(*, as_json: bool) -> Tell:
    from linkgauge.report.console import make_console
    from linkgauge.report.render.terminal import styled

    from .events import event_json, event_line

    console = make_console()

    def tell(event: Event) -> None:
        with Interrupts() as interrupts, interrupts.held():  # a signal within would repeat it
            if as_json:
                print(event_json(event), flush=True)
            elif (line := event_line(event)) is not None:
                console.print(styled(line))
                sys.stdout.flush()

    return tell


def begin(asked: Asked, otherwise: RunRequest | None, tell: Tell, clock: WallClock) -> int:
    """Watches the request or, if it has no cells, `otherwise`. Raises InputError without cells."""
    for request in filter(None, (asked.request, otherwise)):
        asked = replace(asked, request=request)
        with opened(request) as session:
            machine, plan = session.machine, session.plan(Observer())
        if cells := sum(1 for _ in able(plan)):
            break
    if not cells:
        reasons = dict.fromkeys(table.reason for table in plan if table.reason)
        raise InputError(f"nothing to watch here: {'; '.join(reasons) or 'no cell fits'}")
    name = machine.simulated or machine.host.hostname or "this machine"
    simulated = machine.simulated is not None
    tell(by_name(Begun, asked, time=now(), machine=name, simulated=simulated, cells=cells))
    if is_off():
        off = "the history is off: what is usual is learned from this watch alone"
        tell(ProbeFailed(time=now(), reason=off))
    return Watch(asked, plan, tell, clock).carry_out()
