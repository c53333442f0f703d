"""Reads tools that measure a host's memory and CPUs: STREAM, Intel's Memory Latency Checker, and
sysbench cpu."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from linkgauge.model.operations.operation import PRIMES, ArrayOperation
from linkgauge.model.transfer import Report
from linkgauge.model.units import LATENCY, RATE, STREAM

from ..lines import DECIMAL, Grid
from ..told import Found, HostFigure, TextScan, ToldFigure, together

_STREAM = re.compile(rf"\s*(Copy|Scale|Add|Triad):\s+({DECIMAL})(?:\s+{DECIMAL}){{3}}")
_SIZE = re.compile(r"\s*Array size = (\d{1,12}) \(elements\)")
_ELEMENT = re.compile(r"\s*This system uses (\d{1,2}) bytes per array element")
_MLC = re.compile(r".*?Intel\(R\) Memory Latency Checker - v(\S{1,20})")
_MLC_RATE = re.compile(rf"\s*(ALL Reads|\d:\d Reads-Writes|Stream-triad like)\s*:\s+({DECIMAL})")
_MLC_GRID = re.compile(r"Measuring (?:idle latencies|Memory Bandwidths between nodes)")
_SYSBENCH = re.compile(rf"\s*events per second:\s+({DECIMAL})")
_THREADS = re.compile(r"\s*Number of threads: (\d{1,5})")
_LIMIT = re.compile(r"\s*Prime numbers limit: (\d{1,9})")
_KINDS: dict[str, ArrayOperation] = {
    "Copy": "stream-copy", "Scale": "stream-scale", "Add": "stream-add", "Triad": "stream-triad",
}  # fmt: skip


def _stream(lines: Sequence[str]) -> Found | None:
    seen = TextScan(lines)
    size = int(seen.first(_SIZE, "10000000")) * int(seen.first(_ELEMENT, "8"))
    for _, match in seen.each(_STREAM):
        kind = _KINDS[match[1]]
        cell = HostFigure("host:0 -> host:0 by cpu", STREAM.symbol, operation=kind)
        place = f"memory_{kind.replace('-', '_')}", "all", "all"
        seen.figures.append(ToldFigure(*place, float(match[2]) * 1e6, max(size, 1), host=cell))
    return seen.log("STREAM") if seen.figures else None


def _mlc(lines: Sequence[str]) -> Found | None:
    seen = TextScan(lines)
    version = seen.first(_MLC)
    for number, match in seen.each(_MLC_GRID, _MLC_RATE) if version else ():
        if match.re is _MLC_GRID:
            grids = (seen.grid(at) for at in range(number + 1, number + 6))
            seen.figures += _of_nodes(next(filter(None, grids), {}), "latencies" in match[0])
        elif match[1] == "ALL Reads":
            place, rate = ("memory_reads", "all", "all"), float(match[2]) * 1e6
            cell = HostFigure("host:0 -> null by cpu")
            seen.figures.append(ToldFigure(*place, rate, 1 << 30, host=cell))
    return seen.log("Intel MLC", version) if seen.figures else None


def _of_nodes(grid: Grid, is_latency: bool) -> Iterator[ToldFigure]:
    for (cpus, memory), figure in grid.items():
        if figure is None or cpus > 63 or memory > 63:
            continue
        work = f"host:{memory} -> null by host:{cpus}.cpu"
        name, scale, size, cell = "host_to_host_memcpy_read_cpu", 1e6, 1 << 30, HostFigure(work)
        if is_latency:
            cell = HostFigure(f"{work}*1", LATENCY.symbol, Report.LATENCY, "chase")
            name, scale, size = "memory_latency_nodes", 1e-9, 1 << 28
        yield ToldFigure(name, str(cpus), str(memory), figure * scale, size, host=cell)


def _sysbench(lines: Sequence[str]) -> Found | None:
    if not any("sysbench" in line.lower() or "Prime numbers" in line for line in lines):
        return None
    seen = TextScan(lines)
    threads, limit = int(seen.first(_THREADS, "1")), int(seen.first(_LIMIT, "10000"))
    operation = next((name for name, most in PRIMES.items() if most == limit), None)
    if operation is None:
        return None
    name = "cpu_primes_single" if threads == 1 else "cpu_primes_all"
    work = f"null -> null by host:0.cpu*{max(threads, 1)}"
    cell = HostFigure(work, RATE.symbol, operation=operation)
    for _, match in seen.each(_SYSBENCH):
        seen.figures.append(ToldFigure(name, "all", str(threads), float(match[1]), 1, host=cell))
    return seen.log("sysbench cpu") if seen.figures else None


read = together(_stream, _mlc, _sysbench)
