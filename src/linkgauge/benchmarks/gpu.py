"""What a GPU does by itself: products of matrices, and its own memory; then its copies, once it is
warm.

The product separates what the host does to figures from what the device does: it hardly depends on
the host. The order of the table is that of a run: copies come when products have warmed the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from msgspec.structs import replace

from linkgauge.model.machine import Node
from linkgauge.model.matmul import PRODUCTS, size_of
from linkgauge.model.memory import NULL, Memory, host
from linkgauge.model.notation import parse_memory
from linkgauge.model.operation import ARRAYS
from linkgauge.model.transfer import BEST_OF, Benchmark, Cell, Engine, Report, Transfer
from linkgauge.model.units import FLOPS, STREAM

from .table import NO_CPU, UNHURRIED, DeviceSet, Layout, Row, Sweep

MULTIPLIERS = ("cuda", "sim", "torch")
"""Backends whose devices multiply matrices."""
ORDER, HOST_ORDER = 8192, 2048
"""Orders of the matrices, on a device and on the host."""


class OnDevices(Sweep, frozen=True):
    """A sweep over one backend's devices, which are its columns."""

    on_host: ClassVar[bool] = False

    def lay_out(self, fabric: DeviceSet) -> Benchmark:
        cells = tuple(self.cells(fabric))
        reason = None if cells else fabric.reason or self.reason
        named = self.name, self.title, fabric.backend
        size = None if callable(self.size) else self.size
        return Benchmark(*named, cells, self.unit, sweep=True, size=size, reason=reason)


class Product(OnDevices, frozen=True):
    """Products by type and device; where no device multiplies, smaller ones by the host."""

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
    """Whether it has devices that multiply: a CPU by another name takes the host's product."""
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
    Product(
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
