"""Writes the output of rocm-bandwidth-test line by line, in its columns."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from linkgauge.cli.tool import Context
from linkgauge.model.documents.result import CellResult
from linkgauge.model.hardware.machine import Device
from linkgauge.model.notation import parse_memory

from ..copy_cells import NONE, Repetitions, shown

VERSION = "2.6.0"
SAMPLES = 5
"""The number of iterations: the tool has four, and one more because the mean leaves out the
longest."""
_INDENT = " " * 10
_HEADS = ("Data Size", "Avg Time(us)", "Avg BW(GB/s)", "Min Time(us)", "Peak BW(GB/s)")
Path = tuple[int, int]
"""The numbers of the source and the destination."""


def mean(record: Repetitions) -> float:
    """Returns the mean of all times except the longest."""
    return statistics.fmean(sorted(record.times)[: max(1, len(record.times) - 1)])


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


def table(sizes: Sequence[int], records: Sequence[Repetitions]) -> Iterator[str]:
    """Yields the table, with a line for each size. A size that was not measured shows N/A."""
    yield "".join(f"{head:<15}" for head in _HEADS)
    for size, record in zip(sizes, records, strict=True):
        figures = [NONE] * 4
        if record.times:
            seconds = (mean(record), min(record.times))
            figures = [f for s in seconds for f in (f"{s * 1e6:.3f}", f"{record.rate_of(s):.3f}")]
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
    return NONE if device.pci is None else device.pci.partition(":")[2]


def _grid(title: str, count: int, text: Callable[[int, int], str], width: int) -> Iterator[str]:
    """Yields a matrix over `count` devices, with an empty line after each row."""
    yield from (f"{_INDENT}{title}", "")
    yield _INDENT + f"{'D/D':<10}" + "".join(f"{n:<{width}}" for n in range(count))
    yield ""
    for one in range(count):
        texts = (text(one, other) for other in range(count))
        yield _INDENT + f"{one:<10}" + "".join(f"{each:<{width}}" for each in texts)
        yield ""


def matrix(count: int, records: Mapping[Path, Repetitions], *, both: bool) -> Iterator[str]:
    """Yields a matrix of peak rates. If copies go both ways at once, the matrix is symmetric."""
    known = {path: record for path, record in records.items() if record.times}
    if both:
        known |= {path[::-1]: record for path, record in known.items()}

    def peak(one: int, other: int) -> str:
        record = known.get((one, other))
        return shown(None if record is None else max(record.rates), ".3f")

    title = f"{'Bi' if both else 'Uni'}directional copy peak bandwidth GB/s"
    yield from _grid(title, count, peak, 12)


def validation(count: int, cells: Mapping[Path, CellResult]) -> Iterator[str]:
    words = {"pass": "PASS", "fail": "FAIL", "skip": NONE}

    def word(one: int, other: int) -> str:
        cell = cells.get((one, other))
        return NONE if cell is None else words.get(cell.status, "FAIL")

    yield from _grid("Data Path Validation", count, word, 12)


def access(
    count: int, cells: Mapping[Path, CellResult], is_device: Callable[[int], bool]
) -> Iterator[str]:
    """Yields a matrix of access: 1 if a copy is possible, 0 if not, N/A if no copy was tried. Nodes
    can always reach each other. A device's engine copies between the host and the device."""

    def reached(one: int, other: int) -> str:
        cell = cells.get((one, other), cells.get((other, one)))
        if one == other or not (is_device(one) or is_device(other)):
            return "1"
        if cell is None:
            return NONE
        if cell.status != "skip":
            return "1"
        return "0" if cell.kind in ("peer", "unsupported") else NONE

    yield from _grid("Inter-Device Access", count, reached, 10)


def distances(context: Context) -> Iterator[str]:
    """Yields the distances between nodes that the kernel reports. A device has the distances of its
    nearest node."""
    near = [node.index for node in context.machine.host.nodes]
    near += [device.near for device in context.devices]

    def distance(one: int, other: int) -> str:
        ends = (f"host:{near[end]}" for end in (one, other))
        return "0" if one == other else shown(context.machine.wiring.distance(*ends), "")

    yield from _grid("Inter-Device Numa Distance", len(near), distance, 10)


def topology(context: Context, *, links: bool) -> Iterator[str]:
    """Yields lines on all devices with their memory, then the kinds of links between them."""
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
    size = None if memory is None else memory >> 10
    rows.append(("    Allocatable Memory Size (KB):", shown(size, "")))
    for what, value in rows:
        yield f"{_INDENT}{what:<42}{value}"
    yield ""


def _link_kinds(context: Context) -> Iterator[str]:
    """Yields the matrix of links. X marks a connection by a fabric of the devices, such as xGMI or
    NVLink, if it is known."""
    inventory = context.machine.known
    ends = {
        accelerator.memory: {link.remote for link in accelerator.links if link.remote}
        for accelerator in inventory.accelerators
    }
    nodes = [f"host:{node.index}" for node in context.machine.host.nodes]
    memories = [*nodes, *(str(parse_memory(d.memory)) for d in context.devices)]

    def kind(row: int, column: int) -> str:
        one, other = memories[row], memories[column]
        if one == other or (one in nodes and other in nodes):
            return NONE
        reached, back = ends.get(one, set()), ends.get(other, set())
        joined = one in back or other in reached
        switches = {end for end in reached & back if end not in memories}
        return "X" if joined or switches else "P"

    title = "Inter-Device Link Type: P = PCIe, X = xGMI, N/A = Not Applicable"
    yield from _grid(title, len(memories), kind, 10)
