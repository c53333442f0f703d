"""Emulates STREAM 5.10 (stream.c) and `sysbench cpu run` 1.0.20 (src/sysbench.c). For sysbench,
prints no minimum, maximum or percentile, because single events are not timed."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

import linkgauge
from linkgauge.benchmarks.memory_stream import array_work
from linkgauge.cli.tool import Where, helpful, opened, show
from linkgauge.cli.tool_options import ToolOptions, UsageError, digits, option, whole
from linkgauge.model.documents.result import CellResult
from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import NULL, host
from linkgauge.model.operations.operation import ARRAYS, PRIMES, ArrayOperation
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Engine, Report, Transfer
from linkgauge.model.units import RATE, STREAM

from .copy_cells import NONE, Meter, shown

Work = Callable[[Node, int], Transfer]


def _measured(
    where: Where, settings: Settings, count: int | None, works: Mapping[Any, Work]
) -> tuple[list[CellResult], int, int]:
    with opened(replace(where, backend="host"), settings) as context:
        nodes = [node for node in context.machine.host.nodes if node.cpus]
        most = sum(len(node.cpus) for node in nodes)
        count = most if count is None else count
        if not 0 < count <= most:
            raise UsageError(f"{count} threads: give 1 to {most}, the CPUs of this process")
        placed = [*_placed(nodes, count)]
        meter, cells = Meter(context), list[CellResult]()
        for operation, work in works.items():
            transfers = [work(node, own) for node, own in placed]
            several = Report.TOTAL if len(transfers) > 1 else Report.FIRST
            figure = (STREAM, several) if operation in ARRAYS else (RATE, Report.RATE)
            cells += meter.measure([transfers], operation, figure=figure)
        return cells, count, meter.exit_code


def _placed(nodes: Sequence[Node], count: int) -> Iterator[tuple[Node, int]]:
    for node in nodes:
        if own := min(count, len(node.cpus)):
            yield node, own
        count -= own


# STREAM.


STREAM_HELP = """\
Usage: stream [-DSTREAM_ARRAY_SIZE=N] [-DNTIMES=N]

Measures the memory bandwidth of all CPUs, or of OMP_NUM_THREADS threads. STREAM takes both values
when it is compiled: the elements of an array (10000000), and how often each kernel runs (10)."""


class StreamOptions(ToolOptions):
    elements: int = option("-DSTREAM_ARRAY_SIZE N", "", whole, 10_000_000, least=1024)
    times: int = option("-DNTIMES N", "", whole, 10, least=2)


_KERNELS: tuple[ArrayOperation, ...] = ("stream-copy", "stream-scale", "stream-add", "stream-triad")
_ARRAYS = {"copy": "c", "scale": "b", "add": "c", "triad": "a"}
"""The array of stream.c that each kernel writes."""
_LINE = "-" * 61
_STREAM_HEAD = f"""\
{_LINE}
STREAM version $Revision: 5.10 $
{_LINE}
This system uses 8 bytes per array element.
{_LINE}
Array size = {{elements}} (elements), Offset = 0 (elements)
Memory per array = {{0:.1f}} MiB (= {{1:.1f}} GiB).
Total memory required = {{2:.1f}} MiB (= {{3:.1f}} GiB).
Each kernel will be executed {{times}} times.
 The *best* time for each kernel (excluding the first iteration)
 will be used to compute the reported bandwidth.
{_LINE}
Number of Threads requested = {{threads}}
Number of Threads counted = {{threads}}
{_LINE}
Your clock granularity/precision appears to be 1 microseconds.
Each test below will take on the order of {{took}} microseconds.
   (= {{took}} clock ticks)
Increase the size of the arrays if this shows that
you are not getting at least 20 clock ticks per test.
{_LINE}
WARNING -- The above is only a rough guideline.
For best results, please be sure you know the
precision of your system timer.
{_LINE}
Function    Best Rate MB/s  Avg time     Min time     Max time"""


@helpful(STREAM_HELP)
def run_stream(arguments: Sequence[str], where: Where) -> int:
    given = StreamOptions.of(arguments)
    elements, times, size = given.elements, given.times, 8 * given.elements
    works = {name: _array_work(name) for name in _KERNELS}
    settings = Settings(sizes=(size,), samples=times - 1, loops=1)
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    cells, threads, code = _measured(where, settings, digits(asked), works)
    seconds = [[size * ARRAYS[cell.does.name].counted / rate for rate in cell.samples]
               for cell in cells]  # fmt: skip
    sums = (part / unit for part in (size, 3 * size) for unit in (1 << 20, 1 << 30))
    took = round(min(seconds[0], default=0.0) * 1e6)
    print(_STREAM_HEAD.format(*sums, elements=elements, times=times, threads=threads, took=took))
    show(map(_stream_line, cells, seconds), [_LINE], _validation(cells))
    return code


def _array_work(name: ArrayOperation) -> Work:
    return lambda node, own: array_work(ARRAYS[name].kind, node, node, own)


def _stream_line(cell: CellResult, seconds: Sequence[float]) -> str:
    label = f"{ARRAYS[cell.does.name].kind.title()}:"
    rate = max(cell.samples) / 1e6 if seconds else None
    times = (statistics.fmean(seconds), min(seconds), max(seconds)) if seconds else (None,) * 3
    shown_times = "".join(f"  {shown(one, '11.6f'):>11}" for one in times)
    return f"{label:<11}{shown(rate, '12.1f'):>12}{shown_times}"


def _validation(cells: Sequence[CellResult]) -> Iterator[str]:
    for cell in cells:
        if cell.status == "fail":
            array = _ARRAYS[ARRAYS[cell.does.name].kind]
            yield f"Failed Validation on array {array}[], AvgRelAbsErr > epsilon (1.000000e-13)"
            yield _LINE
    if all(cell.status == "pass" for cell in cells):
        yield "Solution Validates: avg error less than 1.000000e-13 on all three arrays"
        yield _LINE


# sysbench cpu.


SYSBENCH = "sysbench 1.0.20"
SYSBENCH_HELP = """\
Usage: sysbench cpu [--threads=N] [--time=SECONDS] [--cpu-max-prime=10000|20000] run

An event is a search for all prime numbers up to the limit."""


class SysbenchOptions(ToolOptions):
    threads: int = option("--threads, --num-threads N", "", whole, 1, least=1)
    time: int = option("--time, --max-time SECONDS", "", whole, 10, least=1)
    events: int = option("--events, --max-requests N", "", whole, 0)
    largest: int = option("--cpu-max-prime N", "", whole, 10_000)
    percentile: int = option("--percentile N", "", whole)
    test: str = option("--test NAME", "", str, "cpu")
    version: bool = option("--version")


_SYSBENCH_TEXT = """\

CPU speed:
    events per second: {rate:8.2f}

General statistics:
    total time:                          {total:.4f}s
    total number of events:              {events}

Latency (ms):
         min: {none:>39}
         avg: {mean:39.2f}
         max: {none:>39}
         percentile stats:               disabled
         sum: {sum:39.2f}

Threads fairness:
    events (avg/stddev):           {events_each:.4f}/{events_off:3.2f}
    execution time (avg/stddev):   {time_each:.4f}/{time_off:3.2f}
"""


@helpful(SYSBENCH_HELP)
def run_sysbench(arguments: Sequence[str], where: Where) -> int:
    words = [word for word in arguments if not word.startswith("-")]
    options = [word for word in arguments if word.startswith("-")]
    given = SysbenchOptions.of(options)
    if given.version:
        print(SYSBENCH)
        return 0
    if [given.test, *words[-1:]] != ["cpu", "run"] or words[:-1] not in ([], ["cpu"]):
        raise UsageError(f"{' '.join(arguments)}: of sysbench, only `cpu run` is measured")
    threads, limit = given.threads, given.largest
    known = {most: name for name, most in PRIMES.items()}
    if limit not in known:
        raise UsageError(f"--cpu-max-prime {limit}: give {' or '.join(map(str, known))}")
    if given.events:
        print(f"{where.name}: --events: the time alone limits it", file=sys.stderr)
    show([f"{SYSBENCH} (using linkgauge {linkgauge.__version__})", "",
          "Running the test with following options:", f"Number of threads: {threads}",
          "Initializing random number generator from current time", "", "",
          f"Prime numbers limit: {limit}", "", "Initializing worker threads...", "",
          "Threads started!"])  # fmt: skip
    settings = Settings(sizes=(0,), rate_time=float(given.time))

    def work(node: Node, own: int) -> Transfer:
        return Transfer(NULL, NULL, Engine(host(node.index), "cpu", own))

    (cell,), _, code = _measured(where, settings, threads, {known[limit]: work})
    if cell.summary is not None and cell.counters is not None:
        events, times = zip(
            *((one.steps, one.seconds) for one in cell.counters.threads), strict=True
        )
        print(_SYSBENCH_TEXT.format(
            rate=cell.summary.median, total=max(times), events=sum(events), none=NONE,
            mean=1e3 * sum(times) / sum(events), sum=1e3 * sum(times),
            events_each=statistics.fmean(events), events_off=statistics.pstdev(events),
            time_each=statistics.fmean(times), time_off=statistics.pstdev(times),
        ))  # fmt: skip
    return code
