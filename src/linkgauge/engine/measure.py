"""A visit of cells, from their transfers to results: allocate, fill, warm up, sample, verify."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

import msgspec

from linkgauge.backends.base import Backend, Group, Pace, Phase, Timing, Virtual, follows
from linkgauge.model.errors import BackendError, LinkgaugeError, Unsupported
from linkgauge.model.notes import Beside, Note
from linkgauge.model.result import CellResult, Definition, Settings

from .joined import JoinedGroup
from .measurement import Measurement
from .pool import BufferPool
from .reasons import failed
from .sampler import Sample, run_once, take_samples, warm_up
from .sensing import sensing
from .sustained import TrackedGroup

Tell = Callable[[Phase], None]


class Visit(msgspec.Struct, frozen=True):
    """Which visit of cells this is, from 0, how many samples were `taken` of them before, in how
    many seconds, and what a `sample` of theirs is and what its total means, where an earlier visit
    found that."""

    number: int = 0
    taken: int = 0
    spent: float = 0.0
    sample: Sample | None = None
    definition: Definition | None = None


class Visited(msgspec.Struct, frozen=True):
    """The cells as one visit found them, and what a sample was; None where none was taken."""

    cells: tuple[CellResult, ...]
    sample: Sample | None = None


def measure_together(
    cells: Sequence[Measurement],
    settings: Settings,
    pool: BufferPool,
    tell: Tell = lambda phase: None,
    visit: Visit = Visit(),  # noqa: B008
) -> Visited:
    """Visits cells at the same time; `tell` hears each phase begin, and measuring anew after each
    sample. Never raises for what happens to them: that is their status and reason."""
    together = _Together(cells, settings, tell, visit)
    try:
        return together.carry_out(pool)
    except LinkgaugeError as error:
        if len(cells) == 1:
            return Visited((failed(cells[0].planned, together.phase, error),))
    finally:
        pool.take_back()
    # One of them must not cost the others: each is measured alone.
    alone = (measure_together([cell], settings, pool, tell, visit) for cell in cells)
    return Visited(tuple(result for one in alone for result in one.cells))


class _Together:
    """Cells while they are measured at the same time. `phase` is what is being done, for the
    reason of an error."""

    def __init__(
        self, cells: Sequence[Measurement], settings: Settings, tell: Tell, visit: Visit
    ) -> None:
        self._visit = visit
        self.phase: Phase = "plan"
        self._cells = cells
        self._settings = settings
        self._tell = tell
        owners = {id(owner): owner for cell in cells for owner in cell.backends}.values()
        self._virtual = [one for one in owners if follows(one, Virtual)]  # type: ignore[type-abstract]
        for cell in cells:
            cell.definition = visit.definition
        self._numbered = {cell.planned.number: cell.transfers for cell in cells}

    def carry_out(self, pool: BufferPool) -> Visited:
        """The cells' results: `pass`, or `fail` where a byte is wrong."""
        self._enter("allocate")
        seed = 1
        for cell in self._cells:
            cell.allocate(pool, seed, self._visit.number)
            seed += len(cell.copies)
        with closing(self._prepare()) as group:
            for cell in self._cells:
                cell.steps = group.pace.steps
            self._enter("warm up")
            known = self._visit.sample
            sample = warm_up(group, self._settings, self._pace(group), self._busy, known)
            # After the warm-up: what it brought over must not pass for the samples' work.
            self._enter("fill")
            for cell in self._cells:
                cell.fill()
            self._enter("measure")
            clock = self._virtual[0].clock if self._virtual else time.monotonic
            devices = {of: by for cell in self._cells for of, by in cell.devices.items()}
            notes = self._notes()
            with sensing(devices, threaded=not self._virtual) as sensed:
                taken = take_samples(
                    group,
                    sample,
                    self._settings,
                    clock,
                    lambda: self._tell("measure"),
                    self._visit.spent,
                )
            self._check(taken.timings)
            last = taken.timings[-1]
            if any(cell.staging for cell in self._cells) and self._settings.verify:
                last = run_once(group, 1)  # by now staging buffers hold what they are to hold
            self._enter("verify")
            split = self._split((*taken.timings, last))
            results = tuple(
                cell.report(taken, own[:-1], own[-1], sensed.readings(cell.devices), notes)
                for cell, own in zip(self._cells, split, strict=True)
            )
            return Visited(results, sample)

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._tell(phase)
        for backend in self._virtual:
            backend.enter(self._numbered, phase, self._visit.number, self._visit.taken)

    def _prepare(self) -> Group:
        copies = [copy for cell in self._cells for copy in cell.copies]
        owners = [backend for cell in self._cells for backend in cell.backends]
        operation = self._cells[0].planned.operation
        if operation != "copy" and len(copies) > 1:
            raise Unsupported("latencies are measured one at a time")
        places: defaultdict[Backend, list[int]] = defaultdict(list)
        # Host threads last: their endless copies end once the others have.
        for place, owner in sorted(enumerate(owners), key=lambda one: one[1].name == "host"):
            places[owner].append(place)
        alone = not self._virtual and all(copy.endless for copy in copies)
        group: Group
        if len(places) == 1 and not alone:
            group = owners[0].prepare(copies, operation)
        else:
            with ExitStack() as opened:
                groups = [
                    opened.enter_context(closing(backend.prepare([copies[place] for place in own])))
                    for backend, own in places.items()
                ]
                lasting = Pace().seconds if alone else 0.0
                group = JoinedGroup(groups, tuple(places.values()), opened.pop_all(), lasting)
        return TrackedGroup(group) if any(cell.is_tracked for cell in self._cells) else group

    def _pace(self, group: Group) -> Pace:
        """Only the first copy is timed lap by lap: other copies may be a lap ahead of it."""
        if [cell.planned.report.is_first for cell in self._cells] == [True]:
            return group.pace
        return msgspec.structs.replace(group.pace, laps=1)

    def _check(self, timings: Sequence[Timing]) -> None:
        if any(min(*timing.seconds, timing.span) <= 0 for timing in timings):
            raise BackendError("timing", "shorter than the clock tells: give more --loops")

    def _split(self, timings: Sequence[Timing]) -> list[list[Timing]]:
        """Each cell's own part of the timings. A cell among others spans its longest transfer."""
        if len(self._cells) == 1:
            return [list(timings)]
        split: list[list[Timing]] = []
        first = 0
        for cell in self._cells:
            own = slice(first, first + len(cell.copies))
            first = own.stop
            split.append([_part(timing, own) for timing in timings])
        return split

    def _busy(self, timing: Timing) -> float:
        """Seconds of the shortest copy, but for those that go on as long as the others do."""
        copies = [copy for cell in self._cells for copy in cell.copies]
        bounded = [s for s, copy in zip(timing.seconds, copies, strict=True) if not copy.endless]
        return min(bounded or timing.seconds)

    def _notes(self) -> tuple[Note, ...]:
        others = len(self._cells) - 1
        return (Beside(others),) if others else ()


def _part(timing: Timing, own: slice) -> Timing:
    seconds = timing.seconds[own]
    return Timing(seconds, max(seconds), timing.checksums[own], timing.progress[own])
