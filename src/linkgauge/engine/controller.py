"""Drives a run: workers measure, and each repetition is journaled before the next one begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from linkgauge.engine.kept.journal import (
    Again,
    Closed,
    Left,
    Logged,
    LossRecord,
    MeasuredRepetition,
    Record,
    result_of,
)
from linkgauge.engine.kept.run_state import PreciseRun, state_of
from linkgauge.engine.workers.outcomes import NOT_REACHED, Repetition, skipped_by_plan, unmeasured
from linkgauge.engine.workers.ranges import advice
from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable, Result, Run
from linkgauge.model.documents.soak import FailedRepetition
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.ranks import RankLost
from linkgauge.model.settings import REPETITION_SECONDS, Settings, Tried
from linkgauge.model.units import count_of

from .interrupts import Interrupts
from .repetitions import CellAt, Repetitions

if TYPE_CHECKING:
    from linkgauge.engine.kept.soak_state import SoakState
    from linkgauge.engine.workers.messages import Workers
    from linkgauge.machine.kernel_log import Follower

Sink = Callable[[Record], None]
Doubts = Callable[[Run], Collection[CellAt]]
"""A function that returns the cells to repeat once more, with the indices of their results."""


class Observer:
    """Receives the events of a run. Every method does nothing unless a subclass overrides it."""

    def begun(self, machine: Machine) -> None:
        """Called before the first cell of this machine is measured."""

    def planned(self, repetitions: int) -> None:
        """Called when a pass over the plan begins, with an estimate of the repetitions to come."""

    def ends_by(self, moment: float) -> None:
        """Called when measuring begins, if the user gave a time budget: no repetition begins after
        `moment` (monotonic clock). Not called on a simulated machine, whose time is simulated."""

    def started(self, table: PlannedTable, cell: PlannedCell) -> None:
        """Called when a repetition begins, with the first of the cells that it measures."""

    def finished(self, cell: CellResult, /) -> None:
        """Called when a repetition of a cell has ended, with the result of this repetition."""

    def completed(self, result: Result) -> None:
        """Called when a table is complete. Its doubtful cells may still be measured again."""

    def tried(self, tried: Tried) -> None:
        """Called when the tuning of a device has tried candidate settings."""

    def failed(self, repetition: FailedRepetition) -> None:
        """Called when a repetition fails in a soak (a run that repeats its plan)."""

    def interrupted(self) -> None:
        """Called when a signal has ended measuring, before the results so far are put together."""

    def say(self, line: str) -> None:
        """Called with a message for the user."""


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def execute(
    records: Sequence[Record],
    worker: Workers,
    sink: Sink,
    observer: Observer,
    doubts: Doubts = lambda run: (),
    log: Follower | None = None,
) -> Run:
    """Measures the planned cells that `records` lack, then once more the cells that `doubts`
    returns. The first record holds the plan. The run's `finished` is None after Ctrl-C, but is set
    after the loss of a rank. Raises ResultsError if the journal cannot be written."""
    return go_on_with(state_of(records), worker, sink, observer, doubts, log)


def go_on_with(
    state: PreciseRun | SoakState,
    worker: Workers,
    sink: Sink,
    observer: Observer,
    doubts: Doubts = lambda run: (),
    log: Follower | None = None,
) -> Run:
    """Continues a run as `execute` does, from a `state` read before. A soak ignores `doubts`."""
    opened = state.opened
    kept = _Records(state, sink, log)

    try:
        if (note := advice(opened.settings)) is not None:
            observer.say(note)
        with kept.complete():
            if isinstance(state, PreciseRun):
                _measure_what_is_left(state, kept, worker, observer)
                is_asked = state.is_settled or state.repetitions.is_over
                found, shown = () if is_asked else doubts(state.run()), state.repetitions.shown()
                cells = tuple(CellAt(shown[one.table], one.place) for one in found)
                if cells:
                    observer.say(f"measuring {count_of(len(cells))} once more, to be sure")
                if cells or (state.repetitions.has_time_left and not state.is_settled):
                    kept.keep(Again(cells))
                    _measure_what_is_left(state, kept, worker, observer)
                for number, one in [*state.repetitions.unreached()]:
                    skipped = skipped_by_plan(one) or unmeasured(one, "skip", NOT_REACHED, "budget")
                    kept.keep(MeasuredRepetition(number, skipped))
            else:
                _repeat(state, kept, worker, observer)
            end_profile(opened.settings, worker, kept.keep, observer)
            kept.keep(Closed(now(), worker.look(tuple(opened.machine.devices))))
    except RankLost as ended:  # nothing can be asked of the others any more
        kept.keep(LossRecord(ended.lost), Closed(now()))
    except KeyboardInterrupt:  # what was measured is kept; the caller sees that it has no end
        observer.interrupted()
        end_profile(opened.settings, worker, kept.keep, observer)
    return state.run()


def _measure_what_is_left(
    state: PreciseRun, kept: _Records, worker: Workers, observer: Observer
) -> None:
    plan, repetitions, passed = state.opened.plan, state.repetitions, _Passed(state)
    if (seconds := state.seconds_left) is not None:
        observer.ends_by(time.monotonic() + seconds)
    shown = _show(0, plan, repetitions, observer)
    while any(left := repetitions.left()):
        observer.planned(repetitions.count_left())
        for number in repetitions.order():
            table = plan[number]
            for together in _together(left[number]):
                if repetitions.is_over:
                    break
                observer.started(table, together[0])
                measured = worker.measure(
                    together, table.size, repetitions.repetition(number, together[0])
                )
                at = passed.after(measured) if state.opened.budget is not None else None
                for cell in measured:
                    kept.keep(MeasuredRepetition(number, cell, at=at))
                    observer.finished(cell)
            shown = _show(shown, plan, repetitions, observer)
    _show(shown, plan, repetitions, observer)


def _repeat(state: SoakState, kept: _Records, worker: Workers, observer: Observer) -> None:
    passed = _Passed(state)
    while not state.is_over:
        observer.planned(state.count_left())
        for number, cells in enumerate(state.left()):
            table = state.opened.plan[number]
            for together in _together(cells):
                if state.is_over:
                    return
                observer.started(table, together[0])
                repetition = Repetition(state.round, benchmark=table.benchmark, passed=state.passed)
                measured = worker.measure(together, table.size, repetition)
                at, own = passed.after(measured), state.round
                before = len(state.failed)
                for cell in measured:
                    kept.keep(MeasuredRepetition(number, cell, own, at))
                    observer.finished(cell)
                for one in state.failed[before:]:
                    observer.failed(one)


class _Passed:
    """Counts the seconds that a run has spent measuring, without interruptions. On a simulated
    machine, a repetition counts its simulated seconds, at least `REPETITION_SECONDS`."""

    def __init__(self, state: PreciseRun | SoakState) -> None:
        self._before = state.at
        self._began = time.monotonic()
        self._is_virtual = state.opened.settings.simulation is not None

    def after(self, cells: Sequence[CellResult]) -> float:
        if self._is_virtual:
            self._before += max(REPETITION_SECONDS, *(cell.seconds or 0.0 for cell in cells))
            return self._before
        return self._before + time.monotonic() - self._began


class _Records:
    def __init__(self, state: PreciseRun | SoakState, sink: Sink, log: Follower | None) -> None:
        self._state = state
        self._sink = sink
        self._log = log
        self._interrupts = Interrupts()

    def keep(self, *records: Record) -> None:
        with self._interrupts.held():  # run.json must hold what the journal holds
            new = self._log.new() if self._log is not None else None
            for record in (*([Logged(new)] if new is not None else []), *records):
                self._sink(record)
                self._state.add(record)

    @contextmanager
    def complete(self) -> Iterator[None]:
        """If a signal ends this block, keeps the kernel's last messages. It cannot end `keep`."""
        with self._interrupts:
            try:
                yield
            except KeyboardInterrupt:
                self.keep()
                raise


def end_profile(settings: Settings, worker: Workers, keep: Sink, observer: Observer) -> None:
    if settings.profiler is not None and (files := worker.end_profile(observer.say)):
        keep(Left(files))


def _show(
    shown: int, plan: Sequence[PlannedTable], repetitions: Repetitions, observer: Observer
) -> int:
    while shown < len(plan) and repetitions.is_whole(shown):
        observer.completed(result_of(plan[shown], repetitions.cells(shown)))
        shown += 1
    return shown


def _together(cells: Sequence[PlannedCell]) -> Iterator[tuple[PlannedCell, ...]]:
    for number, of_round in groupby(cells, attrgetter("round")):
        if number is None:
            yield from zip(of_round, strict=True)
        else:
            yield tuple(of_round)
