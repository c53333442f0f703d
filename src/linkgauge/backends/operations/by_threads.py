"""Searches for primes by host threads, as in sysbench's cpu test, and times first touches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Protocol, TypeGuard

from msgspec.structs import replace

from linkgauge import _native
from linkgauge.backends.native import counters_of, native_errors
from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Buffer, Copy, Gated, SamplingPolicy, Timing
from linkgauge.backends.rules import check_alone
from linkgauge.machine.cpu_time import steal_seconds
from linkgauge.machine.tree import ROOT
from linkgauge.model.counters import Counters, ThreadSteps, total
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.operations.operation import PRIMES, Operation
from linkgauge.model.transfer import Transfer

FOUND = {10_000: 1228, 20_000: 2261}
"""The number of primes from 3 to each limit."""
LEAST_RATE = 1e-12
"""The rate in events per second of threads that started too late for any event."""


class PrimesGroup(Gated):
    """A search for primes by trial division. `placed` has the CPUs of each transfer's threads. An
    event is a test of all numbers up to `limit`."""

    policy = SamplingPolicy(seconds=0.25, loops=1)

    def __init__(self, placed: Sequence[Sequence[int]], limit: int) -> None:
        self._placed = placed
        self._limit = limit
        self._cpus = [cpu for cpus in placed for cpu in cpus]

    def wait(self) -> Timing:
        """Returns times. Raises BackendError if a thread found a wrong number of primes."""
        loops, batches = self.pass_gate()
        events = loops * batches
        before = steal_seconds(ROOT, self._cpus)
        with native_errors("search for primes"):  # threads share a counter, to end together
            threads = _native.find_primes(self._cpus, self._limit, events * len(self._placed))
        steal = _passed(before, steal_seconds(ROOT, self._cpus))
        for cpu, thread in zip(self._cpus, threads, strict=True):
            if thread.found != FOUND[self._limit] * thread.events:
                problem = f"CPU {cpu} found {thread.found} primes in {thread.events} events"
                raise BackendError("search for primes", f"{problem} of {FOUND[self._limit]} each")
        span = max(one.end for one in threads) - min(one.begin for one in threads)
        each = iter(threads)
        rates = [_rate(islice(each, len(cpus))) for cpus in self._placed]
        return Timing(
            seconds=tuple(events / rate for rate in rates),
            span=span,
            checksums=(None,) * len(rates),
            progress=((0.0, span),) * len(rates),
            counters=replace(self._counters(threads), steal=steal),
        )

    def _counters(self, threads: Sequence[_native.PrimesThread]) -> Counters:
        counted = (
            replace(
                counters_of(thread.counts),
                threads=(
                    ThreadSteps(
                        cpu, thread.events, thread.end - thread.begin, thread.counts.involuntary
                    ),
                ),
            )
            for cpu, thread in zip(self._cpus, threads, strict=True)
        )
        return total(counted) or Counters()


def _passed(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else round(after - before, 6)


def _rate(threads: Iterable[_native.PrimesThread]) -> float:
    # The time in which a thread waits for others does not count.
    own = (one.events / max(one.end - one.begin, 1e-9) for one in threads)
    return max(sum(own), LEAST_RATE)


def primes(on: Offering, copies: Sequence[Copy], does: Operation) -> PrimesGroup:
    (limit,) = (most for name, most in PRIMES.items() if name == does.name)
    return PrimesGroup(on.threads(copies), limit)


KINDS = ("pageable", "base", "thp", "hugetlb")
"""Kinds of host memory whose pages are not locked, so that they can be returned to the kernel."""


class Touchable(Protocol):
    size: int
    address: int

    def touched(self) -> None:
        """Raises Unsupported if the touched pages are not of the size that the kind should have."""


class TouchGroup(Gated):
    """Times first touches of pages. Each sample first frees the pages, so their content is lost."""

    policy = SamplingPolicy(loops=1)

    def __init__(self, transfer: Transfer, buffer: Buffer | None, cpus: Sequence[int]) -> None:
        if not transfer.source.is_null or not _is_touchable(buffer, transfer):
            kinds = ", ".join(KINDS)
            problem = f"a first touch writes to unlocked host memory ({kinds})"
            raise Unsupported(f"{transfer}: {problem}: write null -> host:0/base by cpu")
        self._buffer = buffer
        self._cpus = tuple(cpus)

    def wait(self) -> Timing:
        """Raises BackendError if fresh memory is not zero, Unsupported if page sizes are wrong."""
        loops, batches = self.pass_gate()
        buffer = self._buffer
        with native_errors("touch fresh memory"):
            times = _native.first_touch(buffer.address, buffer.size, self._cpus, loops, batches)
        buffer.touched()
        return Timing.of_one(times)


def _is_touchable(buffer: Buffer | None, transfer: Transfer) -> TypeGuard[Touchable]:
    return hasattr(buffer, "touched") and transfer.destination.kind in KINDS


def touch(on: Offering, copies: Sequence[Copy], does: Operation) -> TouchGroup:
    check_alone(copies)
    return TouchGroup(copies[0].transfer, copies[0].destination, on.threads(copies)[0])
