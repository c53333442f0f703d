"""Why a simulated machine refuses a transfer or cannot time it. A machine described from a run
(rooms/describe/fitting.py) can time only the kinds of transfers that the run measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter

from linkgauge.backends.protocol import Copy
from linkgauge.backends.rules import Rule, of_copy_engine, of_threads
from linkgauge.model.errors import NoPeerAccess, Unsupported
from linkgauge.model.memory import STAGING, Memory
from linkgauge.model.names import and_all
from linkgauge.model.operations.operation import Operation
from linkgauge.model.recorded import SHORT
from linkgauge.model.transfer import FULL_LOAD, Engine, Transfer

from .hardware import Hardware
from .topology import SimTopology

SPACE = "sim"
_OF_THREADS = ("", "pageable", "base", "huge", STAGING)
_PINNED = ("", "base", "huge", "mapped", "wc", STAGING)
"""Kinds of host memory that a device's engines can reach."""


def no_access(transfer: Transfer, hardware: Hardware, topology: SimTopology) -> NoPeerAccess | None:
    """Returns an error if the engine cannot access the other device's memory and the driver does
    not copy through the host, else None."""
    other = separate(transfer, topology)
    if other is None:
        return None
    owner = transfer.engine.owner
    stages = hardware.devices[owner.index or 0].group.stages
    stages = stages or topology.leaves(str(owner), str(other))
    if stages and transfer.engine.kind == "ce" and len(transfer.memories) == 2:
        return None
    return NoPeerAccess(f"no peer access from {owner} to {other}")


def separate(transfer: Transfer, topology: SimTopology) -> Memory | None:
    """Returns the device whose memory the transfer's engine cannot access, or None."""
    owner = transfer.engine.owner
    for memory in transfer.memories if owner.is_device else ():
        other = memory.place
        if other.is_device and other != owner and not topology.reaches(str(owner), str(other)):
            return other
    return None


def rules_of(transfer: Transfer, hardware: Hardware, topology: SimTopology) -> Iterator[Rule]:
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
    ends = list(map(attrgetter("place"), transfer.memories))
    by_ccl = f"a rank's buffers are in its own memory: {owner} -> {owner} by ccl"
    yield kind == "ccl" and ends != [owner, owner], by_ccl
    neither = f"{owner} holds neither end: it copies from or to its own memory"
    yield len(ends) == 2 and owner not in ends, neither
    for memory in transfer.memories:
        staged = f"kernels do not reach {memory}: use ce, whose copies a thread stages"
        yield memory.kind == "pageable" and kind == "sm", staged
        unpinned = memory.is_host and memory.kind not in (*_PINNED, "pageable")
        yield unpinned, f"simulated devices do not support {memory.kind} host memory: use host:N"
    yield from of_copy_engine(transfer)


def check_known(known: Collection[str], copies: Sequence[Copy], does: Operation) -> None:
    """Raises Unsupported if `known` lacks this kind of measurement."""
    kind = known_by([copy.transfer for copy in copies], does)
    if kind not in known:
        raise Unsupported(f"not known of this machine: {kind}")


def known_by(transfers: Sequence[Transfer], does: Operation) -> str:
    """Returns the kind of a measurement, such as `copy of device and host by ce, both ways`."""
    if does.collective is not None:
        is_short = transfers[0].scale <= SHORT
        return f"{'short ' if is_short else ''}{does.collective.collective}"
    what = "copy" if does.is_copy or does.array else str(does.name)
    if does.array and any(len(transfer.memories) < 2 for transfer in transfers):
        what = "access"
    memories = and_all(sorted({word for transfer in transfers for word in _places(transfer)}))
    engines = and_all(sorted({_engine(transfer.engine, does) for transfer in transfers}))
    ways = {(str(transfer.source), str(transfer.destination)) for transfer in transfers}
    both = any(one.both_ways for one in transfers) or any(
        a != b and (b, a) in ways for a, b in ways
    )
    concurrent = len({frozenset(way) for way in ways}) > 1
    turned = f"{', both ways' if both else ''}{', several at once' if concurrent else ''}"
    return f"{what} of {memories} by {engines}{turned}"


def _places(transfer: Transfer) -> Iterator[str]:
    kinds = sorted({memory.kind for memory in transfer.memories} - {""})
    places = {memory.place for memory in (*transfer.memories, transfer.engine.owner)}
    named = Counter(
        "device" if one.is_device else "CPU" if one.is_cpu else " ".join((*kinds, "host"))
        for one in places
    )
    yield from (word if count == 1 else f"two {word}s" for word, count in named.items())


def _engine(engine: Engine, does: Operation) -> str:
    if engine.kind != "cpu":
        return engine.kind
    threads = "one thread" if engine.count == 1 else "threads"
    return f"{threads} ({does.mode})" if does.mode else threads
