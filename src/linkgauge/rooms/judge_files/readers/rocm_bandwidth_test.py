"""Reads AMD's rocm-bandwidth-test: matrices over CPUs and GPUs, which it numbers together, the CPUs
first. Its bidirectional figure is the rate of both ways together. Within a device it counts the
bytes read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from linkgauge.benchmarks.table import Layout, Row
from linkgauge.model.transfer import Report

from ..lines import PrintedGrid, grid_at
from ..told import MIB, Facts, Found, Log, ToldFigure, ToldGpu, copied

SIZE = 128 * MIB
_VERSION = re.compile(r"\s*RocmBandwidthTest Version: (\S{1,40})")
_DEVICE = re.compile(
    r"\s*Device: (\d{1,3}),\s+([^,]{1,100}?)(?:,\s+(?:\S{4,60},\s+)?"
    r"([0-9a-f]{1,4}:[0-9a-f]{1,2}(?:\.[0-9a-f])?))?\s*$"
)
_TITLE = re.compile(r"\s*(Unidirectional|Bi?directional) copy peak bandwidth GB/s\s*$")
_OTHER = re.compile(
    r"\s*(?:(?:Inter-)?Device (?:Access|Numa Distance)|Launch Command|\.{4,}"
    r"|Data (?:path|verification))"
)
_BOTH = Row(
    "host_to_device_bidirectional_memcpy_total",
    "memcpy CE host(row) <-> device(column), both ways",
    Layout.EACH_DEVICE, "h -> d by d.ce & d -> h by d.ce", Report.SUM,
)  # fmt: skip


def read(lines: Sequence[str]) -> Found | None:
    versions = [n for n, line in enumerate(lines) if _VERSION.match(line)]
    titles = {n: match for n, line in enumerate(lines) if (match := _TITLE.match(line))}
    if not versions and not titles:
        return None
    used, gpus, names = {*versions, *titles}, dict[int, ToldGpu](), dict[int, str]()
    for number, line in enumerate(lines):
        if match := _DEVICE.match(line):
            used.add(number)
            names[int(match[1])] = match[2].strip()
            if match[3]:
                gpus[int(match[1])] = ToldGpu(match[2].strip(), _address(match[3]))
        elif _OTHER.match(line):
            grid = grid_at(lines, number + 1)
            used |= {number} | (grid.lines if grid is not None else set())
    place = {index: at for at, index in enumerate(sorted(gpus))}
    figures = list[ToldFigure]()
    for number, title in titles.items():
        grid = grid_at(lines, number + 1)
        if grid is not None:
            used |= grid.lines
            figures += _figures(grid, place, title[1].startswith("B"))
    version = next((m[1] for line in lines if (m := _VERSION.match(line))), None)
    cpu = next((name for index, name in names.items() if index not in gpus), None)
    known = {place[index]: gpu for index, gpu in gpus.items()}
    log = Log("rocm-bandwidth-test", tuple(figures), version)
    return Found((log,), Facts(gpus=known, cpu_model=cpu), frozenset(used))


def _address(text: str) -> str:
    """Returns the PCI address for a text such as `0c:0.0`: bus, device and function."""
    bus, _, rest = text.partition(":")
    device, _, function = rest.rpartition(".") if "." in rest else (rest, "", "0")
    return (
        f"0000:{int(bus, 16) & 255:02x}:{int(device or '0', 16) & 31:02x}.{int(function, 16) & 7}"
    )


def _figures(grid: PrintedGrid, place: Mapping[int, int], both: bool) -> Iterator[ToldFigure]:
    """Yields the figures of pairs of GPUs, and the best figure of each GPU with a CPU. The matrix
    does not say which CPU is near."""
    hosts = sorted({a for a, _ in grid.figures} - place.keys())
    best = dict[tuple[str, int], float]()
    for (down, across), figure in grid.figures.items():
        if figure is None:
            continue
        if down in place and across in place:
            yield from _between(place[down], place[across], figure, both)
        elif down in hosts and across in place:
            key = "host_to_device_memcpy_ce", place[across]
            best[key] = max(best.get(key, 0.0), figure)
        elif down in place and across in hosts:
            key = "device_to_host_memcpy_ce", place[down]
            best[key] = max(best.get(key, 0.0), figure)
    for (name, index), figure in best.items():
        if not both:
            yield copied(name, 0, index, figure, SIZE)
        elif name.startswith("host"):
            yield copied(_BOTH.name, 0, index, figure, SIZE, _BOTH)


def _between(down: int, across: int, figure: float, both: bool) -> Iterator[ToldFigure]:
    if down == across:
        if not both:
            yield copied("device_local_copy", 0, across, figure / 2, SIZE)
        return
    way = "bidirectional_memcpy_write_ce" if both else "memcpy_write_ce"
    yield copied(f"device_to_device_{way}", down, across, figure, SIZE)
