"""Reads tools that measure a host's memory and CPUs: STREAM, Intel's Memory Latency Checker, and
sysbench cpu."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from linkgauge.model.operations.operation import PRIMES, ArrayOperation
from linkgauge.model.transfer import Report
from linkgauge.model.units import LATENCY, RATE, STREAM

from ..lines import PrintedGrid, grid_at
from ..told import Found, HostFigure, ToldFigure, found_figures, together

_RATE = r"\d{1,14}(?:\.\d{0,9})?"
_STREAM = re.compile(rf"\s*(Copy|Scale|Add|Triad):\s+({_RATE})(?:\s+{_RATE}){{3}}")
_SIZE = re.compile(r"\s*Array size = (\d{1,12}) \(elements\)")
_ELEMENT = re.compile(r"\s*This system uses (\d{1,2}) bytes per array element")
_MLC = re.compile(r"Intel\(R\) Memory Latency Checker - v(\S{1,20})")
_MLC_RATE = re.compile(rf"\s*(ALL Reads|\d:\d Reads-Writes|Stream-triad like)\s*:\s+({_RATE})")
_SYSBENCH = re.compile(r"\s*events per second:\s+(\d{1,14}(?:\.\d{0,9})?)")
_THREADS = re.compile(r"\s*Number of threads: (\d{1,5})")
_LIMIT = re.compile(r"\s*Prime numbers limit: (\d{1,9})")
_KINDS: dict[str, ArrayOperation] = {
    "Copy": "stream-copy", "Scale": "stream-scale", "Add": "stream-add", "Triad": "stream-triad",
}  # fmt: skip


def _stream(lines: Sequence[str]) -> Found | None:
    rates = {n: match for n, line in enumerate(lines) if (match := _STREAM.match(line))}
    if not rates:
        return None
    elements = next((int(m[1]) for line in lines if (m := _SIZE.match(line))), 10_000_000)
    each = next((int(m[1]) for line in lines if (m := _ELEMENT.match(line))), 8)
    figures = [
        ToldFigure(
            f"memory_stream_{match[1].lower()}", "all", "all", float(match[2]) * 1e6,
            max(elements * each, 1),
            host=HostFigure("host:0 -> host:0 by cpu", STREAM.symbol, operation=_KINDS[match[1]]),
        )
        for match in rates.values()
    ]  # fmt: skip
    return found_figures("STREAM", figures, rates)


def _mlc(lines: Sequence[str]) -> Found | None:
    version = next((match[1] for line in lines if (match := _MLC.search(line))), None)
    if version is None:
        return None
    figures, used = list[ToldFigure](), set[int]()
    for number, line in enumerate(lines):
        if re.match(r"Measuring (?:idle latencies|Memory Bandwidths between nodes)", line):
            places = range(number + 1, number + 6)
            grid = next((grid for at in places if (grid := grid_at(lines, at))), None)
            if grid is not None:
                used |= grid.lines
                figures += _of_nodes(grid, "latencies" in line)
        elif match := _MLC_RATE.match(line):
            used.add(number)
            if match[1] == "ALL Reads":
                place, rate = ("memory_reads", "all", "all"), float(match[2]) * 1e6
                cell = HostFigure("host:0 -> null by cpu")
                figures.append(ToldFigure(*place, rate, 1 << 30, host=cell))
    return found_figures("Intel MLC", figures, used, version)


def _of_nodes(grid: PrintedGrid, is_latency: bool) -> Iterator[ToldFigure]:
    for (cpus, memory), figure in grid.figures.items():
        if figure is None or cpus > 63 or memory > 63:
            continue
        work = f"host:{memory} -> null by host:{cpus}.cpu"
        name, scale, size, cell = "host_to_host_memcpy_read_cpu", 1e6, 1 << 30, HostFigure(work)
        if is_latency:
            cell = HostFigure(f"{work}*1", LATENCY.symbol, Report.LATENCY, "chase")
            name, scale, size = "memory_latency_nodes", 1e-9, 1 << 28
        yield ToldFigure(name, str(cpus), str(memory), figure * scale, size, host=cell)


def _sysbench(lines: Sequence[str]) -> Found | None:
    rates = {n: match for n, line in enumerate(lines) if (match := _SYSBENCH.match(line))}
    if not rates or not any(
        "sysbench" in line.lower() or "Prime numbers" in line for line in lines
    ):
        return None
    threads = next((int(m[1]) for line in lines if (m := _THREADS.match(line))), 1)
    limits = (int(m[1]) for line in lines if (m := _LIMIT.match(line)))
    asked = next(limits, 10_000)
    searches = {most: operation for operation, most in PRIMES.items()}
    if asked not in searches:
        return None
    name = "cpu_primes_single" if threads == 1 else "cpu_primes_all"
    work = f"null -> null by host:0.cpu*{max(threads, 1)}"
    figures = [
        ToldFigure(name, "all", str(threads), float(match[1]), 1,
             host=HostFigure(work, RATE.symbol, operation=searches[asked]))
        for match in rates.values()
    ]  # fmt: skip
    return found_figures("sysbench cpu", figures, rates)


read = together(_stream, _mlc, _sysbench)
