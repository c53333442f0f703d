"""Decides what torch cannot measure, and writes remarks for the user.

The functions never call torch, so that all rules can be tested without devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.backends.rules import Reason, Rule, no_node, of_copy_engine, of_load, refused
from linkgauge.model.errors import NoPeerAccess
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import STAGING, Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Transfer

SPACE = "torch"
NO_READS = "torch has no operation that only reads memory and tells what it has read"
HOST_CLOCK = "timed by the host's clock, until the device has finished: its calls count"


class TorchFacts(msgspec.Struct, frozen=True):
    """Facts about a device.

    `type` is torch's name for its kind (`cuda` also for AMD's GPUs). `peers` are the devices whose
    memory it can reach. `gated` says that work can wait at a gate (start signal) and be timed by
    events. `binds` says that pinned memory can be on a chosen NUMA node, because torch can pin
    existing memory."""

    device: Device
    type: str
    peers: tuple[str, ...] = ()
    gated: bool = False
    binds: bool = True

    @property
    def memory(self) -> Memory:
        return parse_memory(self.device.memory)


def known_by(facts: Sequence[TorchFacts]) -> dict[Memory, TorchFacts]:
    """Returns the facts by the names of the devices' memories."""
    return {fact.memory: fact for fact in facts}


def refusal(transfer: Transfer, facts: Sequence[TorchFacts], nodes: Sequence[int]) -> Reason | None:
    """Returns the reason why the transfer cannot be carried out, or None if it can. `nodes` are the
    host's NUMA nodes."""
    return refused(_rules(transfer, known_by(facts), nodes))


def remarks(transfer: Transfer, facts: Sequence[TorchFacts]) -> tuple[str, ...]:
    """Returns remarks: events do not measure the time of the transfer, or both ends are in the same
    DRAM. The transfer must be one that `refusal` accepts."""
    return tuple(_remarks(transfer, known_by(facts)))


def is_gated(transfer: Transfer, owner: TorchFacts) -> bool:
    """Whether the transfer can wait at a gate (start signal) and be timed by events. Copies of
    pageable memory cannot, because they block this thread."""
    return owner.gated and not any(memory.kind == "pageable" for memory in transfer.memories)


def _remarks(transfer: Transfer, known: dict[Memory, TorchFacts]) -> Iterator[str]:
    owner = known[transfer.engine.owner]
    if not is_gated(transfer, owner):
        yield HOST_CLOCK
    if not transfer.memories:
        yield f"products by torch.matmul ({owner.device.notes[0]})"
    places = {memory.place for memory in transfer.memories}
    shared = all(not p.is_device or known[p].device.shares_host_memory for p in places)
    if len(places) > 1 and shared:
        one, other = sorted(map(str, places))
        yield f"{one} and {other} share one DRAM"


def _rules(
    transfer: Transfer, known: dict[Memory, TorchFacts], nodes: Sequence[int]
) -> Iterator[tuple[object, Reason]]:
    engine, ends = transfer.engine, transfer.memories
    here = ", ".join(map(str, known))
    for memory in (*ends, engine.owner):
        place = memory.place
        other = f"{place} belongs to another process: torch has no memory across processes"
        yield memory.rank is not None, other
        if memory.is_host:
            yield no_node(memory, nodes)
        else:
            yield memory.backend != SPACE, f"torch does not reach {place}"
            yield memory not in known, f"no {place} here: there is {here}"
    yield of_load(transfer)
    yield from of_copy_engine(transfer)
    by_threads = f"only a device of torch can do this, not {engine.owner}: host threads do"
    yield not engine.owner.is_device, by_threads
    several = "mpiexec -n 2 linkgauge run all_reduce --backend torch"
    for_each = f"collectives by torch take a process for each device: {several}"
    yield engine.kind not in ("ce", "sm"), for_each
    one_way = "torch copies one way at a time: join two transfers with '&' instead"
    yield transfer.both_ways, one_way
    devices = {memory.place for memory in ends if memory.is_device}
    beyond = len(devices) > 1 or any(memory.is_host for memory in ends)
    own = "kernels of torch reach the memory of their own device alone: use ce"
    yield engine.kind == "sm" and beyond, own
    yield len(ends) == 1 and transfer.destination.is_null, NO_READS
    neither = "neither end is the memory of a device of torch"
    yield len(ends) == 2 and not devices, neither
    neither = f"{engine.owner} holds neither end: torch copies on one of the two"
    yield devices and engine.owner.place not in devices, neither
    owner = known[engine.owner]
    for memory in ends:
        if memory.is_host:
            yield from _host_rules(memory, owner, len(nodes))
    if len(devices) == 2:
        yield from _pair_rules(transfer, owner.peers)


def _host_rules(memory: Memory, owner: TorchFacts, nodes: int) -> Iterator[Rule]:
    kind, device = memory.kind, owner.device
    known = ("", "pageable", "huge", STAGING)
    yield kind not in known, f"torch has no {kind} host memory"
    if not owner.binds and kind != "pageable":
        itself = f"torch allocates pinned memory for {owner.type} itself"
        yield kind != "", f"{itself}: use host:N or host:N/pageable"
        # Whoever allocates places: only near the device does the label match.
        near = f"only host:{device.near}, nearest to {device.memory}, can be measured"
        unbound = f"torch cannot bind pinned memory for {owner.type} to a node: {near}"
        yield nodes > 1 and memory.index != device.near, unbound


def _pair_rules(transfer: Transfer, peers: Sequence[str]) -> Iterator[tuple[object, Reason]]:
    source, destination = transfer.source, transfer.destination
    apart = source.space != destination.space
    yield apart, f"torch copies from {source} to {destination} by way of the host"
    alone = f"torch copies between devices on a stream of the source ({source}): a write alone"
    yield transfer.engine.owner != source, alone
    unreached = f"no peer access from {source} to {destination}: torch uses the host"
    yield str(destination) not in peers, NoPeerAccess(unreached)
