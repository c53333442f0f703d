"""One cell from its transfers to its result: allocate, fill, warm up, sample, verify."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from linkgauge.backends.base import Backend, Buffer, Chaser, Copy, Group, Pattern, Timing
from linkgauge.model.errors import BackendError, LinkgaugeError, Unsupported
from linkgauge.model.result import CellResult, Part, PlannedCell, Settings, Status
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Cell, Report, Transfer

from .pool import BufferPool
from .sampler import LEAST_LOOPS, Samples, take_samples, warm_up


def measure_cell(
    planned: PlannedCell,
    transfers: Sequence[Transfer],
    size: int,
    settings: Settings,
    backend: Backend,
    pool: BufferPool,
) -> CellResult:
    """Never raises for what befalls the cell: that is its status and reason."""
    measurement = Measurement(planned, transfers, size, settings, backend)
    try:
        return measurement.carry_out(pool)
    except Unsupported as reason:
        return unmeasured(planned, "skip", str(reason))
    except LinkgaugeError as error:
        return unmeasured(planned, "error", f"while {measurement.phase}: {error}")
    finally:
        pool.take_back()


def unmeasured(planned: PlannedCell, status: Status, reason: str) -> CellResult:
    """A cell without figures, and why."""
    return CellResult(
        planned.row, planned.column, planned.transfers, planned.report, status, reason
    )


def headline(cell: Cell, size: int, timing: Timing, loops: int) -> float:
    """The bandwidth of one sample, in bytes/s."""
    if cell.report is Report.FIRST:
        return cell.transfers[0].bytes_each_way(size) * loops / timing.seconds[0]
    if cell.report is Report.TOTAL:
        return cell.bytes_reported(size) * loops / timing.span
    return sum(
        transfer.bytes_moved(size) * loops / seconds
        for transfer, seconds in zip(cell.transfers, timing.seconds, strict=True)
    )


class Measurement:
    """A cell while it is measured. `phase` is what it is doing, for the reason of an error."""

    def __init__(
        self,
        planned: PlannedCell,
        transfers: Sequence[Transfer],
        size: int,
        settings: Settings,
        backend: Backend,
    ) -> None:
        self.phase = "planning"
        self._planned = planned
        self._cell = Cell(planned.row, planned.column, tuple(transfers), planned.report)
        self._size = size
        self._settings = settings
        self._backend = backend
        self._copies: tuple[Copy, ...] = ()
        self._accesses = 0
        # A pointer chase copies nothing: it would be lost if a pointer were wrong.
        self._verifies = settings.verify and planned.report is not Report.LATENCY

    def carry_out(self, pool: BufferPool) -> CellResult:
        """The cell's result: `pass`, or `fail` where a byte is wrong."""
        self.phase = "allocating"
        self._copies = tuple(self._allocate(pool))
        with closing(self._prepare()) as group:
            self.phase = "warming up"
            loops = warm_up(group, self._settings, 1 if self._accesses else LEAST_LOOPS)
            if self._verifies:
                # After the warm-up: what it brought over must not pass for the samples' work.
                self.phase = "filling the buffers"
                self._fill()
            self.phase = "measuring"
            taken = take_samples(group, loops, self._settings, self._figure)
            problem = None
            if self._verifies:
                self.phase = "verifying"
                problem = next(self._mismatches(taken.timings[-1]), None)
            return self._report(taken, problem)

    def _prepare(self) -> Group:
        """Raises Unsupported for a latency where the backend does not follow pointers."""
        if self._cell.report is not Report.LATENCY:
            return self._backend.prepare(self._copies)
        if not isinstance(self._backend, Chaser):
            raise Unsupported(f"backend {self._backend.name} does not measure latency")
        (copy,) = self._copies
        chase = self._backend.chase(copy)
        self._accesses = chase.accesses
        return chase

    def _figure(self, timing: Timing, loops: int) -> float:
        if min(*timing.seconds, timing.span) <= 0:
            raise BackendError("timing", "shorter than the clock tells: give more --loops")
        if self._cell.report is Report.LATENCY:
            return timing.seconds[0] / loops / self._accesses
        return headline(self._cell, self._size, timing, loops)

    def _allocate(self, pool: BufferPool) -> Iterator[Copy]:
        for number, transfer in enumerate(self._cell.transfers):
            size = self._size * transfer.scale
            source, destination = (
                None if memory.is_null else pool.lend(self._backend, memory, size, transfer.engine)
                for memory in (transfer.source, transfer.destination)
            )
            yield Copy(transfer, source, destination, size, seed=number + 1)

    def _fill(self) -> None:
        """The pattern in the source; in the destination, a poison that differs in every byte."""
        fill = self._backend.fill
        for copy in self._copies:
            if copy.source is not None:
                fill(copy.source, copy.size, Pattern.WORDS, copy.seed, inverted=False)
            if copy.destination is not None:
                fill(copy.destination, copy.size, _written(copy), copy.seed, inverted=True)

    def _mismatches(self, last: Timing) -> Iterator[str]:
        """What is wrong with the bytes, copy by copy, with the first bad offset."""
        for number, copy in enumerate(self._copies):
            source, destination = copy.source, copy.destination
            if (
                destination is None
                and source is not None
                and last.checksums[number] != self._backend.checksum(source, copy.size)
            ):
                yield f"{copy.transfer}: what was read differs from what {source.memory} holds"
            pattern = Pattern.SPLIT if copy.transfer.both_ways else _written(copy)
            for buffer in (source, destination) if copy.transfer.both_ways else (destination,):
                if buffer is None:
                    continue
                at = self._backend.first_mismatch(buffer, copy.size, pattern, copy.seed)
                if at is not None:
                    yield f"{copy.transfer}: {buffer.memory} is wrong at byte {at} of {copy.size}"

    def _report(self, taken: Samples, problem: str | None) -> CellResult:
        planned = self._planned
        figures = tuple(self._figure(timing, taken.loops) for timing in taken.timings)
        placements = tuple(buffer.placement() for buffer in self._buffers())
        locks = [placement.locked for placement in placements if placement.locked is not None]
        return CellResult(
            planned.row,
            planned.column,
            planned.transfers,
            planned.report,
            "fail" if problem else "pass",
            problem,
            warnings=tuple(dict.fromkeys(self._warnings(taken))),
            bytes=self._cell.bytes_reported(self._size),
            loops=taken.loops,
            stopped=taken.stopped,
            verified=problem is None if self._verifies else None,
            locked=all(locks) if locks else None,
            placement=placements,
            samples=figures,
            summary=summarize(figures),
            parts=tuple(self._parts(taken)) if len(self._copies) > 1 else (),
        )

    def _buffers(self) -> Iterator[Buffer]:
        for copy in self._copies:
            yield from (buffer for buffer in (copy.source, copy.destination) if buffer is not None)

    def _parts(self, taken: Samples) -> Iterator[Part]:
        for number, transfer in enumerate(self._cell.transfers):
            size = transfer.bytes_each_way(self._size)
            figures = tuple(size * taken.loops / timing.seconds[number] for timing in taken.timings)
            yield Part(number, size, figures, summarize(figures))

    def _warnings(self, taken: Samples) -> Iterator[str]:
        for buffer in self._buffers():
            yield from buffer.warnings
        for transfer in self._cell.transfers:
            yield from self._backend.remarks(transfer)
        missed = taken.error is None or taken.error > self._settings.precision
        if taken.stopped == "max-time" and missed:
            reached = "no interval" if taken.error is None else f"±{taken.error:.2%}"
            yield (
                f"precision of ±{self._settings.precision:.2%} missed: {reached} after "
                f"{len(taken.timings)} samples; give more --max-time or quieten the machine"
            )


def _written(copy: Copy) -> Pattern:
    """What a one-way copy leaves in its destination."""
    return Pattern.CONSTANT if copy.source is None else Pattern.WORDS
