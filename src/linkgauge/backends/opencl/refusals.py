"""Decides what OpenCL cannot measure, and writes remarks for the user.

The functions never call OpenCL, so that all rules can be tested without hardware."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.backends.rules import Rule, of_copy_engine, of_load, refused
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import STAGING, Memory
from linkgauge.model.transfer import Transfer

SPACE = "opencl"


class OpenCLFacts(msgspec.Struct, frozen=True):
    """Facts about a device. `platform` is the number of its OpenCL runtime. `fine_grained` says
    that its kernels can use host memory in place (fine-grained shared virtual memory)."""

    device: Device
    platform: int
    fine_grained: bool


def refusal(transfer: Transfer, facts: Sequence[OpenCLFacts], nodes: Sequence[int]) -> str | None:
    """Returns the reason why the transfer cannot be carried out, or None if it can. `nodes` are the
    host's NUMA nodes."""
    return refused(_rules(transfer, facts, nodes))


def remarks(transfer: Transfer, facts: Sequence[OpenCLFacts]) -> tuple[str, ...]:
    """Returns a remark if both ends of the transfer are in the same DRAM. The transfer must be one
    that `refusal` accepts."""
    ends = _places(transfer)
    devices = [facts[memory.index or 0].device for memory in ends if memory.is_device]
    apart = len({memory.place for memory in ends}) > 1
    if not apart or not all(device.shares_host_memory for device in devices):
        return ()
    one, other = sorted(str(memory.place) for memory in ends)
    return (f"{one} and {other} share one DRAM",)


def _rules(
    transfer: Transfer, facts: Sequence[OpenCLFacts], nodes: Sequence[int]
) -> Iterator[Rule]:
    engine, ends = transfer.engine, transfer.memories
    for memory in (*ends, engine.owner):
        place = memory.place
        other = f"{place} belongs to another process: OpenCL has no memory across processes"
        yield memory.rank is not None, other
        yield not memory.is_host and memory.space != SPACE, f"OpenCL does not reach {place}"
        known = nodes if memory.is_host else range(len(facts))
        there = ", ".join(f"{memory.space}:{index}" for index in known)
        yield memory.index not in known, f"no {place} here: there is {there}"
    yield of_load(transfer)
    by_threads = "host threads do not reach the memory of an OpenCL device: use ce or sm"
    yield engine.kind == "cpu", by_threads
    yield not engine.owner.is_device, f"only an OpenCL device can do this, not {engine.owner}"
    yield from of_copy_engine(transfer)
    both, devices = len(ends) == 2, {memory.place for memory in ends if memory.is_device}
    yield transfer.both_ways and not both, "a copy both ways needs two memories"
    yield both and not devices, "neither end is the memory of an OpenCL device"
    neither = f"{engine.owner} holds neither end: an OpenCL copy runs on one of the two"
    yield both and engine.owner.place not in devices, neither
    owner = facts[engine.owner.index or 0]
    for memory in ends:
        if memory.is_host:
            yield from _host_rules(memory, owner, len(nodes))
            if engine.kind == "sm":
                yield from _in_place_rules(memory, owner)
    yield from _pair_rules(transfer, facts)


def _host_rules(memory: Memory, owner: OpenCLFacts, nodes: int) -> Iterator[Rule]:
    kind, near, device = memory.kind, owner.device.near, owner.device.memory
    yield kind == "huge", "OpenCL allocates pinned memory itself, and offers no huge pages"
    in_place = f"by sm, {memory.place} is reached in place where the device shares memory"
    yield kind == "mapped", f"OpenCL has no mapped memory: {in_place}"
    yield kind not in ("", "pageable", STAGING), f"OpenCL has no {kind} host memory"
    # The driver places what it pins: only near the device does the label match.
    bound = f"only host:{near}, nearest to {device}, can be measured"
    far = kind != "pageable" and nodes > 1 and memory.index != near
    yield far, f"OpenCL cannot bind pinned memory to a node: {bound}"


def _in_place_rules(memory: Memory, owner: OpenCLFacts) -> Iterator[Rule]:
    """Refuses host memory of which a kernel would access a copy instead."""
    device, shares = owner.device.memory, owner.device.shares_host_memory
    own = "a kernel reaches only host memory that OpenCL allocated: host:N"
    yield memory.kind == "pageable", own
    if not owner.fine_grained:
        at_once = "its kernels may not use a buffer while host threads do; use ce"
        lacking = f"{device} has no fine-grained shared virtual memory: {at_once}"
        yield memory.is_staging, lacking
        moves = "memory shared with the host: the runtime may silently move the buffer first"
        yield not shares, f"{device} has neither fine-grained shared virtual memory nor {moves}"


def _places(transfer: Transfer) -> tuple[Memory, ...]:
    """Returns both ends of a transfer. If the transfer only reads or only writes, one end is the
    engine's device."""
    ends = transfer.memories
    return ends if len(ends) > 1 else (*ends, transfer.engine.owner)


def _pair_rules(transfer: Transfer, facts: Sequence[OpenCLFacts]) -> Iterator[Rule]:
    pair = [facts[memory.index or 0] for memory in _places(transfer) if memory.is_device]
    if len(pair) < 2 or pair[0] == pair[1]:
        return
    one, other = (own.device for own in pair)
    ends = f"{one.memory} and {other.memory}"
    apart = pair[0].platform != pair[1].platform
    yield apart, f"{ends} belong to different OpenCL platforms, which share no buffers"
    does = f"from the second loop on a copy between {ends} may be a local one"
    if len(transfer.memories) < 2:
        does = f"{other.memory} may work on {one.memory}'s in its own memory"
    moved = not (one.shares_host_memory and other.shares_host_memory)
    moves = "an OpenCL runtime moves a buffer to the device that uses it"
    yield moved, f"{moves}: {does}"
