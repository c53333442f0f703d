"""Backend `host`: threads of the native core move bytes between the memories of NUMA nodes.

Memories: `host:N` (pinned: prefaulted and mlocked), `host:N/pageable`, `host:N/huge`. Engine:
`cpu*K`, K threads each pinned to a CPU of the owner's node, started together at a barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice

from linkgauge import _native
from linkgauge.machine.host import read_host
from linkgauge.model.errors import AllocationError, Unsupported
from linkgauge.model.machine import Device, Node
from linkgauge.model.result import EngineSettings, Placement
from linkgauge.model.transfer import Engine, Memory, Transfer
from linkgauge.model.units import approximate_size, format_size

from . import contents
from .base import Backend, Buffer, Copy, Pattern, Timing
from .contents import native_errors

_KINDS = {
    "": _native.Kind.PINNED,
    "pageable": _native.Kind.PAGEABLE,
    "huge": _native.Kind.HUGE,
}


def create(engines: EngineSettings) -> Backend:
    """Threads have no settings of their own: the notation says how many."""
    host = read_host()
    return HostBackend(host.nodes, host.last_level_cache)


class HostBuffer:
    """Host memory of the native core. `address` is where it lies in this process."""

    def __init__(self, memory: Memory, native: _native.Memory, cache: int | None = None) -> None:
        self.memory = memory
        self._native = native
        self._cache = cache or 0
        self.size = native.size
        self.address = native.address
        self._placement = self._placed()
        self.warnings = tuple(self._warn())

    def placement(self) -> Placement:
        return self._placement

    def free(self) -> None:
        self._native.close()

    def _placed(self) -> Placement:
        nodes = self._native.nodes()
        return Placement(
            memory=str(self.memory),
            bytes=self.size,
            node=max(nodes, key=lambda node: nodes[node], default=None),
            locked=None if self.memory.kind == "pageable" else self._native.locked,
            huge_bytes=min(self._native.huge_bytes(), self.size),
        )

    def _warn(self) -> Iterator[str]:
        if self._placement.locked is False:
            yield (
                f"{self.memory} is not locked in memory ({self._native.lock_error}): "
                "raise the memlock limit (ulimit -l)"
            )
        if self._placement.node not in (None, self.memory.index):
            yield f"{self.memory} lies on node {self._placement.node}"
        if self.size < self._cache:
            yield (
                f"{format_size(self.size)} fit into the last-level cache "
                f"({approximate_size(self._cache)}): the figure may be the cache's"
            )


class HostGroup:
    """Copies by threads: one native team, started at a barrier, timed by a monotonic clock."""

    most_loops = 1 << 30

    def __init__(self, jobs: Sequence[_native.Job]) -> None:
        with native_errors("make threads"):
            self._team = _native.Team(jobs)

    def arm(self, loops: int) -> None:
        with native_errors("arm threads"):
            self._team.arm(loops)

    def open(self) -> None:
        with native_errors("start threads"):
            self._team.open()

    def wait(self) -> Timing:
        with native_errors("wait for threads"):
            spans = self._team.wait()
        return Timing(
            seconds=tuple(span.end - span.begin for span in spans),
            span=max(span.end for span in spans) - min(span.begin for span in spans),
            checksums=tuple(span.checksum for span in spans),
        )

    def close(self) -> None:
        self._team.close()


class HostBackend:
    """Host memories and threads. `nodes` are the NUMA nodes that have memory, `cache` the bytes
    of the last-level caches."""

    name = "host"

    def __init__(self, nodes: Sequence[Node], cache: int | None = None) -> None:
        self._cache = cache
        self._nodes = {node.index: node for node in nodes}
        self._all_cpus = tuple(sorted(cpu for node in nodes for cpu in node.cpus))

    def devices(self) -> tuple[Device, ...]:
        return ()

    def refusal(self, transfer: Transfer) -> str | None:
        for memory in transfer.memories:
            if not memory.is_host:
                return f"host threads do not reach {memory}: use an engine of {memory.place}"
            if memory.index not in self._nodes:
                return f"there is no node {memory.place}: this machine has {self._known()}"
            if memory.kind not in _KINDS:
                return f"{memory.kind} memory belongs to an accelerator: use one of its engines"
        node = self._nodes.get(transfer.engine.owner.index or 0)
        if node is None:
            return f"there is no node {transfer.engine.owner}: this machine has {self._known()}"
        if not node.cpus:
            return f"no CPU of {transfer.engine.owner} may be used by this process (cpuset)"
        if transfer.both_ways:
            return "'<->' is one kernel of a device: join two transfers with '&' instead"
        if (transfer.engine.count or 0) > len(node.cpus):
            return f"{transfer.engine.owner} has {len(node.cpus)} CPUs to use"
        return None

    def _known(self) -> str:
        return ", ".join(f"host:{index}" for index in self._nodes)

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        return ()

    def reach(self, memory: Memory, engine: Engine) -> object:
        return memory

    def allocate(self, memory: Memory, size: int, engine: Engine) -> HostBuffer:
        node = self._nodes[memory.index or 0]
        try:
            native = _native.Memory(
                size, _KINDS[memory.kind], node.index, node.cpus or self._all_cpus
            )
        except OSError as error:
            raise AllocationError(
                f"allocate {approximate_size(size)} of {memory}", str(error)
            ) from error
        if not native.bound and len(self._nodes) > 1:
            reason = native.bind_error
            native.close()
            raise Unsupported(f"memory cannot be bound to {memory.place}: {reason}")
        if memory.kind == "huge" and native.huge_bytes() < size:
            had = approximate_size(native.huge_bytes())
            native.close()
            raise Unsupported(
                f"only {had} of {approximate_size(size)} could be had in huge pages: reserve some "
                "(vm.nr_hugepages) or allow transparent ones (madvise)"
            )
        return HostBuffer(memory, native, self._cache)

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        contents.fill(_address(buffer), size, pattern, seed, inverted, self._all_cpus)

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        return contents.first_mismatch(_address(buffer), size, pattern, seed, self._all_cpus)

    def checksum(self, buffer: Buffer, size: int) -> int:
        return contents.checksum(_address(buffer), size, self._all_cpus)

    def prepare(self, copies: Sequence[Copy]) -> HostGroup:
        return HostGroup(
            [_job(copy, cpus) for copy, cpus in zip(copies, self._place(copies), strict=True)]
        )

    def _place(self, copies: Sequence[Copy]) -> list[tuple[int, ...]]:
        """CPUs of each copy's threads: copies of one node take turns over its CPUs, and those
        that ask for no number share what there is evenly."""
        owners = [copy.transfer.engine.owner.index or 0 for copy in copies]
        turns = {node: cycle(self._nodes[node].cpus) for node in set(owners)}
        placed = []
        for copy, node in zip(copies, owners, strict=True):
            share = max(1, len(self._nodes[node].cpus) // owners.count(node))
            placed.append(tuple(islice(turns[node], copy.transfer.engine.count or share)))
        return placed

    def close(self) -> None:
        """Buffers are freed by whoever holds them; the backend itself holds nothing."""


def _job(copy: Copy, cpus: Sequence[int]) -> _native.Job:
    operation = _native.Op.COPY
    if copy.source is None:
        operation = _native.Op.WRITE
    elif copy.destination is None:
        operation = _native.Op.READ
    return _native.Job(
        operation, _address(copy.source), _address(copy.destination), copy.size, copy.seed, cpus
    )


def _address(buffer: Buffer | None) -> int:
    """Where the buffer lies; 0 for the `null` end of a pure read or write."""
    return buffer.address if isinstance(buffer, HostBuffer) else 0
