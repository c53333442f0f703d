"""Decides what OpenCL cannot measure, and writes remarks for the user.

The functions never call OpenCL, so that all rules can be tested without hardware."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.backends.rules import of_copy_engine, of_load
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
    return next(_reasons(transfer, facts, nodes), None)


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


def _reasons(
    transfer: Transfer, facts: Sequence[OpenCLFacts], nodes: Sequence[int]
) -> Iterator[str]:
    for memory in (*transfer.memories, transfer.engine.owner):
        yield from _unreachable(memory, len(facts), nodes)
    yield from of_load(transfer)
    yield from _wrong_engine(transfer)
    yield from _wrong_ends(transfer)
    owner = facts[transfer.engine.owner.index or 0]
    for memory in transfer.memories:
        if memory.is_host:
            yield from _host_reasons(memory, transfer, owner, len(nodes))
    yield from _pair_reasons(transfer, facts)


def _unreachable(memory: Memory, devices: int, nodes: Sequence[int]) -> Iterator[str]:
    place = memory.place
    if memory.rank is not None:
        yield f"{place} belongs to another process: OpenCL has no memory across processes"
    elif memory.is_host:
        if memory.index not in nodes:
            there = ", ".join(f"host:{node}" for node in nodes)
            yield f"no {place} here: there is {there}"
    elif memory.space != SPACE:
        yield f"OpenCL does not reach {place}"
    elif memory.index is None or not 0 <= memory.index < devices:
        there = ", ".join(f"{SPACE}:{index}" for index in range(devices))
        yield f"no {place} here: there is {there}"


def _wrong_engine(transfer: Transfer) -> Iterator[str]:
    engine = transfer.engine
    if engine.kind == "cpu":
        yield "host threads do not reach the memory of an OpenCL device: use ce or sm"
    if not engine.owner.is_device:
        yield f"only an OpenCL device can do this, not {engine.owner}"
    yield from of_copy_engine(transfer)


def _wrong_ends(transfer: Transfer) -> Iterator[str]:
    ends = transfer.memories
    if transfer.both_ways and len(ends) < 2:
        yield "a copy both ways needs two memories"
    devices = {memory.place for memory in ends if memory.is_device}
    if len(ends) == 2 and not devices:
        yield "neither end is the memory of an OpenCL device"
    if len(ends) == 2 and devices and transfer.engine.owner.place not in devices:
        yield f"{transfer.engine.owner} holds neither end: an OpenCL copy runs on one of the two"


def _host_reasons(
    memory: Memory, transfer: Transfer, owner: OpenCLFacts, nodes: int
) -> Iterator[str]:
    if memory.kind == "huge":
        yield "OpenCL allocates pinned memory itself, and offers no huge pages"
    elif memory.kind == "mapped":
        yield (
            f"OpenCL has no mapped memory: by sm, {memory.place} is reached in place "
            "where the device shares memory"
        )
    elif memory.kind not in ("", "pageable", STAGING):
        yield f"OpenCL has no {memory.kind} host memory"
    if memory.kind in ("", STAGING) and nodes > 1 and memory.index != owner.device.near:
        # The driver places what it pins: only near the device does the label match.
        yield (
            f"OpenCL cannot bind pinned memory to a node: only host:{owner.device.near}, "
            f"nearest to {owner.device.memory}, can be measured"
        )
    if transfer.engine.kind == "sm":
        if memory.kind == "pageable":
            yield "a kernel reaches only host memory that OpenCL allocated: host:N"
        elif memory.is_staging and not owner.fine_grained:
            yield (
                f"{owner.device.memory} has no fine-grained shared virtual memory: its kernels "
                "may not use a buffer while host threads do; use ce"
            )
        elif not (owner.fine_grained or owner.device.shares_host_memory):
            # A kernel would access a copy of host memory instead.
            yield (
                f"{owner.device.memory} has neither fine-grained shared virtual memory nor memory "
                "shared with the host: the runtime may silently move the buffer first"
            )


def _places(transfer: Transfer) -> tuple[Memory, ...]:
    """Returns both ends of a transfer. If the transfer only reads or only writes, one end is the
    engine's device."""
    ends = transfer.memories
    return ends if len(ends) > 1 else (*ends, transfer.engine.owner)


def _pair_reasons(transfer: Transfer, facts: Sequence[OpenCLFacts]) -> Iterator[str]:
    pair = [facts[memory.index or 0] for memory in _places(transfer) if memory.is_device]
    if len(pair) < 2 or pair[0] == pair[1]:
        return
    one, other = (own.device for own in pair)
    if pair[0].platform != pair[1].platform:
        yield (
            f"{one.memory} and {other.memory} belong to different OpenCL "
            "platforms, which share no buffers"
        )
    elif not (one.shares_host_memory and other.shares_host_memory):
        ends = f"{one.memory} and {other.memory}"
        does = f"from the second loop on a copy between {ends} may be a local one"
        if len(transfer.memories) < 2:
            does = f"{other.memory} may work on {one.memory}'s in its own memory"
        yield f"an OpenCL runtime moves a buffer to the device that uses it: {does}"
