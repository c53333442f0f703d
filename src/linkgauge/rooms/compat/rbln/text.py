"""Prints as rblnBandwidthLatencyTest, in the layout of its manual page."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from linkgauge.model.hardware.inventory import Inventory, PciFunction, PciLink
from linkgauge.model.hardware.machine import Device, Machine
from linkgauge.model.hardware.pcie import PciTree, generation

from ..copy_cells import NONE, shown

LATENCY = "Device P2P sync latency (us)"
_CORNER = r"S \\ D"
"""The corner of the matrix; the manual page has both backslashes."""
_BAR = "=" * 78
_RULE = "-" * 33
_INDENT = " " * 35
_NODE_INDENT = " " * 4


class PathFigure(msgspec.Struct, frozen=True):
    """The samples of a path, one for each iteration: bytes/s, or seconds if `bytes` is None."""

    tag: str
    path: str
    samples: tuple[float, ...]
    bytes: int | None = None

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.samples) if self.samples else None


def label(end: Device | None) -> str:
    return "HOST" if end is None else f"rbln{end.index}"


def banner(what: str, name: str) -> str:
    return f"{_BAR}\n[{what:>9} ] : {name}\n{_BAR}"


def title(heading: str) -> tuple[str, ...]:
    return _RULE, heading, _RULE


def bandwidth_line(figure: PathFigure) -> str:
    """Formats a bandwidth: `[D2D] rbln0 -> rbln1 : MAX 10.29, MIN 10.29, AVG 10.29`."""
    if figure.mean is None:
        return f"[{figure.tag}] {figure.path} : {NONE}"
    most, least = max(figure.samples), min(figure.samples)
    return (
        f"[{figure.tag}] {figure.path} : "
        f"MAX {most / 1e9:.2f}, MIN {least / 1e9:.2f}, AVG {figure.mean / 1e9:.2f}"
    )


def latency_line(figure: PathFigure) -> str:
    return f"{figure.path} {shown(None if figure.mean is None else figure.mean * 1e6, '.2f')} (us)"


def performance(figures: Iterable[PathFigure], kind: int) -> Iterator[str]:
    """Yields the lines of --get_perf: the mean time of iterations (`kind` 1) or each time (2)."""
    for figure in figures if kind else ():
        times = [
            sample if figure.bytes is None else figure.bytes / sample for sample in figure.samples
        ]
        name = f"[PERF] [{figure.tag}] {figure.path}"
        if kind == 1 and times:
            yield f"{name} : average {statistics.fmean(times) * 1e6:.2f} (us)"
        elif kind == 2:
            for number, time in enumerate(times):
                yield f"{name} #{number} : {time * 1e6:.2f} (us)"


def matrix(names: Sequence[str], rows: Sequence[Sequence[float | None]]) -> Iterator[str]:
    """Yields the lines of a matrix in GB/s. `rows` has bytes/s by source, then destination."""
    side = max(map(len, names))
    widths = [max(6 if name == "HOST" else 7, len(name) + 2) for name in names]
    texts = [[shown(None if rate is None else rate / 1e9, ".2f") for rate in row] for row in rows]
    for head, row in zip((_CORNER, *names), (names, *texts), strict=True):
        yield head.ljust(side) + "".join(map(str.rjust, row, widths))


def distances(machine: Machine, devices: Sequence[Device]) -> Iterator[str]:
    tree = machine.pci_tree
    yield "P2P Connectivity Distance"
    for one in devices:
        hops = (shown(_distance(tree, one, other), "") for other in devices)
        yield f"{label(one):<9}" + "".join(f"{hop:>4}" for hop in hops)


def _distance(tree: PciTree, one: Device, other: Device) -> int | None:
    if one == other:
        return 0
    return tree.distance(one.pci, other.pci) if one.pci and other.pci else None


def environment(machine: Machine, devices: Sequence[Device], *, links: bool) -> Iterator[str]:
    found = machine.known
    vendor = found.host.cpu_vendor or NONE
    yield f"CPU : {machine.host.cpu_model or NONE}, Vendor ID : {vendor}"
    yield "Device :"
    tree = machine.pci_tree
    for line, below in groupby(devices, lambda device: _line_above(tree, device)):
        if line:
            yield _bridge_line(line)
        for device in below:
            function = tree.functions.get(device.pci or "")
            yield (_NODE_INDENT if line else "") + _device_line(device, function)
            if links:
                yield from _link_lines(function, _link(found, device, function))


def _line_above(tree: PciTree, device: Device) -> tuple[PciFunction, ...]:
    """Returns the bridges above a device from the root on, without switches' downstream ports."""
    above = tree.above(device.pci or "")[::-1]
    return tuple(f for n, f in enumerate(above) if n == 0 or f.port != "downstream port")


def _bridge_line(line: Sequence[PciFunction]) -> str:
    root, *switches = line
    address = "/".join([root.address, *(f.address.partition(":")[2] for f in switches)])
    last = line[-1]
    name = last.name or f"Device {shown(last.vendor, '04x')}:{shown(last.device, '04x')}"
    revision = f" (rev {last.revision:02x})" if last.revision is not None else ""
    return f"{address} PCI bridge: {name}{revision}"


def _device_line(device: Device, function: PciFunction | None) -> str:
    f = function or PciFunction(address=device.pci or NONE)
    node = device.near if f.numa_node is None else f.numa_node
    return (
        f"{f.address} NODE {device.index}, {label(device)}, {device.model}"
        f"(rev-{shown(f.revision, '02x')}), pciDevID: {shown(f.device, '#06x')}, NUMA: {node}, "
        f"IOMMU: {shown(f.iommu_group, '')}"
    )


def _link(found: Inventory, device: Device, function: PciFunction | None) -> PciLink:
    if function is not None and function.link.speed is not None:
        return function.link
    links = (one.link for one in found.accelerators if one.memory == device.memory)
    return next(links, PciLink())


def _link_lines(function: PciFunction | None, link: PciLink) -> Iterator[str]:
    now = _shape(link.speed, link.width)
    most = _shape(link.max_speed, link.max_width)
    yield (
        f"{_INDENT}PCIe full bandwidth {now[0]} GB/s (MAX: {most[0]}), "
        f"PCIe Gen {now[1]} (MAX: {most[1]}), {now[2]} lane (MAX: {most[2]})"
    )
    payload = (function and function.max_payload) or NONE
    request = (function and function.max_read_request) or NONE
    yield f"{_INDENT}MaxPayload {payload} bytes, MaxReadReq {request} bytes"


def _shape(speed: float | None, width: int | None) -> tuple[object, object, object]:
    """Returns the raw rate in GB/s (32 GT/s × 16 lanes ÷ 8 = 64.0), the generation and lanes."""
    rate = f"{speed * width / 8:.1f}" if speed and width else NONE
    return rate, (generation(speed) if speed else None) or NONE, width or NONE
