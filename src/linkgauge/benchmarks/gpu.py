"""Benchmarks of one GPU's matrix products, copies and memory, and of many copies at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

from msgspec.structs import replace

from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import NULL, Memory, host
from linkgauge.model.operations.operation import ARRAYS, PRODUCTS, size_of
from linkgauge.model.transfer import BEST_OF, Benchmark, Cell, Engine, Report, Transfer
from linkgauge.model.units import FLOPS, HIDDEN, STREAM

from .table import (
    HOST_ROW,
    NO_CPU,
    UNHURRIED,
    DeviceSet,
    Layout,
    OnDevices,
    Row,
    Sweep,
    counts_up_to,
)

MULTIPLIERS = ("cuda", "sim", "torch")
"""Backends whose devices multiply matrices."""
ORDER, HOST_ORDER = 8192, 2048
"""Orders of the matrices, on a device and on the host."""


class ProductBenchmark(OnDevices, frozen=True):
    """A benchmark of matrix products. Without a suitable accelerator, the host multiplies."""

    def over(
        self, fabrics: Sequence[DeviceSet], of_host: Sequence[DeviceSet]
    ) -> Sequence[DeviceSet]:
        able = [fabric for fabric in fabrics if _multiplies(fabric)]
        return able or of_host or fabrics

    def lay_out(self, fabric: DeviceSet) -> Benchmark:
        order, where = ORDER, " on device(column)"
        if fabric.backend == "host":
            order, where = HOST_ORDER, ", threads(column), no GPU"
        title = f"{order} × {order} {self.title}{where}"
        return replace(super().lay_out(fabric), title=title, size=size_of(order))


def _multiplies(fabric: DeviceSet) -> bool:
    # CPUs that a backend lists as devices do not count.
    accelerators = any(not device.is_cpu for device in fabric.devices)
    return fabric.backend in MULTIPLIERS and accelerators


def _products(fabric: DeviceSet) -> Iterator[Cell]:
    if fabric.backend == "host":
        yield from _host_product(fabric.with_cpus)
    if _multiplies(fabric):
        for operation, numbers in PRODUCTS.items():
            for device in fabric.memories:
                transfer = Transfer(NULL, NULL, Engine(device, "sm"))
                place = numbers.name, device.label
                yield Cell(*place, (transfer,), Report.RATE, operation=operation)  # type: ignore[arg-type]  # one of them


def _host_product(nodes: Sequence[Node]) -> Iterator[Cell]:
    engines = [Engine(host(node.index), "cpu", len(node.cpus)) for node in nodes]
    if engines:
        transfers = tuple(Transfer(NULL, NULL, engine) for engine in engines)
        threads = str(sum(engine.count or 0 for engine in engines))
        yield Cell("FP32", threads, transfers, Report.RATE, operation="matmul-fp32")


def _copies(fabric: DeviceSet) -> Iterator[Cell]:
    for kind in ("", "pageable"):
        for way in ("H2D", "D2H"):
            for device, place in fabric.with_near:
                near = host(place.index or 0, kind)
                ends = (near, device) if way == "H2D" else (device, near)
                yield _copy(f"{way} {kind or 'pinned'}", *ends, device)
    for device in fabric.memories:
        yield _copy("within", device, device, device)


def _copy(row: str, source: Memory, destination: Memory, device: Memory) -> Cell:
    transfer = Transfer(source, destination, Engine(device, "ce"))
    return Cell(row, device.label, (transfer,), Report.BEST)


GPU: tuple[Row | Sweep, ...] = (
    ProductBenchmark(
        "gpu_matmul",
        "matrix product, type(row)",
        _products,
        FLOPS,
        reason=f"no GPU that multiplies, and {NO_CPU} by this process",
        profiles=UNHURRIED,
    ),
    OnDevices(
        "gpu_bandwidth_best_of",
        f"memcpy CE best of {BEST_OF}, path(row) of device(column)",
        _copies,
        profiles=UNHURRIED,
    ),
    *(
        Row(
            f"device_memory_{kind}",
            f"{kind} ({ARRAYS[f'peak-{kind}'].formula}) SM of device(column), bytes of all arrays",
            Layout.EACH_DEVICE,
            cell,
            unit=STREAM,
            operation=f"peak-{kind}",  # type: ignore[arg-type]  # one of them
            profiles=UNHURRIED,
        )
        for kind, cell in (
            ("read", "d -> null by d.sm"),
            ("write", "null -> d by d.sm"),
            ("copy", "d -> d by d.sm"),
            ("triad", "d -> d by d.sm"),
        )
    ),
)


# How much of a copy's time a kernel that computes hides: what software gains that copies while it
# computes.


def _cells(fabric: DeviceSet) -> Iterator[Cell]:
    for row in ("H2D", "D2H", "both"):
        for memory, near in fabric.with_near:
            kernel, engine = Transfer(NULL, NULL, Engine(memory, "sm")), Engine(memory, "ce")
            copies = Transfer(near, memory, engine), Transfer(memory, near, engine)
            chosen = {"H2D": copies[:1], "D2H": copies[1:]}.get(row, copies)
            yield Cell(row, memory.label, (kernel, *chosen), Report.HIDDEN, operation="overlap")


OVERLAP: tuple[OnDevices, ...] = (
    OnDevices(
        "copy_compute_overlap",
        "memcpy CE beside a kernel that computes, path(row) of device(column)",
        _cells,
        HIDDEN,
        reason="needs a device",
        profiles=("full",),
    ),
)


# How bandwidth is shared as more and more copies run at the same time: of several devices, of
# disjoint pairs of devices, and over several streams of one device.
#
# The headline is the aggregate; each copy's own rate is measured with it.

MOST_ON_ONE = 16
"""The largest number of copies at once on one device."""

Copies = Callable[[DeviceSet], list[Transfer]]


def _to_devices(fabric: DeviceSet) -> list[Transfer]:
    return [Transfer(near, device, Engine(device, "ce")) for device, near in fabric.with_near]


def _to_host(fabric: DeviceSet) -> list[Transfer]:
    return [Transfer(device, near, Engine(device, "ce")) for device, near in fabric.with_near]


def _in_pairs(fabric: DeviceSet) -> list[Transfer]:
    pairs = zip(fabric.memories[::2], fabric.memories[1::2], strict=False)
    return [Transfer(one, other, Engine(one, "ce")) for one, other in pairs]


def _more_and_more(copies: Copies, fabric: DeviceSet) -> Iterator[Cell]:
    there = copies(fabric)
    for count in counts_up_to(len(there)):
        yield Cell(HOST_ROW, str(count), tuple(there[:count]), Report.TOTAL)


def _over_streams(copies: Copies, fabric: DeviceSet) -> Iterator[Cell]:
    for copy, count in product(copies(fabric), counts_up_to(MOST_ON_ONE)):
        yield Cell(copy.engine.owner.label, str(count), (copy,) * count, Report.TOTAL)


# name, title, cells, copies
_CONCURRENT: tuple[tuple[str, str, Callable[[Copies, DeviceSet], Iterator[Cell]], Copies], ...] = (
    ("host_to_device", "host -> this many devices", _more_and_more, _to_devices),
    ("device_to_host", "host <- this many devices", _more_and_more, _to_host),
    ("device_to_device", "device -> device, this many pairs", _more_and_more, _in_pairs),
    ("streams_host_to_device", "host -> device(row), this many streams", _over_streams,
     _to_devices),
    ("streams_device_to_host", "host <- device(row), this many streams", _over_streams, _to_host),
)  # fmt: skip

CONCURRENCY = tuple(
    OnDevices(
        f"concurrency_{name}",
        f"memcpy CE {title}(column) at once, total",
        partial(cells, copies),
        reason="needs two devices" if copies is _in_pairs else "needs a device",
        profiles=("full",),
    )
    for name, title, cells, copies in _CONCURRENT
)


# What the fabric of one machine carries when all of its devices copy at the same time: each to
# every other, each to the other of its pair, and each across the middle.
#
# Each has one cell, whose headline is the total; every copy's own rate is measured with it. The
# notation is that of copies.py; o is the device that comes half of all further on, p the other of
# the pair. Source of the definitions: TransferBench's preset `a2a` (between all pairs of devices,
# by the source, or with USE_REMOTE_READ by the destination; src/client/Presets/AllToAll.hpp) and
# nvbandwidth 0.8's multinode_bisect_write_ce.

# name, title, the cell
_AT_ONCE: tuple[tuple[str, str, str], ...] = (
    ("all_to_all_write", "every device -> all others, written by the source", "d -> e by d.K"),
    ("all_to_all_read", "every device <- all others, read by the destination", "e -> d by d.K"),
    ("disjoint_pairs_write", "devices 0 <-> 1, 2 <-> 3 …", "d -> p by d.K"),
    ("bisect_write", "device i -> device i + n/2 modulo n", "d -> o by d.K"),
)

WITHIN_NODE: tuple[Row, ...] = tuple(
    Row(
        f"{name}_{kind}",
        f"memcpy {kind.upper()} {title}, all at once, total",
        Layout.TOGETHER,
        cell.replace(".K", f".{kind}"),
        Report.TOTAL,
        profiles=("full",),
    )
    for kind in ("ce", "sm")
    for name, title, cell in _AT_ONCE
)
