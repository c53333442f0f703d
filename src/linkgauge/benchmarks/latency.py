"""Latencies of devices: copies, flags, launches and synchronisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations, product

from linkgauge.model.memory import NULL, Memory
from linkgauge.model.operations.operation import HandOver, OperationName
from linkgauge.model.transfer import Cell, Engine, Report, Transfer
from linkgauge.model.units import LATENCY, format_size

from .table import FLAG_BYTES, HOST_ROW, UNHURRIED, DeviceSet, OnDevices, Profile, Sweep

SIZES = tuple(1 << power for power in range(21))
"""The sizes of copies in bytes: 1 B to 1 MiB."""
FEW_SIZES = (*SIZES[::3], SIZES[-1])
"""Every third of these sizes, and the largest."""
LOADS = (0, 25, 50, 75, 100)
LOAD_BYTES = 64 << 20
"""The loads of a link in percent of the full rate, and the bytes that a load copies."""


def _paths(fabric: DeviceSet) -> Iterator[tuple[str, Memory, Memory]]:
    """Yields paths: a name, the far memory, and the near memory, whose device carries out the copy.
    Paths join the host and each device, and the first device and each other device (in the full
    profile, all pairs of devices)."""
    memories = fabric.memories
    for memory, near in fabric.with_near:
        yield f"{near}-{memory.label}", near, memory
    pairs = permutations(memories, 2)
    for one, other in pairs if fabric.full else ((memories[0], m) for m in memories[1:]):
        yield f"{one.label}-{other.label}", other, one


def _sizes(fabric: DeviceSet) -> tuple[int, ...]:
    asked = tuple(size for size in fabric.sizes if size <= SIZES[-1])
    return asked or (SIZES if fabric.full else FEW_SIZES)


def _ping_pongs(fabric: DeviceSet) -> Iterator[Cell]:
    for (name, far, owner), size in product(_paths(fabric), _sizes(fabric)):
        transfer = Transfer(far, owner, Engine(owner, "ce"), size)
        place = name, format_size(size)
        yield Cell(*place, (transfer,), Report.LATENCY, operation="copy-ping-pong")


def _timed_copies(fabric: DeviceSet) -> Iterator[Cell]:
    for (name, far, owner), size in product(_paths(fabric), _sizes(fabric)):
        for arrow, source, destination in (("->", far, owner), ("<-", owner, far)):
            transfer = Transfer(source, destination, Engine(owner, "ce"), size)
            place = name.replace("-", arrow, 1), format_size(size)
            yield Cell(*place, (transfer,), Report.LATENCY, operation="timed-copy")


def _flags(fabric: DeviceSet) -> Iterator[Cell]:
    alone = ((f"{memory.label}-{memory.label}", memory, memory) for memory in fabric.memories)
    for name, far, near in (*_paths(fabric), *alone):
        first, second = (far, near) if far.is_host else (near, far)
        engine = Engine(second if far.is_host else first, "sm")
        transfer = Transfer(first, second, engine)
        yield Cell(name, "one way", (transfer,), Report.LATENCY, operation="flag-ping-pong")


def _loaded(fabric: DeviceSet) -> Iterator[Cell]:
    paths = list(_paths(fabric))
    few = [next((p for p in paths if p[1].is_host is near), None) for near in (True, False)]
    for name, far, owner in paths if fabric.full else filter(None, few):
        first, second = (far, owner) if far.is_host else (owner, far)
        flag = Transfer(first, second, Engine(owner, "sm"))
        copy = Transfer(far, owner, Engine(owner, "ce"))
        launch = Transfer(NULL, NULL, Engine(owner, "sm"))
        kinds: tuple[tuple[str, Transfer, OperationName], ...] = (
            ("flag", flag, "flag-ping-pong"), ("copy", copy, "copy-ping-pong"),
            ("launch", launch, "launch"),
        )  # fmt: skip
        ways = (("->", far, owner), ("<-", owner, far))
        for (kind, timed, operation), (arrow, source, destination), load in product(
            kinds, ways, LOADS
        ):
            times, engine = LOAD_BYTES // FLAG_BYTES, Engine(owner, "sm")
            concurrent = Transfer(source, destination, engine, times, load=load)
            transfers = (timed, concurrent) if load else (timed,)
            place = f"{kind} {name}, load {name.replace('-', arrow, 1)}", f"{load}%"
            yield Cell(*place, transfers, Report.LATENCY, operation=operation)


def _handing_over(operation: HandOver, fabric: DeviceSet) -> Iterator[Cell]:
    for memory in fabric.memories:
        transfer = Transfer(NULL, NULL, Engine(memory, "sm"))
        yield Cell(HOST_ROW, memory.label, (transfer,), Report.LATENCY, operation=operation)


_HANDED_OVER: dict[HandOver, str] = {
    "launch": "launch of a kernel that does nothing, until its end",
    "sync": "synchronisation with an idle stream",
    "event": "event recorded on an idle stream, until its end",
    "graph-launch": "launch of a graph of one kernel that does nothing, until its end",
    "doorbell": "launch of a kernel, until its first store",
}


def _sweep(
    name: str,
    title: str,
    cells: Callable[[DeviceSet], Iterator[Cell]],
    size: int = 1,
    profiles: tuple[Profile, ...] = UNHURRIED,
) -> OnDevices:
    return OnDevices(name, title, cells, LATENCY, size, "needs a device", profiles=profiles)


LATENCY_OF_DEVICES: tuple[Sweep, ...] = (
    _sweep(
        "latency_copy_pingpong",
        "half a round trip by CE copies; the host waits for each copy; path(row) by size(column)",
        _ping_pongs,
    ),
    _sweep(
        "latency_copy_device",
        "latency of a CE copy, timed by the device's own events, path(row) by size(column)",
        _timed_copies,
    ),
    _sweep(
        "latency_flag_pingpong",
        "half the round trip of a flag between two memories, path(row)",
        _flags,
        FLAG_BYTES,
    ),
    _sweep(
        "latency_loaded",
        "latency of a flag, a CE copy of 256 B and a launch, while a kernel's copies load the "
        "link(row) at a share of their rate(column)",
        _loaded,
        FLAG_BYTES,
        ("full",),
    ),
    *(
        _sweep(
            f"latency_{operation.replace('-', '_')}",
            f"{title}, as the host sees it, device(column)",
            partial(_handing_over, operation),
        )
        for operation, title in _HANDED_OVER.items()
    ),
)
