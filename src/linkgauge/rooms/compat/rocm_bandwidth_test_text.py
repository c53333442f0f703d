"""The output of rocm-bandwidth-test, line by line, in its columns."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from linkgauge.cli.tool import Context
from linkgauge.model.documents.result import CellResult
from linkgauge.model.hardware.machine import Device
from linkgauge.model.notation import parse_memory

VERSION = "2.6.0"
SAMPLES = 5
"""The tool's four iterations and one, of which the mean leaves out the longest."""
NONE = "N/A"
_INDENT = " " * 10
_HEADS = ("Data Size", "Avg Time(us)", "Avg BW(GB/s)", "Min Time(us)", "Peak BW(GB/s)")
Path = tuple[int, int]
"""The numbers of source and destination."""


class Record(msgspec.Struct, frozen=True):
    """Seconds of each copy and the bytes that one counts; no `times` if nothing was measured."""

    times: tuple[float, ...]
    counted: int

    @classmethod
    def of(cls, cell: CellResult, path: Path, both: bool) -> Record:
        """Of a path by itself; within a device every byte is read and written."""
        moved = cell.bytes or 0
        times = tuple(moved / rate for rate in cell.samples if cell.status == "pass")
        return cls(times, moved * (2 if path[0] == path[1] and not both else 1))

    @classmethod
    def joint(cls, samples: Sequence[Sequence[float]], size: int) -> Record:
        """Of copies of `size` bytes, given the rates of each: together they take the longest."""
        times = tuple(max(size / rate for rate in rates) for rates in zip(*samples, strict=True))
        return cls(times, size * len(samples))

    @property
    def mean(self) -> float:
        return statistics.fmean(sorted(self.times)[: max(1, len(self.times) - 1)])

    @property
    def least(self) -> float:
        return min(self.times)

    def rate(self, seconds: float) -> float:
        """GB/s."""
        return self.counted / seconds / 1e9


def version(command: str) -> Iterator[str]:
    yield from ("", f"{_INDENT}RocmBandwidthTest Version: {VERSION}")
    yield from ("", f"{_INDENT}Launch Command is: {command}", "")


def _size(size: int) -> str:
    if size < 1 << 10:
        return f"{size} Bytes"
    return f"{size >> 10} KB" if size < 1 << 20 else f"{size >> 20} MB"


def banner(path: Path, kinds: Sequence[str], *, both: bool) -> Iterator[str]:
    bar = "=" * 16
    yield from ("", f"{bar}    {'Bi' if both else 'Uni'}directional Benchmark Result    {bar}")
    for end, number, kind in zip(("Src", "Dst"), path, kinds, strict=True):
        yield f"{bar} {end} Device Id: {number} {end} Device Type: {kind} {bar}"
    yield ""


def table(sizes: Sequence[int], records: Sequence[Record]) -> Iterator[str]:
    """A line a size; of one that was not measured, N/A."""
    yield "".join(f"{head:<15}" for head in _HEADS)
    for size, record in zip(sizes, records, strict=True):
        figures = [NONE] * 4
        if record.times:
            seconds = (record.mean, record.least)
            figures = [f for s in seconds for f in (f"{s * 1e6:.3f}", f"{record.rate(s):.3f}")]
        yield "".join(f"{text:<15}" for text in (_size(size), *figures))


def devices(context: Context) -> Iterator[str]:
    yield ""
    names = [context.machine.host.cpu_model or "CPU"] * len(context.machine.host.nodes)
    for number, name in enumerate((*names, *map(_described, context.devices))):
        yield f"{_INDENT}Device: {number},  {name}"
    yield ""


def _described(device: Device) -> str:
    return f"{device.model},  {_uuid(device)},  {_bdf(device)}"


def _uuid(device: Device) -> str:
    return device.uuid or "GPU-XX"


def _bdf(device: Device) -> str:
    return "N/A" if device.pci is None else device.pci.partition(":")[2]


def _grid(title: str, rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """A matrix over all devices, with an empty line after each row."""
    yield from (f"{_INDENT}{title}", "")
    yield _INDENT + f"{'D/D':<10}" + "".join(f"{n:<{width}}" for n in range(len(rows)))
    yield ""
    for number, row in enumerate(rows):
        yield _INDENT + f"{number:<10}" + "".join(f"{text:<{width}}" for text in row)
        yield ""


def matrix(count: int, records: Mapping[Path, Record], *, both: bool) -> Iterator[str]:
    """Peak rates; both ways at once, the matrix is symmetric."""
    known = {path: record for path, record in records.items() if record.times}
    if both:
        known |= {path[::-1]: record for path, record in known.items()}
    rows = [
        [
            f"{known[one, other].rate(known[one, other].least):.3f}"
            if (one, other) in known
            else NONE
            for other in range(count)
        ]
        for one in range(count)
    ]
    title = f"{'Bi' if both else 'Uni'}directional copy peak bandwidth GB/s"
    yield from _grid(title, rows, 12)


def validation(count: int, cells: Mapping[Path, CellResult]) -> Iterator[str]:
    words = {"pass": "PASS", "fail": "FAIL", "skip": NONE}
    rows = [
        [
            words.get(cells[one, other].status, "FAIL") if (one, other) in cells else NONE
            for other in range(count)
        ]
        for one in range(count)
    ]
    yield from _grid("Data Path Validation", rows, 12)


def access(
    count: int, cells: Mapping[Path, CellResult], is_device: Callable[[int], bool]
) -> Iterator[str]:
    """1 where a copy is possible, 0 where it is not, N/A where none was tried. Nodes reach each
    other; between the host and a device, the device's engine copies."""

    def reached(one: int, other: int) -> str:
        cell = cells.get((one, other), cells.get((other, one)))
        if one == other or not (is_device(one) or is_device(other)):
            return "1"
        if cell is None:
            return NONE
        if cell.status != "skip":
            return "1"
        return "0" if cell.kind in ("peer", "unsupported") else NONE

    numbers = range(count)
    rows = [[reached(one, other) for other in numbers] for one in numbers]
    yield from _grid("Inter-Device Access", rows, 10)


def distances(context: Context) -> Iterator[str]:
    """The kernel's distances of the nodes, and of a device those of the node near it."""
    inventory = context.machine.known
    known = {} if inventory.host is None else inventory.host.distances
    nodes = [node.index for node in context.machine.host.nodes]
    near = [*nodes, *(device.near for device in context.devices)]
    rows = [
        [
            "0" if one == other else _distance(known, nodes, near[one], near[other])
            for other in range(len(near))
        ]
        for one in range(len(near))
    ]
    yield from _grid("Inter-Device Numa Distance", rows, 10)


def _distance(
    known: Mapping[int, Sequence[int]], nodes: Sequence[int], one: int, other: int
) -> str:
    if one not in known or other not in nodes:
        return NONE
    at = nodes.index(other)
    return str(known[one][at]) if at < len(known[one]) else NONE


def topology(context: Context, *, links: bool) -> Iterator[str]:
    """All devices with their memory, then the kinds of links between them."""
    yield ""
    nodes = context.machine.host.nodes
    name = context.machine.host.cpu_model or "CPU"
    for number, node in enumerate(nodes):
        yield from _device(number, "CPU", (("Name", name),), node.memory_total)
    for number, device in enumerate(context.devices, len(nodes)):
        known = (("Name", device.model), (" BDF", _bdf(device)), ("UUID", _uuid(device)))
        yield from _device(number, "GPU", known, device.memory_bytes)
    yield ""
    if links:
        yield from _link_kinds(context)
        yield from distances(context)


def _device(
    number: int, kind: str, known: Sequence[tuple[str, str]], memory: int | None
) -> Iterator[str]:
    rows = [("Device Index:", str(number)), ("  Device Type:", kind)]
    rows += [(f"  Device {what}:", value) for what, value in known]
    size = NONE if memory is None else str(memory >> 10)
    rows.append(("    Allocatable Memory Size (KB):", size))
    for what, value in rows:
        yield f"{_INDENT}{what:<42}{value}"
    yield ""


def _link_kinds(context: Context) -> Iterator[str]:
    """X for a fabric of the devices' own (xGMI, NVLink and the like), as far as it is known."""
    inventory = context.machine.known
    ends = {
        accelerator.memory: {link.remote for link in accelerator.links if link.remote}
        for accelerator in inventory.accelerators
    }
    nodes = [f"host:{node.index}" for node in context.machine.host.nodes]
    memories = [*nodes, *(str(parse_memory(d.memory)) for d in context.devices)]

    def kind(one: str, other: str) -> str:
        if one == other or (one in nodes and other in nodes):
            return NONE
        reached, back = ends.get(one, set()), ends.get(other, set())
        joined = one in back or other in reached
        switches = {end for end in reached & back if end not in memories}
        return "X" if joined or switches else "P"

    title = "Inter-Device Link Type: P = PCIe, X = xGMI, N/A = Not Applicable"
    yield from _grid(title, [[kind(one, other) for other in memories] for one in memories], 10)
