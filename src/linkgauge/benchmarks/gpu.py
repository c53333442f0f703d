"""Benchmarks of a single GPU: matrix products, the GPU's own memory, and copies to and from the
GPU.

Matrix products hardly depend on the host. A comparison of products and copies therefore shows
whether the host or the device is slow. Products run first, because they warm the device for the
copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import NULL, Memory, host
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.operation import ARRAYS, PRODUCTS, size_of
from linkgauge.model.transfer import BEST_OF, Benchmark, Cell, Engine, Report, Transfer
from linkgauge.model.units import FLOPS, HIDDEN, STREAM

from .table import HOST_ROW, NO_CPU, UNHURRIED, DeviceSet, Layout, Row, Sweep, counts_up_to

MULTIPLIERS = ("cuda", "sim", "torch")
"""Backends whose devices multiply matrices."""
ORDER, HOST_ORDER = 8192, 2048
"""Orders of the matrices, on a device and on the host."""


class OnDevices(Sweep, frozen=True):
    """A benchmark on the devices of one backend, not on the host."""

    on_host: ClassVar[bool] = False

    def lay_out(self, fabric: DeviceSet) -> Benchmark:
        cells = tuple(self.cells(fabric))
        reason = None if cells else fabric.reason or self.reason
        named = self.name, self.title, fabric.backend
        size = None if callable(self.size) else self.size
        return Benchmark(*named, cells, self.unit, sweep=True, size=size, reason=reason)


class ProductBenchmark(OnDevices, frozen=True):
    """Matrix products on each device, by number type. The host computes smaller products if no
    device can multiply."""

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
    """Whether any device multiplies matrices. CPUs that a backend lists as devices do not count,
    because the host has its own benchmark."""
    accelerators = any(not device.is_cpu for device in fabric.devices)
    return fabric.backend in MULTIPLIERS and accelerators


def _products(fabric: DeviceSet) -> Iterator[Cell]:
    if fabric.backend == "host":
        yield from _host_product(fabric.with_cpus)
    if _multiplies(fabric):
        for operation, numbers in PRODUCTS.items():
            for device in _memories(fabric):
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
            for place, device in zip(fabric.devices, _memories(fabric), strict=True):
                near = host(place.near, kind)
                ends = (near, device) if way == "H2D" else (device, near)
                yield _copy(f"{way} {kind or 'pinned'}", *ends, device)
    for device in _memories(fabric):
        yield _copy("within", device, device, device)


def _copy(row: str, source: Memory, destination: Memory, device: Memory) -> Cell:
    transfer = Transfer(source, destination, Engine(device, "ce"))
    return Cell(row, device.label, (transfer,), Report.BEST)


def _memories(fabric: DeviceSet) -> list[Memory]:
    return [parse_memory(device.memory) for device in fabric.devices]


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
            f"{kind} ({ARRAYS[f'peak-{kind}'].formula}) SM, each array counted, of device(column)",
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

_WAYS: Mapping[str, str] = {"H2D": "to", "D2H": "from", "both": "to from"}
"""The directions of copies in each row: to the device, from the device, or both."""


def _cells(fabric: DeviceSet) -> Iterator[Cell]:
    for row, ways in _WAYS.items():
        for device in fabric.devices:
            memory, near = parse_memory(device.memory), host(device.near)
            kernel = Transfer(NULL, NULL, Engine(memory, "sm"))
            copies = {
                "to": Transfer(near, memory, Engine(memory, "ce")),
                "from": Transfer(memory, near, Engine(memory, "ce")),
            }
            transfers = kernel, *(copies[way] for way in ways.split())
            yield Cell(row, memory.label, transfers, Report.HIDDEN, operation="overlap")


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
    """Returns one copy to each device. The source is the host node that is near the device."""
    ends = [(parse_memory(device.memory), host(device.near)) for device in fabric.devices]
    return [Transfer(near, device, Engine(device, "ce")) for device, near in ends]


def _to_host(fabric: DeviceSet) -> list[Transfer]:
    there = _to_devices(fabric)
    return [Transfer(one.destination, one.source, one.engine) for one in there]


def _in_pairs(fabric: DeviceSet) -> list[Transfer]:
    """Returns copies between disjoint pairs of devices: device 0 writes to 1, device 2 to 3, and so
    on."""
    memories = [parse_memory(device.memory) for device in fabric.devices]
    pairs = zip(memories[::2], memories[1::2], strict=False)
    return [Transfer(one, other, Engine(one, "ce")) for one, other in pairs]


def _more_and_more(copies: Copies) -> Callable[[DeviceSet], Iterator[Cell]]:
    """Returns a function that yields cells with more and more copies at once: 1, 2, 4 … and all."""

    def cells(fabric: DeviceSet) -> Iterator[Cell]:
        there = copies(fabric)
        for count in counts_up_to(len(there)):
            yield Cell(HOST_ROW, str(count), tuple(there[:count]), Report.TOTAL)

    return cells


def _over_streams(copies: Copies) -> Callable[[DeviceSet], Iterator[Cell]]:
    """Returns a function that yields cells in which each copy runs 1, 2, 4 … times at once. Every
    run of the copy has its own buffers."""

    def cells(fabric: DeviceSet) -> Iterator[Cell]:
        for copy in copies(fabric):
            for count in counts_up_to(MOST_ON_ONE):
                row = copy.engine.owner.label
                yield Cell(row, str(count), (copy,) * count, Report.TOTAL)

    return cells


def _sweep(name: str, title: str, cells: Callable[[DeviceSet], Iterator[Cell]]) -> OnDevices:
    return OnDevices(
        f"concurrency_{name}",
        f"memcpy CE {title}(column) at once, total",
        cells,
        reason="needs two devices" if cells is _PAIRS else "needs a device",
        profiles=("full",),
    )


_PAIRS = _more_and_more(_in_pairs)

CONCURRENCY: tuple[Sweep, ...] = (
    _sweep("host_to_device", "host -> this many devices", _more_and_more(_to_devices)),
    _sweep("device_to_host", "host <- this many devices", _more_and_more(_to_host)),
    _sweep("device_to_device", "device -> device, this many pairs", _PAIRS),
    _sweep(
        "streams_host_to_device",
        "host -> device(row), this many streams",
        _over_streams(_to_devices),
    ),
    _sweep(
        "streams_device_to_host",
        "host <- device(row), this many streams",
        _over_streams(_to_host),
    ),
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
    ("all_to_all_write", "every device -> all others by it", "d -> e by d.K"),
    ("all_to_all_read", "every device <- all others by it", "e -> d by d.K"),
    ("disjoint_pairs_write", "devices 0 <-> 1, 2 <-> 3 …", "d -> p by d.K"),
    ("bisect_write", "every device -> the one half of all further on", "d -> o by d.K"),
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
