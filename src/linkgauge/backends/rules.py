"""How backends refuse transfers: by rules, each of which is a condition and a reason."""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.machine import Device, Node
from linkgauge.model.memory import PAGE_KINDS, POLICY_KINDS, Memory
from linkgauge.model.operations.operation import Operation, OperationName, named
from linkgauge.model.transfer import FULL_LOAD, Engine, Transfer

from .protocol import Copy

Reason = str | Unsupported
_Reason = TypeVar("_Reason", bound=Reason)
Rule = tuple[object, str]
"""A condition, and the reason for which a transfer is refused if the condition is true."""


def refused(rules: Iterable[tuple[object, _Reason]]) -> _Reason | None:
    """Returns the reason of the first rule that applies, or None. Later rules are not evaluated."""
    return next((reason for applies, reason in rules if applies), None)


def no_node(memory: Memory, nodes: Collection[int]) -> Rule:
    if memory.index in nodes:  # a large cluster has thousands, whose names take time
        return False, ""
    known = ", ".join(f"host:{index}" for index in nodes)
    return True, f"no node {memory.place}: this machine has {known}"


def of_threads(
    transfer: Transfer, cpus: Mapping[int, Sequence[int]], kinds: Collection[str]
) -> Iterator[Rule]:
    owner = transfer.engine.owner
    for memory in transfer.memories:
        place, kind = memory.place, memory.kind
        yield not memory.is_host, f"host threads do not reach {memory}: use an engine of {place}"
        yield no_node(memory, cpus)
        if kind not in kinds:
            yield kind in (*PAGE_KINDS, *POLICY_KINDS), f"this machine has no {kind} memory"
            yield True, f"{kind} memory belongs to an accelerator: use one of its engines"
    yield no_node(owner, cpus)
    count = len(cpus[owner.index or 0])
    yield not count, f"this process may use no CPU of {owner} (cpuset)"
    one_way = "'<->' is one kernel of a device: join two transfers with '&' instead"
    yield transfer.both_ways, one_way
    yield (transfer.engine.count or 0) > count, f"{owner} has {count} usable CPUs"


def of_places(
    transfer: Transfer, library: str, devices: Collection[Memory], nodes: Collection[int]
) -> Iterator[Rule]:
    """Yields rules that refuse memories of other processes, or that the library cannot access."""
    for memory in (*transfer.memories, transfer.engine.owner):
        place = memory.place
        other = f"{place} belongs to another process: {library} has no memory across processes"
        yield memory.rank is not None, other
        if memory.is_host:
            yield no_node(memory, nodes)
        else:
            known = {device.backend for device in devices}
            yield place.backend not in known, f"{library} does not reach {place}"
            there = ", ".join(map(str, devices))
            yield place not in devices, f"no {place} here: there is {there}"
    yield of_load(transfer)


def of_ends(transfer: Transfer, device: str) -> Iterator[Rule]:
    """Yields rules that refuse an engine that is not a device's, and a copy without an end in the
    memory of the engine's device. `device` names such devices in sentences."""
    owner, places = transfer.engine.owner, [memory.place for memory in transfer.memories]
    yield not owner.is_device, f"only {device} can do this, not {owner}"
    copies = len(places) > 1
    neither = not any(place.is_device for place in places)
    yield copies and neither, f"neither end is the memory of {device}"
    yield (
        copies and owner not in places,
        f"{owner} holds neither end: a copy runs on one of the two",
    )


def unbound(problem: str, memory: Memory, device: Device, nodes: int) -> Rule:
    """Returns a rule that refuses a memory on any node but the nearest one. `problem` says why."""
    near = f"only host:{device.near}, nearest to {device.memory}, can be measured"
    return nodes > 1 and memory.index != device.near, f"{problem} to a node: {near}"


def one_dram(places: Iterable[Memory], devices: Iterable[Device]) -> Iterator[str]:
    sharing = {device.memory for device in devices if device.shares_host_memory}
    names = sorted({str(place) for place in places})
    if len(names) > 1 and all(name in sharing or name.startswith("host:") for name in names):
        yield f"{names[0]} and {names[1]} share one DRAM"


def of_load(transfer: Transfer) -> Rule:
    """Returns a rule for backends that cannot limit rates. It refuses loads below the full rate."""
    held = "only host threads and CUDA kernels (sm) can limit a transfer to a share of its rate"
    return transfer.load != FULL_LOAD, f"{held}: {transfer.load}%"


def of_copy_engine(transfer: Transfer) -> Iterator[Rule]:
    if transfer.engine.kind == "ce":
        alone = "ce copies between two memories: a pure read or write needs a kernel (sm)"
        yield len(transfer.memories) < 2, alone
        both = "ce copies one way at a time: a copy both ways at once needs a kernel (sm)"
        yield transfer.both_ways, both


def of_exchange(transfer: Transfer, cpus: Container[int | None]) -> Iterator[Rule]:
    first, second = transfer.source, transfer.destination
    for memory in transfer.memories:
        here = memory.index in cpus
        yield not here, f"{memory} is absent, or this process may not use it (cpuset, affinity)"
    yield first == second, f"a cache line bounces between two CPUs: {first} is one"
    how = f"write {first} -> {second}"
    other = transfer != Transfer(first, second, Engine(first, "cpu"))
    yield other, f"a cache line bounces by one thread on each CPU: {how}"


def of_part(transfer: Transfer) -> Rule:
    part = "a rank's part of a collective starts and ends in its own memory"
    own = transfer.engine.owner
    within = transfer == Transfer(own, own, transfer.engine, transfer.scale)
    return not within, f"{transfer}: {part}"


def lacking(name: str, operation: OperationName) -> Unsupported:
    return Unsupported(f"backend {name} {named(operation).lacking}")


def check_alone(copies: Sequence[Copy]) -> None:
    """Raises Unsupported for several copies, because latencies are measured one at a time."""
    if len(copies) > 1:
        raise Unsupported("latencies are measured one at a time")


def check_copy_engine(copy: Copy) -> Copy:
    transfer = copy.transfer
    if transfer.engine.kind != "ce" or len(transfer.memories) < 2:
        raise Unsupported(f"{transfer}: only copies by ce are timed one by one")
    return copy


def check_flags(copy: Copy) -> tuple[Memory, Memory]:
    """Returns the ends of a flag ping-pong. Raises Unsupported if the transfer cannot be one."""
    transfer = copy.transfer
    kind = transfer.engine.kind
    if kind != "sm" or len(transfer.memories) < 2 or not transfer.destination.is_device:
        what = "flags bounce by a kernel: write HOST -> DEVICE or DEVICE -> DEVICE, by sm"
        raise Unsupported(f"{transfer}: {what}")
    return transfer.source, transfer.destination


def check_exchanges(copies: Sequence[Copy], does: Operation) -> None:
    """Raises Unsupported unless all copies start at CPUs (for a ping-pong of a cache line between
    CPUs) or none does (for any other operation)."""
    for copy in copies:
        if copy.transfer.source.is_cpu != does.between_cpus:
            problem = "a line bounces between the caches of CPUs (core_to_core_latency)"
            raise Unsupported(f"{copy.transfer}: {problem}, and nothing else belongs there")


def check_work(copies: Sequence[Copy], does: Operation) -> None:
    """Raises Unsupported if a copy's memories do not suit the operation. Loads are not checked."""
    for copy in copies[:1] if does.concurrent_loads else copies:
        if bool(copy.transfer.memories) != does.in_memory:
            problem = f"{does.name} takes no memory" if copy.transfer.memories else "moves nothing"
            where = "null -> null is for cpu_primes_*, gpu_matmul, latency_launch and the like"
            raise Unsupported(f"{copy.transfer}: {problem} ({where})")


# Where the thread that controls the devices runs.


def settle(nodes: Mapping[int, Node], near: int) -> None:
    """Moves this thread to CPUs of node `near`, if Linux permits it and there are other nodes."""
    node = nodes.get(near)
    if len(nodes) > 1 and node is not None and node.cpus:
        with suppress(OSError):  # a cpuset may exclude them
            os.sched_setaffinity(0, node.cpus)
