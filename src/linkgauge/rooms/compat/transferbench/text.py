"""Draws tables as TransferBench does: with borders, without borders, or as CSV."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from linkgauge.cli.tool_options import UsageError

from ..copy_cells import NONE, Repetitions, shown
from .cases import DEVICE_LETTERS, EXECUTORS, Bench, MeasuredTest
from .environment import VARIABLES, Common, Variables

_JOINTS = " \u2502\u2502\u2502-\u2518\u2510\u2524-\u2514\u250c\u251c-\u2534\u252c\u253c"
"""The character where borders meet, by the sum of the sides that have a border: above 1, below 2,
left 4, right 8."""


class Grid:
    """A table of texts. Texts are aligned to the right, except in the columns `left`. Borders can
    be added above and before a cell."""

    def __init__(self, rows: Sequence[Sequence[str]], left: Sequence[tuple[int, int]] = ()) -> None:
        self.rows = [list(row) for row in rows]
        self._left = set(left)
        self._widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        self._above: set[tuple[int, int]] = set()
        self._before: set[tuple[int, int]] = set()

    @property
    def _columns(self) -> range:
        return range(len(self._widths))

    def rule(self, row: int) -> None:
        """Adds a border above the row, over all columns."""
        self._above |= {(row, column) for column in self._columns}

    def bar(self, column: int) -> None:
        """Adds a border before the column, along all rows."""
        self._before |= {(row, column) for row in range(len(self.rows))}

    def enclose(self, row: int, column: int, *, around: bool) -> None:
        """Adds borders on all sides of a cell, or only above it."""
        sides = {(row + 1, column)}, {(row, column), (row, column + 1)}
        self._above.add((row, column))
        if around:
            self._above |= sides[0]
            self._before |= sides[1]
        else:
            self._above -= sides[0]
            self._before -= sides[1]

    def lines(self, *, csv: bool, borders: bool) -> Iterator[str]:
        drawn = borders and not csv
        for number, row in enumerate(self.rows):
            if drawn and any(at == number for at, _ in self._above):
                yield self._rule_line(number)
            texts = [
                text.ljust(width) if (number, column) in self._left else text.rjust(width)
                for column, (text, width) in enumerate(zip(row, self._widths, strict=True))
            ]
            if csv:
                yield "".join(f"{text}," for text in texts)
                continue
            bars = [
                "\u2502" if drawn and (number, column) in self._before else " "
                for column in range(len(texts) + 1)
            ]
            yield "".join(bar + text for bar, text in zip(bars, [*texts, ""], strict=True))
        if drawn and any(at == len(self.rows) for at, _ in self._above):
            yield self._rule_line(len(self.rows))

    def _rule_line(self, row: int) -> str:
        line = ""
        for column in range(len(self._widths) + 1):
            sides = (
                (row - 1, column) in self._before,
                (row, column) in self._before,
                (row, column - 1) in self._above,
                (row, column) in self._above,
            )
            line += _JOINTS[sum(side << place for place, side in enumerate(sides))]
            if column < len(self._widths):
                line += ("-" if sides[3] else " ") * self._widths[column]
        return line


# The output of TransferBench 1.66, line by line, in its columns.


VERSION = "1.66.00"
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
    common: Common, heading: str = "", own: Mapping[str, tuple[str, str]] = MappingProxyType({})
) -> Iterator[str]:
    """Yields the variables with their values. The preset's own variables follow below its heading.
    Yields nothing if the user hides the variables."""
    if common.hide:
        return
    if common.csv:
        yield f"EnvVar,Value,Description,(TransferBench v{VERSION})"
    else:
        yield "[Common]                              (Suppress by setting HIDE_ENV=1)"
    yield from (_variable(common, *line) for line in sorted(common.listed.items()))
    yield ""
    if own:
        if not common.csv:
            yield f"[{heading} Related]"
        yield from (_variable(common, *line) for line in sorted(own.items()))
        yield ""


def _variable(common: Common, name: str, known: tuple[str, str]) -> str:
    value, what = known
    equals, colon = (",", ",") if common.csv else (" = ", " : ")
    return f"{name:<20}{equals}{value:>12}{colon}{what}"


def results(common: Common, number: int, outcome: MeasuredTest) -> Iterator[str]:
    """Yields the table of a test: each executor with its transfers, and all transfers by the host's
    clock."""
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


def _row(name: str, timing: Repetitions, last: str) -> tuple[str, ...]:
    milliseconds = None if timing.mean is None else timing.mean * 1e3
    rate = f"{_figure(timing.rate, 8)} GB/s "
    return name, rate, f"{_figure(milliseconds, 8)} ms ", f"{timing.bytes:>12} bytes ", last


def _iterations(timing: Repetitions) -> Iterator[tuple[str, ...]]:
    """Yields a row for each iteration, the fastest first, and a row with the standard deviations of
    rate and time."""
    for time, number in sorted((time, number) for number, time in enumerate(timing.times, 1)):
        rate = timing.bytes / time / 1e9
        yield f"Iter {number:03d}    ", f"{rate:8.3f} GB/s ", f"{time * 1e3:8.3f} ms ", "", ""
    if timing.times:
        rate, time = statistics.pstdev(timing.rates), statistics.pstdev(timing.times)
        yield "StandardDev ", f"{rate:8.3f} GB/s ", f"{time * 1e3:8.3f} ms ", "", ""


def _overhead(outcome: MeasuredTest) -> str:
    """Returns the time in ms by which the whole test took longer than its slowest executor."""
    slowest = max((t.mean or 0.0 for _, _, t in outcome.executors()), default=0.0)
    whole = outcome.whole.mean
    return shown(None if whole is None else round((whole - slowest) * 1e3, 3) + 0.0, ".3f")


def _figure(value: float | None, width: int) -> str:
    return f"{shown(value, '.3f'):>{width}}"


def all_to_all(
    common: Common,
    names: Sequence[str],
    rates: Mapping[tuple[int, int], float | None],
    whole: Repetitions,
) -> Iterator[str]:
    """Yields the matrix of all pairs in GB/s, with totals. The actual rate of a source is the rate
    that it would have if all its copies were as slow as its slowest copy."""
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
    return f" {shown(rate, '.2f')} "


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


# What TransferBench's presets have in common: their machine and their variables.


CPU_TYPES = {0: "C", 1: "B", 2: "D", 4: "H"}
GPU_TYPES = dict(enumerate(DEVICE_LETTERS))


def blocks(name: str, variables: Variables) -> int | None:
    """Returns the number of blocks of the preset's kernels. None means that the backend chooses, or
    that copy engines copy."""
    if name == "p2p":
        return (
            None if variables.switch("USE_GPU_DMA") else variables.number("NUM_GPU_SE", 0) or None
        )
    if name == "a2a":
        return None if variables.switch("USE_DMA_EXEC") else variables.number("NUM_SUB_EXEC", 8, 1)
    by_engine = variables.text("SWEEP_EXE", "G").upper() == "D"
    return None if by_engine else variables.number("NUM_GPU_SE", 4, 1)


class Preset:
    """A preset that is carried out on a machine, with the variables that all presets have."""

    def __init__(self, bench: Bench, common: Common, variables: Variables, size: int) -> None:
        self.bench = bench
        self.common = common
        self.variables = variables
        self.size = size
        self.gpus = self.count("GPU", len(bench.devices))
        self.separator = "," if common.csv else " "

    def count(self, kind: str, there: int) -> int:
        """Reads how many devices or nodes take part. Raises UsageError if there are fewer."""
        name = f"NUM_{kind}_DEVICES"
        number = self.variables.number(name, there, says=f"Using {{}} {kind}s")
        if number > there:
            raise UsageError(f"{name}={number}: there are {there} {kind}s")
        return number

    def reading(self) -> bool:
        """Reads the variable that says whether destinations carry out the copies."""
        says = "Using SRC as executor", "Using DST as executor"
        return self.variables.switch("USE_REMOTE_READ", says=says)

    def letter(self, name: str, known: dict[int, str], default: int = 0) -> str:
        """Reads the number of a memory type from a variable, and returns its letter. Raises
        UsageError for an unknown number."""
        number = self.variables.number(name, default)
        if number not in known:
            raise UsageError(f"{name}={number}: give one of {', '.join(map(str, known))}")
        return known[number]
