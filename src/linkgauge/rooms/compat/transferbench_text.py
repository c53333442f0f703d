"""The output of TransferBench 1.66, line by line, in its columns."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from .transferbench_cases import Bench, Outcome, Timing
from .transferbench_environment import VARIABLES, Common
from .transferbench_notation import EXECUTORS
from .transferbench_table import Grid

VERSION = "1.66.00"
NONE = "N/A"
_USAGE = """\
Usage: TransferBench config <N>
  config: Either:
          - Name of a file of tests, a line each, such as: 1 4 (G0->G0->G1)
          - cmdline, with a test behind <N>
          - Name of a preset
  N     : (Optional) Bytes of a transfer, with K, M or G (default: {default})
          0 is a range of sizes, 1K to 512M

Environment variables:
======================"""


def banner() -> Iterator[str]:
    line = f"TransferBench v{VERSION} (linkgauge)"
    yield from (line, "=" * len(line))


def usage(default: int, presets: Mapping[str, str]) -> Iterator[str]:
    yield from banner()
    yield from _USAGE.format(default=default).splitlines()
    yield from (f" {name:<20}- {what}" for name, what in VARIABLES.items())
    yield from ("", "Available Preset Benchmarks:", "============================")
    yield from (f"   {name:>15} - {what}" for name, what in presets.items())


def detected(bench: Bench) -> Iterator[str]:
    yield from ("", "Detected Topology:", "==================")
    yield f"  {len(bench.nodes)} configured CPU NUMA node(s)"
    yield f"  {len(bench.devices)} GPU device(s)"
    for number, device in enumerate(bench.devices):
        yield f"  GPU {number:02d} | {device.model} | {device.pci or NONE} | NUMA {device.near}"


def listing(
    common: Common, heading: str, own: Mapping[str, tuple[str, str]] | None = None
) -> Iterator[str]:
    """Variables with their values, those of a preset under its heading; none if they are hidden."""
    if common.hide:
        return
    if common.csv:
        yield f"EnvVar,Value,Description,(TransferBench v{VERSION})"
    else:
        yield "[Common]                              (Suppress by setting HIDE_ENV=1)"
    yield from (_variable(common, *line) for line in common.listed().items())
    yield ""
    if own:
        if not common.csv:
            yield f"[{heading} Related]"
        yield from (_variable(common, *line) for line in own.items())
        yield ""


def _variable(common: Common, name: str, known: tuple[str, str]) -> str:
    value, what = known
    equals, colon = (",", ",") if common.csv else (" = ", " : ")
    return f"{name:<20}{equals}{value:>12}{colon}{what}"


def results(common: Common, number: int, outcome: Outcome) -> Iterator[str]:
    """A test's table: each executor, its transfers, and all of them by the host's clock."""
    if not common.csv:
        yield f"Test {number}:"
    rows: list[tuple[str, ...]] = []
    rules: list[int] = []
    for executor, own, timing in outcome.executors():
        rules += [len(rows), len(rows) + 1]
        each = [outcome.timings[at] for at in own]
        name = f" Executor: {EXECUTORS[executor.letter]:>3} {executor.index:02d} "
        together = sum(rate for one in each if (rate := one.rate) is not None)
        total = f" {_figure(together if timing.times else None, 7)} GB/s (sum)"
        rows.append(_row(name, timing, total))
        for at, one in zip(own, each, strict=True):
            rows.append(_row(f"Transfer {at:<4d} ", one, f" {outcome.test[at]}"))
            if common.each:
                rows += _iterations(one)
                rules.append(len(rows))
    rules += [len(rows), len(rows) + 1]
    rows.append(_row("Aggregate (CPU) ", outcome.whole, f" Overhead {_overhead(outcome)} ms"))
    grid = Grid(rows, [(row, 4) for row in range(len(rows))])
    for column in range(1, 5):
        grid.bar(column)
    for row in rules:
        grid.rule(row)
    yield from grid.lines(csv=common.csv, borders=common.borders)


def _row(name: str, timing: Timing, last: str) -> tuple[str, ...]:
    milliseconds = None if timing.mean is None else timing.mean * 1e3
    rate = f"{_figure(timing.rate, 8)} GB/s "
    return name, rate, f"{_figure(milliseconds, 8)} ms ", f"{timing.bytes:>12} bytes ", last


def _iterations(timing: Timing) -> Iterator[tuple[str, ...]]:
    """The iterations, fastest first, and their standard deviations."""
    for time, number in sorted((time, number) for number, time in enumerate(timing.times, 1)):
        rate = timing.bytes / time / 1e9
        yield f"Iter {number:03d}    ", f"{rate:8.3f} GB/s ", f"{time * 1e3:8.3f} ms ", "", ""
    if timing.times:
        rate, time = statistics.pstdev(timing.rates), statistics.pstdev(timing.times)
        yield "StandardDev ", f"{rate:8.3f} GB/s ", f"{time * 1e3:8.3f} ms ", "", ""


def _overhead(outcome: Outcome) -> str:
    """What the whole took beyond the slowest executor."""
    slowest = max((t.mean or 0.0 for _, _, t in outcome.executors()), default=0.0)
    whole = outcome.whole.mean
    return NONE if whole is None else f"{round((whole - slowest) * 1e3, 3) + 0.0:.3f}"


def _figure(value: float | None, width: int) -> str:
    return f"{NONE:>{width}}" if value is None else f"{value:{width}.3f}"


def all_to_all(
    common: Common,
    names: Sequence[str],
    rates: Mapping[tuple[int, int], float | None],
    whole: Timing,
) -> Iterator[str]:
    """The matrix of all pairs, in GB/s: with what each source and each destination has in all, and
    what a source reaches if all of its copies are as slow as its slowest."""
    numbers = range(len(names))
    rows = [(" SRC\\DST ", *(f" {name} " for name in names), " STotal ", " Actual ")]
    totals: list[float] = []
    actual: list[float] = []
    for one in numbers:
        known = [rate for (source, _), rate in rates.items() if source == one and rate is not None]
        totals.append(sum(known))
        actual.append(min(known, default=0.0) * len(known))
        cells = (_cell(rates.get((one, other))) for other in numbers)
        rows.append((f" {names[one]} ", *cells, _cell(totals[-1]), _cell(actual[-1])))
    columns = (sum(rates.get((one, other)) or 0.0 for one in numbers) for other in numbers)
    rows.append((" RTotal ", *map(_cell, columns), _cell(sum(totals)), _cell(sum(actual))))
    blank = ("",) * len(names)
    rows.append((*blank, "", " CPU Timed: ", _cell(whole.rate)))
    yield from _bordered(rows, len(names)).lines(csv=common.csv, borders=common.borders)
    yield ""
    measured = [rate for rate in rates.values() if rate is not None]
    average = statistics.fmean(measured) if measured else None
    yield f"Average   bandwidth (GPU Timed): {_figure(average, 8)} GB/s"
    total = sum(measured) if measured else None
    yield f"Aggregate bandwidth (GPU Timed): {_figure(total, 8)} GB/s"
    yield f"Aggregate bandwidth (CPU Timed): {_figure(whole.rate, 8)} GB/s"


def _cell(rate: float | None) -> str:
    return f" {NONE} " if rate is None else f" {rate:.2f} "


def _bordered(rows: Sequence[Sequence[str]], count: int) -> Grid:
    grid = Grid(rows)
    for column in (0, 1, count + 1, count + 2, count + 3):
        grid.bar(column)
    for row in (0, 1, count + 1, count + 2):
        grid.rule(row)
    last = len(rows) - 1
    for column in range(count + 1):
        grid.enclose(last, column, around=False)
    for column in (count + 1, count + 2):
        grid.enclose(last, column, around=True)
    return grid
