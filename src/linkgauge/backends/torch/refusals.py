"""Decides what torch cannot measure, and writes remarks for the user.

The functions never call torch, so that all rules can be tested without devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.backends.rules import no_node, of_copy_engine, of_load
from linkgauge.model.errors import NoPeerAccess, Unsupported
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


def refusal(
    transfer: Transfer, facts: Sequence[TorchFacts], nodes: Sequence[int]
) -> str | Unsupported | None:
    """Returns the reason why the transfer cannot be carried out, or None if it can. `nodes` are the
    host's NUMA nodes."""
    return next(_reasons(transfer, known_by(facts), nodes), None)


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


def _reasons(
    transfer: Transfer, known: dict[Memory, TorchFacts], nodes: Sequence[int]
) -> Iterator[str | Unsupported]:
    for memory in (*transfer.memories, transfer.engine.owner):
        yield from _unreachable(memory, known, nodes)
    yield from of_load(transfer)
    yield from of_copy_engine(transfer)
    yield from _wrong_engine(transfer)
    owner = known[transfer.engine.owner]
    for memory in transfer.memories:
        if memory.is_host:
            yield from _host_reasons(memory, owner, len(nodes))
    yield from _pair_reasons(transfer, owner)


def _unreachable(
    memory: Memory, known: dict[Memory, TorchFacts], nodes: Sequence[int]
) -> Iterator[str]:
    if memory.rank is not None:
        yield f"{memory.place} belongs to another process: torch has no memory across processes"
    elif memory.is_host:
        yield from no_node(memory, nodes)
    elif memory.backend != SPACE:
        yield f"torch does not reach {memory.place}"
    elif memory not in known:
        yield f"no {memory.place} here: there is {', '.join(map(str, known))}"


def _wrong_engine(transfer: Transfer) -> Iterator[str]:
    engine, ends = transfer.engine, transfer.memories
    if not engine.owner.is_device:
        yield f"only a device of torch can do this, not {engine.owner}: host threads do"
    if engine.kind not in ("ce", "sm"):
        several = "mpiexec -n 2 linkgauge run all_reduce --backend torch"
        yield f"collectives by torch take a process for each device: {several}"
    if transfer.both_ways:
        yield "torch copies one way at a time: join two transfers with '&' instead"
    devices = {memory.place for memory in ends if memory.is_device}
    if engine.kind == "sm" and (len(devices) > 1 or any(memory.is_host for memory in ends)):
        yield "kernels of torch reach the memory of their own device alone: use ce"
    if len(ends) == 1 and transfer.destination.is_null:
        yield NO_READS
    if len(ends) == 2 and not devices:
        yield "neither end is the memory of a device of torch"
    if devices and engine.owner.place not in devices:
        yield f"{engine.owner} holds neither end: torch copies on one of the two"


def _host_reasons(memory: Memory, owner: TorchFacts, nodes: int) -> Iterator[str]:
    if memory.kind not in ("", "pageable", "huge", STAGING):
        yield f"torch has no {memory.kind} host memory"
    if owner.binds or memory.kind == "pageable":
        return
    if memory.kind != "":
        itself = f"torch allocates pinned memory for {owner.type} itself"
        yield f"{itself}: use host:N or host:N/pageable"
    if nodes > 1 and memory.index != owner.device.near:
        # Whoever allocates places: only near the device does the label match.
        yield (
            f"torch cannot bind pinned memory for {owner.type} to a node: only "
            f"host:{owner.device.near}, nearest to {owner.device.memory}, can be measured"
        )


def _pair_reasons(transfer: Transfer, owner: TorchFacts) -> Iterator[str | Unsupported]:
    devices = [memory for memory in transfer.memories if memory.is_device]
    if len(devices) < 2 or devices[0] == devices[1]:
        return
    source, destination = devices
    if source.space != destination.space:
        yield f"torch copies from {source} to {destination} by way of the host"
    elif transfer.engine.owner != source:
        yield f"torch copies between devices on a stream of the source ({source}): a write alone"
    elif str(destination) not in owner.peers:
        yield NoPeerAccess(f"no peer access from {source} to {destination}: torch uses the host")
