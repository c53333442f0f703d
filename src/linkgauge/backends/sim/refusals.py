"""Reasons why a simulated machine refuses a transfer."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.backends.rules import Rule, of_copy_engine, of_threads, refused
from linkgauge.model.errors import NoPeerAccess
from linkgauge.model.memory import STAGING, Memory
from linkgauge.model.transfer import FULL_LOAD, Transfer

from .hardware import Hardware
from .topology import SimTopology

SPACE = "sim"
_OF_THREADS = ("", "pageable", "base", "huge", STAGING)
_PINNED = ("", "base", "huge", "mapped", "wc", STAGING)
"""Kinds of host memory that a device's engines can reach."""


def refusal(transfer: Transfer, hardware: Hardware, topology: SimTopology) -> str | None:
    """Returns the reason why the machine cannot carry out a transfer, or None if it can."""
    return refused(_rules(transfer, hardware, topology))


def no_access(transfer: Transfer, hardware: Hardware, topology: SimTopology) -> NoPeerAccess | None:
    """Returns the reason why an engine cannot reach another device's memory, or None if it can.
    Also returns None if the driver copies through the host. The transfer must not be refused for
    another reason."""
    other = apart(transfer, topology)
    if other is None:
        return None
    owner = transfer.engine.owner
    stages = hardware.devices[owner.index or 0].group.stages
    stages = stages or topology.leaves(str(owner), str(other))
    if stages and transfer.engine.kind == "ce" and len(transfer.memories) == 2:
        return None
    return NoPeerAccess(f"no peer access from {owner} to {other}")


def apart(transfer: Transfer, topology: SimTopology) -> Memory | None:
    """Returns the device whose memory the transfer's engine cannot reach, or None if there is
    none."""
    owner = transfer.engine.owner
    others = (m.place for m in transfer.memories if m.is_device and m.place != owner)
    apart = (other for other in others if not topology.reaches(str(owner), str(other)))
    return next(apart, None) if owner.is_device else None


def _rules(transfer: Transfer, hardware: Hardware, topology: SimTopology) -> Iterator[Rule]:
    for place in (*transfer.memories, transfer.engine.owner):
        units = hardware.nodes if place.is_host else hardware.devices
        other = f"{place} belongs to another process: a simulated machine has only one"
        yield place.rank is not None, other
        unknown = not place.is_host and place.space != SPACE
        yield unknown, f"a simulated machine has no {place.place}"
        if place.index is None or place.index >= len(units):
            there = ", ".join(unit.name for unit in units) or "no device"
            yield True, f"no {place.place}: this machine has {there}"
    moves_nothing = transfer.both_ways and len(transfer.memories) < 2
    yield moves_nothing, "nothing to move: an end is null"
    unlimited = f"a simulated machine cannot limit a transfer to {transfer.load}% of its rate"
    yield transfer.load != FULL_LOAD, unlimited
    owner = transfer.engine.owner
    if transfer.engine.kind == "cpu":
        yield not owner.is_host, f"{owner} has no threads: cpu is an engine of a host node"
        cpus = {node.index: node.cpus for node in hardware.nodes}
        yield from of_threads(transfer, cpus, _OF_THREADS)
    else:
        yield from _of_device(transfer)
    for memory in transfer.memories:
        ends = str(owner), str(memory.place)
        is_away = topology.route(*ends) is None
        if owner.is_host or memory.is_host:  # only devices reach each other over a network
            is_away = is_away or topology.leaves(*ends)
        yield is_away, f"no link leads from {owner} to {memory.place}"


def _of_device(transfer: Transfer) -> Iterator[Rule]:
    owner, kind = transfer.engine.owner, transfer.engine.kind
    yield not owner.is_device, f"{owner} has no {kind}: that is an engine of a device"
    ends = [memory.place for memory in transfer.memories]
    by_ccl = f"a rank's buffers are in its own memory: {owner} -> {owner} by ccl"
    yield kind == "ccl" and ends != [owner, owner], by_ccl
    neither = f"{owner} holds neither end: it copies from or to its own memory"
    yield len(ends) == 2 and owner not in ends, neither
    for memory in transfer.memories:
        staged = f"kernels do not reach {memory}: use ce, whose copies a thread stages"
        yield memory.kind == "pageable" and kind == "sm", staged
        unpinned = memory.is_host and memory.kind not in (*_PINNED, "pageable")
        yield unpinned, f"a simulated device does not reach {memory.kind} host memory: use host:N"
    yield from of_copy_engine(transfer)
