"""Plans a collective over the first N devices of a backend, for several N."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from linkgauge.benchmarks.collectives import (
    COLLECTIVES,
    SIZES,
    CollectiveSweep,
    cell_of,
    collecting,
    row_of,
)
from linkgauge.benchmarks.table import COMPARISON, DeviceSet, counts_up_to
from linkgauge.engine.request import RunRequest, choose_backends
from linkgauge.model.documents.scaling import Member
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Device, Machine
from linkgauge.model.operations.collective import Collective, CollectiveName, no_hypercube
from linkgauge.model.transfer import Benchmark
from linkgauge.model.units import COLLECTIVE, count_of, format_size


def _one_of_each_node(fabric: DeviceSet) -> tuple[Device, ...]:
    rail = fabric.devices[0].rail if fabric.devices else None
    found = tuple(one for one in fabric.devices if one.node is not None and one.rail == rail)
    if not found:
        why = "stands for a node, as those of --machine fat-tree-64 do"
        raise InputError(f"--nodes: no device of {fabric.backend} {why}")
    return found


def kind_of(devices: Sequence[Device]) -> Member:
    nodes = {device.node for device in devices} - {None}
    return "node" if devices and len(nodes) == len(devices) else "GPU"


def label_of(work: Collective, count: int, kind: Member) -> str:
    return f"{row_of(work)}, {count_of(count, kind)}"


def _of(row: CollectiveSweep, count: int, fabric: DeviceSet) -> Benchmark:
    work = next(row.works(fabric))  # out of place
    devices = fabric.devices[:count]
    label = label_of(work, count, kind_of(devices))
    reason = no_hypercube(row.collective, count)
    sizes = fabric.sizes or _sizes(work, devices)
    cells = (cell_of(work, devices, size, label, format_size(size)) for size in sizes)
    return Benchmark(
        row.name,
        f"{row.title}, {label.rpartition(', ')[2]}",
        fabric.backend,
        () if reason else tuple(cells),
        COLLECTIVE,
        sweep=True,
        size=1,
        reason=reason,
    )


def _sizes(work: Collective, devices: Sequence[Device]) -> tuple[int, ...]:
    """Returns the sizes whose buffers fit into half of each device's memory."""
    room = min((device.memory_bytes or 1 << 62 for device in devices), default=0) // 2
    ranks = len(devices)
    return tuple(
        size for size in SIZES[COMPARISON] if max(map(sum, work.buffer_bytes(size, ranks))) <= room
    )


class ScalingBenchmark(msgspec.Struct, frozen=True, tag=True):
    """A collective over the first N devices or, if `by_node`, one device on each of N nodes."""

    collective: CollectiveName
    counts: tuple[int, ...] = ()
    by_node: bool = False

    is_across_ranks: ClassVar[bool] = False
    of_one_process: ClassVar[tuple[str, ...]] = ()

    def accelerators(self, request: RunRequest) -> tuple[str, ...]:
        return choose_backends(request.backends, request.settings.simulation)

    def lay_out(self, request: RunRequest, machine: Machine) -> tuple[Benchmark, ...]:
        """Returns the collective for each of `counts` (default: 1, 2, 4 … and all). Raises
        InputError for too few devices or no nodes."""
        over = request.over(machine)
        able = collecting(over)
        fabric = (able or over)[0]
        if self.by_node:
            fabric = replace(fabric, devices=_one_of_each_node(fabric))
        row = next(row for row in COLLECTIVES if row.name == self.collective)
        if not able:
            why = f"no device here carries out collectives ({fabric.reason or fabric.backend})"
            return (Benchmark(row.name, row.title, fabric.backend, unit=COLLECTIVE, sweep=True,
                              size=1, reason=why),)  # fmt: skip
        there = len(fabric.devices)
        if self.counts and max(self.counts) > there:
            option, kind = ("--nodes", "node") if self.by_node else ("--gpus", "device")
            has = f"{fabric.backend} has {count_of(there, kind)}"
            raise InputError(f"{option} {max(self.counts)} is too many: {has}")
        return tuple(_of(row, count, fabric) for count in self.counts or counts_up_to(there))
