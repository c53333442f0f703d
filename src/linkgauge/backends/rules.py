"""Rules that several backends share for refusing transfers. A rule returns or yields a reason, or
raises Unsupported."""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress

from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import PAGE_KINDS, POLICY_KINDS, Memory
from linkgauge.model.operations.operation import Operation, OperationName, named
from linkgauge.model.transfer import FULL_LOAD, Engine, Transfer

from .protocol import Copy


def no_node(memory: Memory, nodes: Collection[int]) -> Iterator[str]:
    """Yields a reason if the machine does not have the NUMA node of a host memory or engine."""
    if memory.index not in nodes:
        known = ", ".join(f"host:{index}" for index in nodes)
        yield f"no node {memory.place}: this machine has {known}"


def of_threads(
    transfer: Transfer, cpus: Mapping[int, Sequence[int]], kinds: Collection[str]
) -> Iterator[str]:
    """Yields the reasons why host threads cannot carry out a transfer. `cpus` has the CPUs of each
    node. `kinds` are the kinds of memory that host threads can use."""
    owner = transfer.engine.owner
    for memory in transfer.memories:
        if not memory.is_host:
            yield f"host threads do not reach {memory}: use an engine of {memory.place}"
        yield from no_node(memory, cpus)
        if memory.kind not in kinds:
            if memory.kind in (*PAGE_KINDS, *POLICY_KINDS):
                yield f"no {memory.kind} memory here"
            yield f"{memory.kind} memory belongs to an accelerator: use one of its engines"
    yield from no_node(owner, cpus)
    count = len(cpus[owner.index or 0])
    if not count:
        yield f"this process may use no CPU of {owner} (cpuset)"
    if transfer.both_ways:
        yield "'<->' is one kernel of a device: join two transfers with '&' instead"
    if (transfer.engine.count or 0) > count:
        yield f"{owner} has {count} usable CPUs"


def of_load(transfer: Transfer) -> Iterator[str]:
    """Yields a reason if the transfer is a load that runs at a share of its full rate. Most
    backends cannot limit a rate."""
    if transfer.load != FULL_LOAD:
        held = "only host threads and CUDA kernels (sm) can limit a transfer to a share of its rate"
        yield f"{held}: {transfer.load}%"


def of_copy_engine(transfer: Transfer) -> Iterator[str]:
    """Yields the reasons why a copy engine cannot carry out a transfer."""
    if transfer.engine.kind == "ce" and len(transfer.memories) < 2:
        yield "ce copies between two memories: a pure read or write needs a kernel (sm)"
    if transfer.engine.kind == "ce" and transfer.both_ways:
        yield "ce copies one way at a time: a copy both ways at once needs a kernel (sm)"


def lacking(name: str, operation: OperationName) -> Unsupported:
    """Returns the exception for an operation that the backend `name` does not have."""
    return Unsupported(f"backend {name} {named(operation).lacking}")


def exchange_refusal(transfer: Transfer, cpus: Container[int | None]) -> str | None:
    """Returns the reason why a cache line cannot bounce between the ends of a transfer, or None if
    it can. `cpus` are the CPUs that this process may use."""
    for memory in transfer.memories:
        if memory.index not in cpus:
            return f"{memory} is absent, or this process may not use it (cpuset, affinity)"
    first, second = transfer.source, transfer.destination
    if first == second:
        return f"a cache line bounces between two CPUs: {first} is one"
    if transfer != Transfer(first, second, Engine(first, "cpu")):
        return f"a cache line bounces by one thread on each CPU: write {first} -> {second}"
    return None


def check_alone(copies: Sequence[Copy]) -> None:
    """Raises Unsupported if there is more than one copy. Some operations can be measured only
    alone."""
    if len(copies) > 1:
        raise Unsupported("latencies are measured one at a time")


def check_copy_engine(copy: Copy) -> Copy:
    """Returns the copy. Raises Unsupported if it is not made by a copy engine."""
    transfer = copy.transfer
    if transfer.engine.kind != "ce" or len(transfer.memories) < 2:
        raise Unsupported(f"{transfer}: only copies by ce are timed one by one")
    return copy


def check_flags(copy: Copy) -> tuple[Memory, Memory]:
    """Returns the two memories between which flags bounce. The first is the host's or a device's,
    and the second a device's. Raises Unsupported if the transfer does not have such memories."""
    transfer = copy.transfer
    kind = transfer.engine.kind
    if kind != "sm" or len(transfer.memories) < 2 or not transfer.destination.is_device:
        what = "flags bounce by a kernel: write HOST -> DEVICE or DEVICE -> DEVICE, by sm"
        raise Unsupported(f"{transfer}: {what}")
    return transfer.source, transfer.destination


def check_exchanges(copies: Sequence[Copy], does: Operation) -> None:
    """Raises Unsupported for a ping-pong of cache lines that is not between two CPUs, and for any
    other operation between CPUs."""
    for copy in copies:
        if copy.transfer.source.is_cpu != does.between_cpus:
            problem = "a line bounces between the caches of CPUs (core_to_core_latency)"
            raise Unsupported(f"{copy.transfer}: {problem}, and nothing else belongs there")


def check_work(copies: Sequence[Copy], does: Operation) -> None:
    """Raises Unsupported if a transfer has no memory but its operation needs one, or the other way
    round. Loads, and copies that run with a computing kernel, are exceptions."""
    for copy in copies[:1] if does.loads_beside else copies:
        if bool(copy.transfer.memories) != does.in_memory:
            problem = f"{does.name} takes no memory" if copy.transfer.memories else "moves nothing"
            where = "null -> null is for cpu_primes_*, gpu_matmul, latency_launch and the like"
            raise Unsupported(f"{copy.transfer}: {problem} ({where})")


# Where the thread that controls the devices runs.


def settle(nodes: Mapping[int, Node], near: int) -> None:
    """Moves this thread to the CPUs of a NUMA node. Does nothing if there is no other node, or if
    the thread may not move."""
    node = nodes.get(near)
    if len(nodes) > 1 and node is not None and node.cpus:
        with suppress(OSError):  # a cpuset may exclude them
            os.sched_setaffinity(0, node.cpus)
