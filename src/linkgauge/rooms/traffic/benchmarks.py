"""Defines the staged traffic test: host threads and a device use one buffer as fast as they can,
together and alone. The rates of both refer to the same time. Source: the manual page of
gc-hosttraffictest, whose tiles correspond to a device's streams."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import ClassVar

import msgspec

from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.request import RunRequest, choose_backends
from linkgauge.model.documents.result import CellResult
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Device, Machine, Node
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Pieces
from linkgauge.model.transfer import Access, Benchmark, Cell, Report
from linkgauge.model.units import format_size

PARTS = ("device", "host")
BUFFER = 16 << 20
"""The bytes of the staging buffer. The manual page counts the host's bytes in units of this
buffer."""

PAYLOADS = (128, 256, 512)
LARGEST_PIECE = 1 << 20
MOST_STREAMS = 1 << 16
_SMALL = 4
"""A node with fewer CPUs than the largest node divided by this number is a device's gateway, not a
host."""

# The device's transfer is the first of a cell. s is the staging buffer, d the device's memory.
_DEVICE: dict[Access | None, str] = {"read": "{s} -> {d} by {D}", "write": "{d} -> {s} by {D}"}
_HOST: dict[Access | None, str] = {"read": "{s} -> null by {H}", "write": "null -> {s} by {H}"}
_DEVICE_ARROW: dict[Access | None, str] = {"read": " -> {}", "write": " <- {}", None: ""}
_HOST_ARROW: dict[Access | None, str] = {"read": "host <- ", "write": "host -> ", None: ""}


class Combination(msgspec.Struct, frozen=True):
    """How the host and the device access one buffer together. A side that is None does nothing."""

    host: Access | None
    device: Access | None

    def name(self, device: str = "device") -> str:
        return self.title(device).replace(" -> ", "_to_").replace(" <- ", "_from_")

    def title(self, device: str = "device") -> str:
        return f"{_HOST_ARROW[self.host]}buffer{_DEVICE_ARROW[self.device]}".format(device)


TOGETHER = (
    Combination("read", "write"),
    Combination("write", "read"),
    Combination("write", "write"),
    Combination("read", "read"),
)
DEVICE_ALONE = (Combination(None, "write"), Combination(None, "read"))
HOST_ALONE = (Combination("write", None), Combination("read", None))
EVERYTHING = (*TOGETHER, *DEVICE_ALONE, *HOST_ALONE)


class BufferUsers(msgspec.Struct, frozen=True):
    """A buffer's users: a device's `engine` (`cuda:0.sm`), and host `threads` (`host:0.cpu*7`)."""

    label: str
    memory: str
    engine: str
    node: int
    threads: str

    def transfers(self, combination: Combination) -> str:
        terms = (_DEVICE.get(combination.device), _HOST.get(combination.host))
        staging = f"host:{self.node}/staging"
        joined = " & ".join(term for term in terms if term)
        return joined.format(s=staging, d=self.memory, D=self.engine, H=self.threads)


def sides_of(
    fabric: DeviceSet, kind: str, streams: int, threads: int | None = None
) -> tuple[BufferUsers, ...]:
    """Returns the buffer's users for each device. On backend host, threads replace the device.
    Raises InputError if there is no device or the engine is unknown."""
    if fabric.backend == "host":
        return (_of_host(fabric.nodes, streams, threads),)
    if kind not in ("sm", "ce"):
        raise InputError(f"unknown engine {kind!r}: a device copies by sm or ce")
    if not fabric.devices:
        raise InputError(f"{fabric.reason}: --backend host uses threads instead of a device")
    return tuple(_of_device(device, fabric.nodes, kind, threads) for device in fabric.devices)


def make_pieces(size: int, payload: int, streams: int) -> Pieces:
    """Returns the pieces in which a device copies. `size` and `payload` are in bytes. Raises
    InputError for values that no device supports."""
    if payload not in PAYLOADS:
        raise InputError(f"payload of {payload} bytes: a kernel accesses 128, 256 or 512 bytes")
    if size % payload or size > LARGEST_PIECE:
        most = format_size(LARGEST_PIECE)
        raise InputError(f"--piece {size}: give a multiple of {payload} bytes, at most {most}")
    if not 1 <= streams <= MOST_STREAMS:
        raise InputError(f"{streams} streams: give 1 to {MOST_STREAMS}")
    return Pieces(size, streams, payload)


def _of_device(
    device: Device, nodes: Sequence[Node], kind: str, threads: int | None
) -> BufferUsers:
    """Returns a buffer's users. By default, one CPU of the node is left to start device work."""
    node = _threads_node(nodes, device.near)
    count = threads or max(1, len(node.cpus) - 1)
    engine = f"{device.memory}.{kind}"
    of_host = f"host:{node.index}.cpu*{count}"
    return BufferUsers(device.memory, device.memory, engine, device.near, of_host)


def _of_host(nodes: Sequence[Node], streams: int, threads: int | None) -> BufferUsers:
    """Returns users without a device: one thread for each stream, at most half as many as CPUs."""
    node = nodes[0]
    half = max(1, len(node.cpus) // 2)
    place = f"host:{node.index}"
    engines = (f"{place}.cpu*{min(streams, half)}", f"{place}.cpu*{threads or half}")
    return BufferUsers("host", place, engines[0], node.index, engines[1])


def _threads_node(nodes: Sequence[Node], near: int) -> Node:
    """Returns the node near the device, or the largest node if it has far more CPUs."""
    largest = max(nodes, key=lambda node: len(node.cpus))
    own = next((node for node in nodes if node.index == near), largest)
    return largest if _SMALL * len(own.cpus) < len(largest.cpus) else own


def lay_out(
    combinations: Sequence[Combination], sides: Sequence[BufferUsers], backend: str
) -> tuple[Benchmark, ...]:
    """Returns benchmarks of host and device together and of each alone. Devices are columns."""
    together = [c for c in combinations if c.host and c.device]
    of_device = [c for c in combinations if not c.host]
    of_host = [c for c in combinations if not c.device]
    groups = (
        ("host_traffic", "host threads and device at one buffer", PARTS, together),
        ("host_traffic_device_alone", "device at a staging buffer", (), of_device),
        ("host_traffic_host_alone", "host threads at a staging buffer", (), of_host),
    )
    found: list[Benchmark] = []
    for name, title, parts, own in groups:
        cells = tuple(_cell(combination, side) for combination in own for side in sides)
        if own:
            found.append(Benchmark(name, title, backend, cells, parts=parts, sweep=True))
    return tuple(found)


def _cell(combination: Combination, sides: BufferUsers) -> Cell:
    transfers = parse_transfers(sides.transfers(combination))
    report = Report.SUM if len(transfers) > 1 else Report.FIRST
    return Cell(combination.title(), sides.label, transfers, report)


class Volume(msgspec.Struct, frozen=True):
    """The bytes that each side (`host`, `device`) moved in all samples. `seconds` is the device's
    time, or the host's time if the host was alone."""

    seconds: float
    moved: dict[str, float]

    def rate(self, side: str) -> float:
        return self.moved[side] / self.seconds


def volume_of(cell: CellResult) -> Volume | None:
    if not cell.samples or cell.bytes is None or cell.loops is None:
        return None
    first = cell.parts[0] if cell.parts else cell
    each = (first.bytes or 0) * cell.loops
    seconds = [each / rate for rate in first.samples]
    own = float(each * len(seconds))
    if len(cell.transfers[0].memories) == 1:
        return Volume(sum(seconds), {"host": own})
    of_host = ({"host": sum(map(mul, part.samples, seconds))} for part in cell.parts[1:])
    return Volume(sum(seconds), next(of_host, {}) | {"device": own})


def gigabits(rate: float) -> str:
    return f"{rate * 8e-9:.2f}"


def objection(
    cell: CellResult, least_device: float, least_host: float, *, device: str = "device"
) -> str | None:
    """Returns a message if a rate is below its minimum in bytes/s (0: no minimum), else None."""
    volume = volume_of(cell)
    if volume is None:
        return None
    for side, name, least in (("device", device, least_device), ("host", "host", least_host)):
        if side in volume.moved and (rate := volume.rate(side)) < least:
            return f"{name} bandwidth {gigabits(rate)} Gb/s, at least {gigabits(least)} expected"
    return None


class StagedTraffic(msgspec.Struct, frozen=True, tag=True):
    """The staged traffic test. The device has `streams` streams on its engine `by` (sm, ce)."""

    by: str = "sm"
    streams: int = 32
    threads: int | None = None
    repeat: int = 1

    is_across_ranks: ClassVar[bool] = False
    of_one_process: ClassVar[tuple[str, ...]] = ()

    def accelerators(self, request: RunRequest) -> tuple[str, ...]:
        return choose_backends(request.backends, request.settings.simulation)

    def lay_out(self, request: RunRequest, machine: Machine) -> tuple[Benchmark, ...]:
        over = next(iter(request.over(machine)), DeviceSet("host", machine.host.nodes))
        sides = sides_of(over, self.by, self.streams, self.threads)
        return lay_out(EVERYTHING, sides, over.backend) * self.repeat
