"""The backend `host`: threads on CPUs move bytes between the memories of NUMA nodes. `host:N` is
pinned (prefaulted and mlocked), `host:N/pageable` is not. Other memories are named by kind of page:
`/huge`, `/base` (not huge), `/thp`, `/hugetlb`; or by placement policy: `/preferred`,
`/interleave`, `/weighted`. The engine `cpu*K` is K threads, pinned to CPUs of its node."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle, islice

import msgspec

from linkgauge import _native
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.hardware.machine import Device, Host, Node
from linkgauge.model.memory import Memory
from linkgauge.model.notes import NearCache, Note
from linkgauge.model.operations.operation import (
    ARRAY_NAMES,
    PRIMES,
    PRODUCT_NAMES,
    ArrayWork,
    Operation,
)
from linkgauge.model.operations.workload import Workload
from linkgauge.model.settings import EngineSettings
from linkgauge.model.transfer import FULL_LOAD, Engine, Transfer
from linkgauge.registry import operation

from . import host_chase, native
from .host_kernels import Chosen, Kernels, kernels_of, linear, name_of
from .host_matmul import HostProducts
from .host_memory import NodeMemory
from .host_search import BEYOND
from .native import counters_of, native_errors
from .offering import Offering
from .protocol import (
    Addressed,
    Backend,
    Buffer,
    Copy,
    Gated,
    Group,
    Pattern,
    SamplingPolicy,
    Timing,
)
from .rules import of_exchange, of_threads, refused


def create(engines: EngineSettings, host: Host) -> Backend:
    return HostBackend(host.nodes, kernels_of(engines, host.nodes))


class HostBuffer(NodeMemory):
    def __init__(
        self, memory: Memory, size: int, node: Node, cpus: Sequence[int], nodes: Sequence[int]
    ) -> None:
        super().__init__(memory, size, node.index, len(nodes) == 1, cpus, nodes=nodes)
        self.cycle: int | None = None
        """The bytes through which a cycle of pointers leads, or None if there is no cycle."""
        self.warnings = tuple(self._warn(nodes))
        self._cache = node.last_level_cache or 0

    def touched(self) -> None:
        huge = min(self.pages.huge_bytes(), self.size)
        self.placed = msgspec.structs.replace(self.placed, huge_bytes=huge)
        for reason in native.not_of_pages(native.KINDS[self.memory.kind], huge, self.size):
            raise Unsupported(reason)

    def _warn(self, nodes: Sequence[int]) -> Iterator[str]:
        if self.placed.locked is False:
            yield (
                f"{self.memory} is not locked in memory ({self.pages.lock_error}): "
                "raise the memlock limit (ulimit -l)"
            )
        yield from self.warnings
        if self.memory.kind == "interleave":
            yield from native.unevenly(self.placed, nodes)

    def link(self, size: int, seed: int, cpu: int) -> None:
        """Links lines into a random cycle of pointers. Raises BackendError if it misses lines."""
        if self.cycle == size:
            return
        with native_errors("link pointers"):
            _native.link_cycle(self.address, size, (seed + self.address) % (1 << 64), cpu)
            found = _native.cycle_length(self.address, size, cpu)
        if found != size // _native.LINK:
            problem = f"a cycle of {found} lines instead of {size // _native.LINK}"
            raise BackendError("link pointers", problem)
        self.cycle = size

    def near_cache(self) -> Iterator[NearCache]:
        if self.size < BEYOND * self._cache:
            yield NearCache(self.size, self._cache, BEYOND)


class HostGroup:
    most_loops = 1 << 30

    def __init__(
        self,
        jobs: Sequence[_native.Job],
        policy: SamplingPolicy = SamplingPolicy(),  # noqa: B008
    ) -> None:
        self.policy = policy
        with native_errors("make threads"):
            self._team = _native.Team(jobs)
        self._loops = 0
        self._opened = 0.0

    def arm(self, loops: int, batches: int = 1) -> None:
        with native_errors("arm threads"):
            self._team.arm(loops, batches)
        self._loops = loops * batches

    def open(self) -> None:
        self._opened = time.monotonic()
        with native_errors("start threads"):
            self._team.open()

    def wait(self) -> Timing:
        with native_errors("wait for threads"):
            spans = self._team.wait()
        # The times of an endless copy are those that its loops would have taken; 1 of others.
        scales = [self._loops / span.passes for span in spans]
        return Timing(
            seconds=tuple(
                (span.end - span.begin) * scale for span, scale in zip(spans, scales, strict=True)
            ),
            span=max(span.end for span in spans) - min(span.begin for span in spans),
            checksums=tuple(span.checksum for span in spans),
            progress=tuple(
                tuple(span.begin - self._opened + (at - span.begin) * scale for at in span.progress)
                for span, scale in zip(spans, scales, strict=True)
            ),
            counters=counters_of(self._team.counts()),
        )

    def close(self) -> None:
        self._team.close()


class PingPongGroup(Gated):
    """A ping-pong: two CPUs bounce a cache line."""

    policy = SamplingPolicy(seconds=2e-5, loops=1, batches=32, steps=2)

    def __init__(self, transfer: Transfer) -> None:
        self._cpus = transfer.source.index or 0, transfer.destination.index or 0

    def wait(self) -> Timing:
        loops, batches = self.pass_gate()
        with native_errors("bounce a cache line"):
            times, bounces, counts = _native.ping_pong(*self._cpus, loops, batches)
        if bounces != 2 * loops * batches:
            problem = f"{bounces} bounces instead of {2 * loops * batches}"
            raise BackendError("bounce a cache line", problem)
        return Timing.of_one(times, counters_of(counts))


class HostBackend(Offering):
    name = "host"
    carried = ("copy", "chase", "ping-pong", *PRIMES, "touch", *ARRAY_NAMES, *PRODUCT_NAMES)
    has_own_arrays = False

    def __init__(self, nodes: Sequence[Node], kernels: Kernels | None = None) -> None:
        self._kernels = kernels or Kernels()
        self._chosen: dict[Transfer, tuple[_native.Op, Chosen]] = {}
        """The kernels of the group prepared last."""
        self._nodes = {node.index: node for node in nodes}
        self._all_cpus = tuple(sorted(cpu for node in nodes for cpu in node.cpus))
        self._said: dict[Transfer, tuple[str | Note, ...]] = {}
        """The remarks on each transfer of the group prepared last."""

    def devices(self) -> tuple[Device, ...]:
        return ()

    def refusal(self, transfer: Transfer) -> str | None:
        if transfer.source.is_cpu:
            return refused(of_exchange(transfer, self._all_cpus))
        cpus = {index: node.cpus for index, node in self._nodes.items()}
        return refused(of_threads(transfer, cpus, native.KINDS))

    def ready(self, does: Operation, transfers: int) -> None:
        concurrent_chase = does.follows_pointers and transfers > 1
        if does.is_copy or does.mode == "peak" or concurrent_chase:
            self._kernels.prepare()

    def remarks(self, transfer: Transfer) -> tuple[str | Note, ...]:
        return self._said.get(transfer, ())

    def _way(self, transfer: Transfer) -> str:
        op, chosen = self._chosen[transfer]
        return f"{transfer.engine.owner}.cpu: {name_of(op)} by {chosen.kernel}, {chosen.why}"

    def reach(self, memory: Memory, engine: Engine) -> object:
        return memory

    def allocate(self, memory: Memory, size: int, engine: Engine) -> HostBuffer:
        node = self._nodes[memory.index or 0]
        return HostBuffer(memory, size, node, node.cpus or self._all_cpus, tuple(self._nodes))

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        _forget_cycle(buffer)
        native.fill(_address(buffer), size, pattern, seed, inverted, self._all_cpus)

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        return native.first_mismatch(_address(buffer), size, pattern, seed, self._all_cpus)

    def checksum(self, buffer: Buffer, size: int) -> int:
        return native.checksum(_address(buffer), size, self._all_cpus)

    def carry_out(self, transfer: Transfer, workload: Workload) -> Group:
        """Prepares an AI workload. Raises Unsupported if it needs a device."""
        group: Group = operation("host.workload")(workload)
        return group

    def begin(self, copies: Sequence[Copy], does: Operation) -> None:
        self._chosen, self._said = {}, {}
        for copy in copies:
            _forget_cycle(copy.destination)

    def exchanging(self, copy: Copy) -> PingPongGroup:
        return PingPongGroup(copy.transfer)

    def multiplying(self, copies: Sequence[Copy], does: Operation) -> tuple[Group, HostProducts]:
        threads = list(map(len, self.threads(copies)))
        products = HostProducts(does.name, threads, copies[0].size, copies[0].seed)
        self._said = dict.fromkeys((c.transfer for c in copies), (products.describe(),))
        return products, products

    def moving(self, copies: Sequence[Copy], does: Operation) -> HostGroup:
        placed = list(zip(copies, self.threads(copies), strict=True))
        threads: Counter[Memory] = Counter()
        for copy, cpus in placed:
            threads[copy.transfer.engine.owner] += len(cpus)
        self._choose(placed, does.array)
        for copy in copies:
            transfer, owner = copy.transfer, copy.transfer.engine.owner
            has, count = len(self._nodes[owner.index or 0].cpus), threads[owner]
            oversubscription = [f"{owner}: {count} threads share {has} CPUs"] if count > has else ()
            self._said[transfer] = (*_near_cache(copy), self._way(transfer), *oversubscription)
        return HostGroup([self._job(*pair) for pair in placed])

    def chasing(self, copies: Sequence[Copy], does: Operation) -> HostGroup:
        host_chase.check(copies)
        placed = host_chase.place(copies, self._nodes)
        first, others = copies[0], list(zip(copies[1:], placed[1:], strict=True))
        (cpu,), buffer = placed[0], first.source
        if not isinstance(buffer, HostBuffer):
            raise Unsupported(f"{first.transfer}: host threads chase through their own memory")
        self._choose(others)
        self._said = {copy.transfer: (self._way(copy.transfer),) for copy, _ in others}
        if first.transfer.scale == 1:  # all of a buffer: no point of a curve through the caches
            self._said[first.transfer] = tuple(buffer.near_cache())
        buffer.link(first.size, first.seed, cpu)
        chase = host_chase.chase_job(first, buffer.address, cpu)
        warm_up = host_chase.warm_up_loops(first.size, _native.last_level_cache([cpu]))
        most = host_chase.rates([chase, *(self._job(*o, math.inf) for o in others)], warm_up)[1:]
        held = (
            self._job(*other, math.inf if load == FULL_LOAD else rate * load / FULL_LOAD)
            for other, rate in zip(others, most, strict=True)
            for load in (other[0].transfer.load,)
        )
        return HostGroup([chase, *held], host_chase.POLICY)

    def _choose(
        self, placed: Sequence[tuple[Copy, Sequence[int]]], work: ArrayWork | None = None
    ) -> None:
        self._chosen = {}
        for copy, cpus in placed:
            op = _op(copy.transfer, work)
            by_stream = work is not None and work.mode == "stream"
            chosen = linear(op) if by_stream else self._kernels.choose(op, cpus, copy.size)
            self._chosen[copy.transfer] = op, chosen

    def _job(self, copy: Copy, cpus: Sequence[int], rate: float = 0) -> _native.Job:
        ends = _address(copy.source), _address(copy.destination)
        op, chosen = self._chosen[copy.transfer]
        size, seed, kernel = copy.size, copy.seed, chosen.kernel
        with native_errors(f"prepare threads for {copy.transfer}"):
            return _native.Job(
                op, *ends, size, seed, cpus, copy.endless, kernel, rate=rate, tracked=copy.tracked
            )

    def threads(self, copies: Sequence[Copy]) -> list[tuple[int, ...]]:
        """Returns each copy's CPUs. Copies without a number of threads share their node's CPUs."""
        owners = [copy.transfer.engine.owner.index or 0 for copy in copies]
        turns = {node: cycle(self._nodes[node].cpus) for node in set(owners)}
        placed = []
        for copy, node in zip(copies, owners, strict=True):
            share = max(1, len(self._nodes[node].cpus) // owners.count(node))
            placed.append(tuple(islice(turns[node], copy.transfer.engine.count or share)))
        return placed

    def close(self) -> None:
        """Does nothing, because the owner of each buffer frees it."""


def _op(transfer: Transfer, work: ArrayWork | None = None) -> _native.Op:
    if work is not None:
        return _native.Op[work.kind.upper()]
    if transfer.source.is_null:
        return _native.Op.WRITE
    return _native.Op.READ if transfer.destination.is_null else _native.Op.COPY


def _forget_cycle(buffer: Buffer | None) -> None:
    if isinstance(buffer, HostBuffer):
        buffer.cycle = None


def _near_cache(copy: Copy) -> Iterator[NearCache]:
    for buffer in (copy.source, copy.destination):
        if isinstance(buffer, HostBuffer):
            yield from buffer.near_cache()


def _address(buffer: Buffer | None) -> int:
    return buffer.address if isinstance(buffer, Addressed) else 0
