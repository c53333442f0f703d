"""A cell with its buffers, and the steps of a repetition: allocate, fill, compare and report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter, methodcaller
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from linkgauge.backends.protocol import (
    RESULTS,
    Backend,
    Buffer,
    Copy,
    HasTelemetry,
    Pattern,
    Timing,
    follows,
    seed_of,
)
from linkgauge.engine.workers.ranges import range_name
from linkgauge.model import joining
from linkgauge.model.by_name import by_name
from linkgauge.model.counters import total
from linkgauge.model.documents.result import (
    CellResult,
    Definition,
    PlannedCell,
    RankTimes,
    TransferFigure,
)
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.inventory import Reading
from linkgauge.model.memory import Memory
from linkgauge.model.notes import Note, Remark
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.overlap import hidden
from linkgauge.model.operations.workload import WorkDone
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import FULL_LOAD, Report, Transfer

from .pool import BufferPool, Content, touches
from .sampler import TakenSamples, definition_of, headline, rates
from .telemetry import TelemetrySources

if TYPE_CHECKING:
    from .staging import Staging

SPAN_WARM_UPS = 4
"""The number of warm-up copies behind the gate, as in nvbandwidth (WARMUP_COUNT in memcpy.cpp).
Warm-up copies that still run when the first copy starts count in the span and so in totals."""

LARGE_CHASE = 64 << 20
"""From this many bytes on, all repetitions of a pointer chase share one buffer, because so many
pages average out."""


class Extra(msgspec.Struct, frozen=True):
    """Results of a repetition besides its samples. `problem` describes wrong values, or is None."""

    problem: str | None = None
    iterations: tuple[RankTimes, ...] = ()
    wrong: int | None = None
    work: WorkDone | None = None


class _Compared(NamedTuple):
    """A copy whose bytes are verified, with its index in the cell. Its source is filled with
    `given`, and its destination must hold `made` in the end."""

    number: int
    copy: Copy
    backend: Backend
    given: Content
    made: Content

    @property
    def is_plain(self) -> bool:
        """Whether the copy goes one way between two memories, without a staging buffer."""
        transfer = self.copy.transfer
        one_way = len(transfer.memories) == 2 and not transfer.both_ways
        return one_way and not touches(transfer)


class Measurement:
    """A cell with its buffers and each transfer's backend. Methods are steps of a repetition."""

    def __init__(
        self,
        planned: PlannedCell,
        size: int,
        settings: Settings,
        backends: Sequence[Backend],
    ) -> None:
        self.planned = planned
        self._size = size
        self._settings = settings
        self.backends = backends
        self.devices: TelemetrySources = {
            place.place: backend
            for transfer, backend in zip(planned.transfers, backends, strict=True)
            for place in (*transfer.memories, transfer.engine.owner)
            if place.backend == backend.name and follows(backend, HasTelemetry)  # type: ignore[type-abstract]
        }
        self.copies: tuple[Copy, ...] = ()
        self._compared: tuple[_Compared, ...] = ()
        self._repetition = 0
        self.steps = 1
        """The number of steps in one loop of the operation. A latency is the time of one step."""
        self.definition: Definition | None = None
        """How the total is computed; None until a repetition determines it."""
        self.verifies = settings.verify and planned.does.is_compared
        self.staging: Staging | None = None
        if any(map(touches, planned.transfers)):
            from .staging import Staging  # loaded where a cell has such buffers

            self.staging = Staging(planned.transfers, size)
        self._counted = planned.counted(size)
        self._buffers: tuple[Buffer, ...] = ()
        self.is_tracked = planned.report is Report.TOTAL and len(planned.transfers) > 1
        """Whether each transfer's progress must be recorded, because a total is computed."""

    def range_name(self, benchmark: str) -> str:
        return range_name(self.planned, self._size, benchmark)

    def figures(
        self, timings: Iterable[Timing], loops: int, definition: Definition | None = None
    ) -> tuple[float, ...]:
        """Returns the headline figure of each sample, in the result's unit."""
        report, steps = self.planned.report, self.steps
        if report is Report.TIME:
            return tuple([fmean(each.seconds) / loops / steps for each in timings])
        if report.is_latency:
            return tuple([each.seconds[0] / loops / steps for each in timings])
        if report is Report.RATE:
            return tuple([sum(self._rate(one, loops) for one in each.seconds) for each in timings])
        if report is Report.HIDDEN:
            times = [(*each.seconds, each.span) for each in timings]
            return tuple([hidden(first, max(copies), span) for first, *copies, span in times])
        own = self.planned, self._counted
        return tuple([headline(*own, each, loops, definition) for each in timings])

    def _rate(self, seconds: float, loops: int) -> float:
        return self.steps * loops / seconds

    def allocate(self, pool: BufferPool, first_seed: int, repetition: int) -> None:
        """Borrows buffers. Successive repetitions use different buffers, except for interfering
        copies and large pointer chases."""
        self._repetition = repetition
        work = self.planned.operation
        made = (
            self._ranks(work, pool, first_seed, repetition)
            if isinstance(work, Collective)
            else None
        )
        self.copies = tuple(made or self._allocate(pool, first_seed, repetition))
        self._compared = tuple(self._find_compared())
        used = chain.from_iterable(map(attrgetter("source", "destination"), self.copies))
        self._buffers = tuple([buffer for buffer in used if buffer is not None])

    def _ranks(
        self, work: Collective, pool: BufferPool, seed: int, repetition: int
    ) -> Iterator[Copy]:
        transfers = self.planned.transfers
        whole = transfers[0].bytes_moved(self._size)
        needed = work.buffer_bytes(whole, len(transfers))
        for transfer, backend, (sent, received) in zip(
            transfers, self.backends, needed, strict=True
        ):
            source, destination = (
                pool.lend(backend, memory, size, transfer.engine, repetition) if size else None
                for memory, size in ((transfer.source, sent), (transfer.destination, received))
            )
            yield Copy(transfer, source, destination, whole, seed)

    def _allocate(self, pool: BufferPool, first_seed: int, repetition: int) -> Iterator[Copy]:
        does = self.planned.does
        only_first = self.planned.report.is_first or does.follows_pointers
        spans = self.planned.report is Report.SPAN and len(self.planned.transfers) > 1
        shared = self.staging.lend(pool, self.backends, repetition) if self.staging else {}
        origins = self._origins(pool, repetition) if does.from_one else {}
        for number, (transfer, backend) in enumerate(
            zip(self.planned.transfers, self.backends, strict=True)
        ):
            size = self._size * transfer.scale
            interferes = only_first and number > 0
            same = interferes or (does.follows_pointers and size >= LARGE_CHASE)
            endless = does.is_loaded and number > 0
            if touches(transfer) and transfer.engine.kind == "cpu" and len(transfer.memories) == 1:
                endless = True  # it only reads or writes staging, until others end
            if transfer.load != FULL_LOAD and not endless:
                raise Unsupported(f"{transfer}: only what runs beside a latency takes a load")
            # Concurrent copies have different seeds unless they share a buffer.
            seed = first_seed if touches(transfer) else first_seed + number
            if transfer.source in origins:
                seed = first_seed + list(origins).index(transfer.source)
            if self._has_own_pattern(transfer):
                seed = seed_of(self._settings.pattern or 0)
            source, destination = (
                None
                if memory.is_null or memory.is_cpu
                else lent.get(memory)
                or pool.lend(
                    backend, memory, size * arrays, transfer.engine, 0 if same else repetition
                )
                for memory, arrays, lent in (
                    (transfer.source, does.source_arrays, shared | origins),
                    (transfer.destination, 1, shared),
                )
            )
            yield Copy(
                transfer,
                source,
                destination,
                size,
                seed=seed,
                interference=interferes,
                endless=endless,
                tracked=self.is_tracked,
                warm_ups=SPAN_WARM_UPS if spans else None,
            )

    def _origins(self, pool: BufferPool, repetition: int) -> dict[Memory, Buffer]:
        origins: dict[Memory, Buffer] = {}
        for transfer, backend in zip(self.planned.transfers, self.backends, strict=True):
            if transfer.source not in origins:
                own = transfer.source, self._size * transfer.scale, transfer.engine
                origins[transfer.source] = pool.lend(backend, *own, repetition)
        return origins

    def fill(self, pool: BufferPool) -> None:
        """Fills sources with the pattern, and destinations with bytes that all differ from it.
        Skips a source that still holds the pattern. Does nothing without verification."""
        for one in self._compared:
            source, destination, given = one.copy.source, one.copy.destination, one.given
            if source is not None and not (one.is_plain and pool.is_held(source, given)):
                one.backend.fill(source, *given)
            if destination is not None:
                size, pattern, seed, _ = one.made
                one.backend.fill(destination, size, pattern, seed, inverted=True)

    def know_contents(self, pool: BufferPool) -> None:
        """Records in the pool what plain copies' buffers hold, once all bytes were found right."""
        for one in self._compared:
            source, destination = one.copy.source, one.copy.destination
            if one.is_plain and source is not None and destination is not None:
                pool.know(source, one.given)
                pool.know(destination, one.made)

    def _find_compared(self) -> Iterator[_Compared]:
        if self.verifies and not isinstance(self.planned.operation, Collective):
            does = self.planned.does
            written = self.staging.written if self.staging else ()
            arrays, array = does.source_arrays, does.array
            for number, (copy, backend) in enumerate(zip(self.copies, self.backends, strict=True)):
                if copy.interference and self._repetition:
                    continue
                before = after = Pattern.WORDS
                if array is not None and array.computes:
                    before, after = Pattern.NUMBERS, RESULTS[array.kind]
                elif self.staging and touches(copy.transfer):
                    before = after = self.staging.pattern
                elif copy.source is None or self._has_own_pattern(copy.transfer):
                    before = after = Pattern.CONSTANT
                to_come = copy.transfer.source in written
                given = Content(copy.size * arrays, before, copy.seed, to_come)
                made = Content(copy.size, after, copy.seed, inverted=False)
                yield _Compared(number, copy, backend, given, made)

    def _has_own_pattern(self, transfer: Transfer) -> bool:
        asked = self._settings.pattern is not None and not self.planned.does.follows_pointers
        return asked and not (touches(transfer) or transfer.both_ways)

    def _mismatches(self, last: Timing) -> Iterator[str]:
        for number, copy, backend, _, made in self._compared:
            source, destination = copy.source, copy.destination
            if (
                destination is None
                and source is not None
                and last.checksums[number] != backend.checksum(source, copy.size)
            ):
                yield f"{copy.transfer}: what was read differs from what {source.memory} holds"
            pattern = Pattern.SPLIT if copy.transfer.both_ways else made.pattern
            for buffer in (source, destination) if copy.transfer.both_ways else (destination,):
                if buffer is None:
                    continue
                at = backend.first_mismatch(buffer, copy.size, pattern, copy.seed)
                if at is not None:
                    yield f"{copy.transfer}: {buffer.memory} is wrong at byte {at:d} of {copy.size}"

    def report(
        self,
        taken: TakenSamples,
        timings: Sequence[Timing],
        last: Timing,
        readings: tuple[Reading, ...],
        notes: Sequence[Note],
        extra: Extra,
    ) -> CellResult:
        """Compares the copied bytes and returns the result. `timings` has the timing of each
        sample; `last` is the timing of the last copies, which wrote the bytes that are compared."""
        problem = extra.problem
        if self.verifies:
            problem = problem or next(self._mismatches(last), None)
        definition = self.definition or definition_of(self.planned, timings)
        placements = tuple(map(methodcaller("placement"), self._buffers))
        has_parts = len(self.copies) > 1 and not isinstance(self.planned.operation, Collective)
        return by_name(
            CellResult, extra, taken, self.planned,
            status="fail" if problem else "pass",
            reason=problem,
            kind="wrong-bytes" if problem else None,
            notes=tuple(dict.fromkeys((*notes, *self._notes()))),
            bytes=self.planned.bytes_reported(self._size),
            verified=problem is None if self.verifies else None,
            locked=joining.all_known(map(attrgetter("locked"), placements)),
            placement=placements,
            samples=self.figures(timings, taken.loops, definition),
            repetitions=(taken.gates,),
            parts=tuple(self._parts(taken.loops, timings, definition)) if has_parts else (),
            readings=readings,
            definition=definition,
            counters=total(map(attrgetter("counters"), timings)),
        )  # fmt: skip

    def _parts(
        self, loops: int, timings: Sequence[Timing], definition: Definition | None
    ) -> Iterator[TransferFigure]:
        moved = [each * loops for each in self._counted]
        own = [rates(moved, timing, definition) for timing in timings]
        for number, size in enumerate(self._counted):
            if not size and self.planned.does.from_one:
                continue
            if number == 0 and self.planned.report.is_latency:
                yield TransferFigure(0, 0, self.figures(timings, loops), None)
                continue
            times = [timing.seconds[number] for timing in timings]
            if self.planned.report is Report.RATE:
                figures = tuple(self._rate(seconds, loops) for seconds in times)
            elif self.planned.report is Report.HIDDEN:
                figures = tuple(seconds / loops for seconds in times)
            else:
                figures = tuple(each[number] for each in own)
            yield TransferFigure(number, size, figures, None)

    def _notes(self) -> Iterator[Note]:
        for buffer in self._buffers:
            yield from map(Remark, buffer.warnings)
        if self.planned.workload is not None:  # whose `how` says what carried it out
            return
        for transfer, backend in zip(self.planned.transfers, self.backends, strict=True):
            for remark in backend.remarks(transfer):
                yield Remark(remark) if isinstance(remark, str) else remark
