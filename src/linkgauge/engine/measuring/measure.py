"""Measures cells in one repetition: allocates, fills, warms up, samples and verifies."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from math import isfinite
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

import msgspec

from linkgauge.backends import hook_of_backends
from linkgauge.backends.protocol import (
    Backend,
    CheckedGroup,
    Clocked,
    CollectingGroup,
    Copy,
    Group,
    HasTelemetry,
    SamplingPolicy,
    SimulatedClock,
    Timing,
    Working,
    Works,
    follows,
)
from linkgauge.engine.workers.outcomes import FIRST, Repetition, failed, received
from linkgauge.engine.workers.ranges import marked, profiled_by
from linkgauge.model.documents.result import CellResult, Definition, RankTimes
from linkgauge.model.errors import BackendError, LinkgaugeError, Phase, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.notes import Concurrent, Note, Profiled
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report, Transfer

from .measurement import Extra, Measurement
from .pool import BufferPool
from .sampler import Sample, run_once, take_samples, warm_up
from .telemetry import sensing

OnPhase = Callable[[Phase], None]

ITERATION_SECONDS, LEAST_ITERATIONS, MOST_ITERATIONS = 0.02, 4, 128
"""The seconds for which a repetition times single iterations of a collective, and the fewest and
the most iterations."""


class Known(msgspec.Struct, frozen=True):
    """Facts that a cell's first repetition determines for its later repetitions."""

    sample: Sample
    definition: Definition | None = None


class Repeated(NamedTuple):
    """The results of a repetition, and facts for later ones (`known`; None without samples)."""

    cells: tuple[CellResult, ...]
    known: Known | None = None


def measure_together(
    cells: Sequence[Measurement],
    settings: Settings,
    pool: BufferPool,
    on_phase: OnPhase = lambda phase: None,
    repetition: Repetition = FIRST,
    known: Known | None = None,
) -> Repeated:
    """Measures cells in one repetition, all at the same time. Calls `on_phase` when a phase begins,
    and with "measure" whenever samples were taken. Errors of a cell, and all failures of a
    plug-in's backend, are not raised but become the cell's status and reason."""
    together = _Together(cells, settings, on_phase, repetition, known)
    transfers = chain.from_iterable(map(attrgetter("planned.transfers"), cells))
    hook = hook_of_backends(map(attrgetter("engine.owner.backend"), transfers))
    try:
        with hook.asked(prints=True):
            try:
                repeated = together.carry_out(pool)
            finally:
                pool.take_back()
            return repeated if hook.is_ours else repeated._replace(cells=received(repeated.cells))
    except LinkgaugeError as error:
        if len(cells) == 1 or cells[0].planned.at_once:
            return Repeated(tuple(failed(cell.planned, together.phase, error) for cell in cells))
    # One failing cell must not cost the others: measure each alone.
    alone = (
        measure_together([cell], settings, pool, on_phase, repetition, known) for cell in cells
    )
    return Repeated(tuple(result for one in alone for result in one.cells))


class _Together:
    def __init__(
        self,
        cells: Sequence[Measurement],
        settings: Settings,
        on_phase: OnPhase,
        repetition: Repetition,
        known: Known | None,
    ) -> None:
        self._repetition = repetition
        self._known = known
        self.phase: Phase = "plan"
        self._cells = cells
        self._settings = settings.of(cells[0].planned)
        self._profiler = profiled_by(settings)
        self._notes: list[Note] = [Concurrent(len(cells) - 1)] if len(cells) > 1 else []
        if self._profiler is not None:
            self._notes.append(Profiled(self._profiler))
        self._on_phase = on_phase
        self._owners: dict[int, Backend] = {}  # a plug-in's may be unhashable
        self._numbered: dict[int, Sequence[Transfer]] = {}
        for cell in cells:
            cell.definition = known.definition if known else None
            self._owners |= {id(owner): owner for owner in cell.backends}
            self._numbered[repetition.passed + cell.planned.number] = cell.planned.transfers
        self._virtual = [one for one in self._owners.values() if follows(one, SimulatedClock)]  # type: ignore[type-abstract]
        self._copies: list[Copy] = []

    def carry_out(self, pool: BufferPool) -> Repeated:
        self._enter("allocate")
        seed = 1
        for cell in self._cells:
            cell.allocate(pool, seed, self._repetition.number)
            seed += len(cell.copies)
            self._copies += cell.copies
        with closing(self._prepare()) as group:
            for cell in self._cells:
                cell.steps = group.policy.steps
            self._enter("warm up")
            known = self._known.sample if self._known else None
            sample = warm_up(group, self._settings, self._policy(group), self._busy, known)
            # After the warm-up, whose copies must not pass for the samples' work.
            self._enter("fill")
            devices: dict[Memory, HasTelemetry] = {}
            for cell in self._cells:
                cell.fill(pool)
                devices.update(cell.devices)
            self._enter("measure")
            clocks = (one.clock for one in self._owners.values() if follows(one, Clocked))  # type: ignore[type-abstract]
            clock = next(clocks, time.monotonic)
            cpu_clock = None if self._virtual else time.process_time
            # Formed one by one, and only where a profiler asks for them.
            names = (cell.range_name(self._repetition.benchmark) for cell in self._cells)
            with (
                sensing(devices, threaded=not self._virtual) as sensed,
                marked(names, self._profiler),
            ):
                sampled, spent = partial(self._on_phase, "measure"), self._repetition.spent
                taken = take_samples(
                    group, sample, self._settings, clock, sampled, spent, cpu_clock
                )
            self._check(taken.timings)
            last = taken.timings[-1]
            if any(cell.staging for cell in self._cells) and self._settings.verify:
                last = run_once(group, 1)  # staging buffers now hold their final content
            times = self._iterations(group, sample)
            self._enter("verify")
            extra = self._extra(group, times)
            split = self._split((*taken.timings, last))
            results: list[CellResult] = []
            for cell, own in zip(self._cells, split, strict=True):
                readings = tuple(map(sensed.reading, map(str, cell.devices)))
                result = cell.report(taken, own[:-1], own[-1], readings, self._notes, extra)
                results.append(result)
            for cell, result in zip(self._cells, results, strict=True):
                if sample.policy.steady and result.verified:
                    cell.know_contents(pool)
            return Repeated(tuple(results), Known(sample, results[0].definition))

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._on_phase(phase)
        for backend in self._virtual:
            backend.enter(self._numbered, phase, self._repetition.number, self._repetition.taken)

    def _prepare(self) -> Group:
        copies = self._copies
        owners = list(chain.from_iterable(map(attrgetter("backends"), self._cells)))
        operation, workload = self._cells[0].planned.operation, self._cells[0].planned.workload
        if workload is not None:
            if follows(owners[0], Works):  # type: ignore[type-abstract]
                return owners[0].carry_out(copies[0].transfer, workload)
            raise Unsupported(f"backend {owners[0].name} has no AI workloads: torch has")
        places: defaultdict[Backend, list[int]] = defaultdict(list)
        if not self._cells[0].planned.does.is_copy and (
            len(self._cells) > 1 or len(set(owners)) > 1
        ):
            raise Unsupported("latencies are measured one at a time")
        for place, owner in enumerate(owners):
            places[owner].append(place)
        alone = not self._virtual and all(copy.endless for copy in copies)
        group: Group
        if len(places) == 1 and not alone:
            group = owners[0].prepare(copies, operation)
        else:
            from .combined import CombinedGroup  # loaded for several backends alone

            # Host threads last: their endless copies end once the others have.
            ordered = dict(sorted(places.items(), key=lambda one: one[0].name == "host"))
            with ExitStack() as opened:
                groups = [
                    opened.enter_context(closing(backend.prepare([copies[place] for place in own])))
                    for backend, own in ordered.items()
                ]
                lasting = SamplingPolicy().seconds if alone else 0.0
                group = CombinedGroup(groups, tuple(ordered.values()), opened.pop_all(), lasting)
        if any(map(attrgetter("is_tracked"), self._cells)):
            from .combined import TrackedGroup

            return TrackedGroup(group)
        return group

    def _policy(self, group: Group) -> SamplingPolicy:
        """Allows several samples per start signal only if the figure is that of a single copy."""
        planned = self._cells[0].planned
        alone = planned.report is Report.RATE and len(planned.transfers) == 1
        if len(self._cells) == 1 and (planned.report.is_first or alone):
            return group.policy
        return msgspec.structs.replace(group.policy, batches=1)

    def _check(self, timings: Sequence[Timing]) -> None:
        times = [one for timing in timings for one in (timing.span, *timing.seconds)]
        if not isfinite(sum(times)):
            raise BackendError("timing", "the backend's clock gave no finite number of seconds")
        if min(times) <= 0:
            raise BackendError("timing", "too short for the clock: raise --loops")

    def _extra(self, group: Group, times: tuple[RankTimes, ...]) -> Extra:
        problem, wrong = None, None
        if self._settings.verify and follows(group, CheckedGroup):  # type: ignore[type-abstract]
            problem = group.mismatch()
        if self._cells[0].verifies and follows(group, CollectingGroup):  # type: ignore[type-abstract]
            found = group.check()
            wrong = found.count
            elements = "1 element is" if wrong == 1 else f"{wrong} elements are"
            if wrong and problem is None:
                problem = f"{elements} wrong, first element {found.first} of rank {found.rank}"
        done = group.done() if follows(group, Working) else None  # type: ignore[type-abstract]
        return Extra(problem, times, wrong, done)

    def _iterations(self, group: Group, sample: Sample) -> tuple[RankTimes, ...]:
        if not follows(group, CollectingGroup):  # type: ignore[type-abstract]
            return ()
        each = max(sample.seconds / sample.loops, 1e-9)
        most = int(ITERATION_SECONDS / each)
        taken = group.iterations(max(LEAST_ITERATIONS, min(most, MOST_ITERATIONS)))
        return tuple(RankTimes(*own) for own in enumerate(taken))

    def _split(self, timings: Sequence[Timing]) -> list[list[Timing]]:
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
        """Returns the time of the shortest copy that is not endless; of a collective, the mean."""
        if self._cells[0].planned.report is Report.TIME:  # a rank that only sends may be far ahead
            return fmean(timing.seconds)
        timed = zip(timing.seconds, self._copies, strict=True)
        bounded = [seconds for seconds, copy in timed if not copy.endless]
        return min(bounded or timing.seconds)


def _part(timing: Timing, own: slice) -> Timing:
    seconds, progress = timing.seconds[own], timing.progress[own]
    ends = [end for times in progress for end in (*times[:1], *times[-1:])]
    span = max(ends) - min(ends) if ends else max(seconds)
    return Timing(seconds, span, timing.checksums[own], progress)
