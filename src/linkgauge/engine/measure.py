"""One cell from its transfers to its result: allocate, fill, warm up, sample, verify."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing

import msgspec

from linkgauge.backends.base import (
    Backend,
    Buffer,
    Chaser,
    Copy,
    Enqueuer,
    Group,
    Pace,
    Paced,
    Pattern,
    Phase,
    Timing,
    Virtual,
    follows,
    seed_of,
)
from linkgauge.model.errors import BackendError, LinkgaugeError, Unsupported
from linkgauge.model.inventory import Reading
from linkgauge.model.result import CellResult, Definition, Part, PlannedCell, Settings
from linkgauge.model.transfer import Cell, Report, Transfer

from .headline import definition_of, headline
from .joined import JoinedGroup, LastingGroup
from .pool import BufferPool
from .reasons import failed
from .sampler import Sample, Samples, run_once, take_samples, warm_up
from .sensing import Sensing, devices_of
from .staging import Staging, touches
from .sustained import TrackedGroup

SPAN_WARM_UPS = 4
"""Of nvbandwidth (WARMUP_COUNT of its memcpy.cpp), behind the gate: what is left of them when the
first copy starts is in its span, and so in its totals."""

Tell = Callable[[Phase], None]


class Visit(msgspec.Struct, frozen=True):
    """Which visit of cells this is, from 0, how many samples were `taken` of them before, and what
    a `sample` of theirs is and what its total means, where an earlier visit found that."""

    number: int = 0
    taken: int = 0
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
            remarks = self._remarks()
            with Sensing(devices, threaded=not self._virtual) as sensed:
                taken = take_samples(
                    group, sample, self._settings, clock, lambda: self._tell("measure")
                )
            self._check(taken.timings)
            last = taken.timings[-1]
            if any(cell.is_staged for cell in self._cells) and self._settings.verify:
                last = run_once(group, 1)  # by now staging buffers hold what they are to hold
            self._enter("verify")
            split = self._split((*taken.timings, last))
            results = tuple(
                cell.report(taken, own[:-1], own[-1], sensed.readings(cell.devices), remarks)
                for cell, own in zip(self._cells, split, strict=True)
            )
            return Visited(results, sample)

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._tell(phase)
        for backend in self._virtual:
            backend.enter(self._numbered, phase, self._visit.number, self._visit.taken)

    def _prepare(self) -> Group:
        if any(cell.is_latency for cell in self._cells):
            return self._latency()
        group = self._grouped()
        return TrackedGroup(group) if any(cell.is_tracked for cell in self._cells) else group

    def _grouped(self) -> Group:
        copies = [copy for cell in self._cells for copy in cell.copies]
        owners = [backend for cell in self._cells for backend in cell.backends]
        # Host threads last: their endless copies end once the others have.
        ordered = sorted(owners, key=lambda backend: backend.name == "host")
        backends = {backend.name: backend for backend in ordered}
        if len(backends) == 1:
            group = owners[0].prepare(copies)
            lasts = not self._virtual and all(copy.endless for copy in copies)
            return LastingGroup(group, Pace().seconds) if lasts else group
        places = [
            [place for place, owner in enumerate(owners) if owner is backend]
            for backend in backends.values()
        ]
        with ExitStack() as opened:
            groups = [
                opened.enter_context(closing(backend.prepare([copies[place] for place in own])))
                for backend, own in zip(backends.values(), places, strict=True)
            ]
            opened.pop_all()  # the joined group closes them from here on
            return JoinedGroup(groups, places)

    def _pace(self, group: Group) -> Pace:
        """Only the first copy is timed lap by lap: other copies may be a lap ahead of it."""
        if any(cell.is_latency for cell in self._cells):
            return Pace(loops=1)
        pace = group.pace if follows(group, Paced) else Pace()  # type: ignore[type-abstract]
        if [cell.planned.report for cell in self._cells] == [Report.FIRST]:
            return pace
        return msgspec.structs.replace(pace, laps=1)

    def _latency(self) -> Group:
        """Raises Unsupported for a latency that the backend does not measure."""
        cell = self._cells[0]
        backend = cell.backends[0]
        if len(self._cells) > 1 or len(cell.copies) > 1:
            raise Unsupported("latencies are measured one at a time")
        if cell.planned.report is Report.ENQUEUE:
            if not isinstance(backend, Enqueuer):
                raise Unsupported(f"backend {backend.name} does not tell what enqueueing takes")
            return backend.enqueuing(cell.copies[0])
        if not isinstance(backend, Chaser):
            raise Unsupported(f"backend {backend.name} does not measure latency")
        chase = backend.chase(cell.copies[0])
        cell.accesses = chase.accesses
        return chase

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
            split.append(
                [
                    Timing(t.seconds[own], max(t.seconds[own]), t.checksums[own], t.progress[own])
                    for t in timings
                ]
            )
        return split

    def _busy(self, timing: Timing) -> float:
        """Seconds of the shortest copy, but for those that go on as long as the others do."""
        copies = [copy for cell in self._cells for copy in cell.copies]
        bounded = [s for s, copy in zip(timing.seconds, copies, strict=True) if not copy.endless]
        return min(bounded or timing.seconds)

    def _remarks(self) -> tuple[str, ...]:
        others = len(self._cells) - 1
        return (f"measured at the same time as {others} other pairs",) if others else ()


class Measurement:
    """One cell with its buffers: filled, timed, compared, reported. `backends` are those that carry
    out its transfers, one for each."""

    def __init__(
        self,
        planned: PlannedCell,
        transfers: Sequence[Transfer],
        size: int,
        settings: Settings,
        backends: Sequence[Backend],
    ) -> None:
        self.planned = planned
        self._cell = Cell(planned.row, planned.column, tuple(transfers), planned.report)
        self._size = size
        self._settings = settings
        self.backends = backends
        self.devices = devices_of(transfers, backends)
        self.copies: tuple[Copy, ...] = ()
        self.accesses = 1
        """Of one loop of a pointer chase."""
        self.definition: Definition | None = None
        """What its total means, where an earlier visit found that."""
        # A pointer chase copies nothing: it would be lost if a pointer were wrong.
        self._verifies = settings.verify and planned.report is not Report.LATENCY
        self._staging = Staging(transfers, size)

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        return self._cell.transfers

    @property
    def is_staged(self) -> bool:
        """Whether several of its transfers share a buffer."""
        return bool(self._staging)

    @property
    def is_latency(self) -> bool:
        return self.planned.report.is_latency

    @property
    def is_tracked(self) -> bool:
        """Whether it matters how far its transfers are at every moment."""
        return self._cell.report is Report.TOTAL and len(self._cell.transfers) > 1

    def figure(self, timing: Timing, loops: int, definition: Definition | None = None) -> float:
        """The headline figure of one sample, in the result's unit."""
        if self.is_latency:
            return timing.seconds[0] / loops / self.accesses
        return headline(self._cell, self._size, timing, loops, definition)

    def allocate(self, pool: BufferPool, first_seed: int, visit: int) -> None:
        """Borrows the buffers: others than at the visit before, but for what only interferes. No
        two copies that run at once have the same seed, but those that share a buffer."""
        self.copies = tuple(self._allocate(pool, first_seed, visit))

    def _allocate(self, pool: BufferPool, first_seed: int, visit: int) -> Iterator[Copy]:
        only_first = self._cell.report is Report.FIRST
        spans = self._cell.report is Report.SPAN and len(self._cell.transfers) > 1
        shared = self._staging.lend(pool, self.backends, visit)
        for number, (transfer, backend) in enumerate(
            zip(self._cell.transfers, self.backends, strict=True)
        ):
            size = self._size * transfer.scale
            interferes = only_first and number > 0
            seed = first_seed if touches(transfer) else first_seed + number
            if self._has_own_pattern(transfer):
                seed = seed_of(self._settings.pattern or 0)
            source, destination = (
                None
                if memory.is_null
                else shared.get(memory)
                or pool.lend(backend, memory, size, transfer.engine, 0 if interferes else visit)
                for memory in (transfer.source, transfer.destination)
            )
            yield Copy(
                transfer,
                source,
                destination,
                size,
                seed=seed,
                interference=interferes,
                endless=self._staging.is_endless(transfer),
                tracked=self.is_tracked,
                warm_ups=SPAN_WARM_UPS if spans else None,
            )

    def fill(self) -> None:
        """The pattern in the source; in the destination, a poison that differs in every byte.
        Nothing where nothing is to be verified."""
        if not self._verifies:
            return
        for copy, backend in zip(self.copies, self.backends, strict=True):
            content = self._content(copy)
            if copy.source is not None:
                to_come = copy.transfer.source in self._staging.written
                backend.fill(copy.source, copy.size, content, copy.seed, inverted=to_come)
            if copy.destination is not None:
                backend.fill(copy.destination, copy.size, content, copy.seed, inverted=True)

    def _content(self, copy: Copy) -> Pattern:
        """What a one-way copy moves."""
        if touches(copy.transfer):
            return self._staging.pattern
        constant = copy.source is None or self._has_own_pattern(copy.transfer)
        return Pattern.CONSTANT if constant else Pattern.WORDS

    def _has_own_pattern(self, transfer: Transfer) -> bool:
        """Whether it moves the word that was asked for."""
        asked = self._settings.pattern is not None
        chased = self.planned.report is Report.LATENCY
        return asked and not (touches(transfer) or transfer.both_ways or chased)

    def _mismatches(self, last: Timing) -> Iterator[str]:
        """What is wrong with the bytes, copy by copy, with the first bad offset."""
        for number, (copy, backend) in enumerate(zip(self.copies, self.backends, strict=True)):
            source, destination = copy.source, copy.destination
            if (
                destination is None
                and source is not None
                and last.checksums[number] != backend.checksum(source, copy.size)
            ):
                yield f"{copy.transfer}: what was read differs from what {source.memory} holds"
            pattern = Pattern.SPLIT if copy.transfer.both_ways else self._content(copy)
            for buffer in (source, destination) if copy.transfer.both_ways else (destination,):
                if buffer is None:
                    continue
                at = backend.first_mismatch(buffer, copy.size, pattern, copy.seed)
                if at is not None:
                    yield f"{copy.transfer}: {buffer.memory} is wrong at byte {at} of {copy.size}"

    def report(
        self,
        taken: Samples,
        timings: Sequence[Timing],
        last: Timing,
        readings: tuple[Reading, ...],
        remarks: Sequence[str],
    ) -> CellResult:
        """Compares the bytes, as they are after the `last` loops, and sums up the cell's own
        `timings`."""
        planned = self.planned
        problem = next(self._mismatches(last), None) if self._verifies else None
        definition = self.definition or definition_of(self._cell, timings)
        figures = tuple(self.figure(timing, taken.loops, definition) for timing in timings)
        placements = tuple(buffer.placement() for buffer in self._buffers())
        locks = [placement.locked for placement in placements if placement.locked is not None]
        return CellResult(
            planned.row,
            planned.column,
            planned.transfers,
            planned.report,
            "fail" if problem else "pass",
            problem,
            warnings=tuple(dict.fromkeys((*remarks, *self._warnings()))),
            bytes=self._cell.bytes_reported(self._size),
            loops=taken.loops,
            verified=problem is None if self._verifies else None,
            locked=all(locks) if locks else None,
            placement=placements,
            samples=figures,
            visits=(taken.gates,),
            seconds=taken.seconds,
            parts=tuple(self._parts(taken.loops, timings)) if len(self.copies) > 1 else (),
            readings=readings,
            definition=definition,
        )

    def _buffers(self) -> Iterator[Buffer]:
        for copy in self.copies:
            yield from (buffer for buffer in (copy.source, copy.destination) if buffer is not None)

    def _parts(self, loops: int, timings: Sequence[Timing]) -> Iterator[Part]:
        for number, transfer in enumerate(self._cell.transfers):
            size = transfer.counted(self._size, self._cell.report)
            figures = tuple(size * loops / timing.seconds[number] for timing in timings)
            yield Part(number, size, figures, None)

    def _warnings(self) -> Iterator[str]:
        for buffer in self._buffers():
            yield from buffer.warnings
        for transfer, backend in zip(self._cell.transfers, self.backends, strict=True):
            yield from backend.remarks(transfer)
