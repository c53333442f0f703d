"""Plans and formats the lines of nccl-tests' table, each with a size, type, reduction and root."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import count, islice, product

import msgspec
from msgspec.structs import replace

from linkgauge.benchmarks.collectives import cell_of, row_of
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.model.operations.collective import (
    NUMBERS,
    REDUCTIONS,
    Collective,
    CollectiveName,
    NumberName,
    Reduction,
    Registration,
    bus_factor,
    has_root,
    reduces,
)
from linkgauge.model.transfer import Benchmark, Cell
from linkgauge.model.units import COLLECTIVE, format_size

from .options import NcclOptions, Unable, variable

NO_ROOT = -1
_AT_ONCE = 64
"""The most sizes that are planned at once. A command line may request any number of sizes."""
_LABELLED: tuple[CollectiveName, ...] = ("sendrecv",)
"""Collectives that reduce nothing. Their lines still show a reduction, and their command lines
accept one."""
_REGISTERED: tuple[Registration | None, ...] = (None, "local", "symmetric")


class Line(msgspec.Struct, frozen=True):
    """A table line: operations out of place and in place, their bytes, and the number of ranks."""

    works: tuple[Collective, Collective]
    size: int
    ranks: int
    operation: str

    @property
    def bytes_shown(self) -> int:
        """Returns the bytes of a rank's send buffer or receive buffer, whichever is larger."""
        counts = self.works[0].counts(self.size, self.ranks)
        return max(counts.send, counts.receive) * self.works[0].number.bytes

    @property
    def elements(self) -> int:
        return self.works[0].counts(self.size, self.ranks).count

    @property
    def root(self) -> int:
        return NO_ROOT if self.works[0].root is None else self.works[0].root

    def rates(self, seconds: float) -> tuple[float, float]:
        """Returns nccl-tests' `algbw` and `busbw` in GB/s for an operation of `seconds`."""
        algorithm = self.works[0].bytes_counted(self.size, self.ranks) / 1e9 / seconds
        return algorithm, algorithm * bus_factor(self.works[0].collective, self.ranks)

    def cells(self, fabric: DeviceSet) -> Iterator[Cell]:
        for work in self.works:
            column = format_size(self.size)
            yield cell_of(work, fabric.devices, self.size, row_of(work), column)


class LineBlock(msgspec.Struct, frozen=True):
    lines: tuple[Line, ...]
    benchmark: Benchmark


def parts(
    name: CollectiveName, options: NcclOptions, split: str | None, fabric: DeviceSet
) -> Iterator[LineBlock]:
    """Yields lines to measure together, endlessly for `-N 0`. Raises Unable for an unknown root."""
    for works, label in _works(name, options, split, len(fabric.devices)):
        ranks = len(works[0].groups(len(fabric.devices))[0])
        # As there, 0 cycles are counted down below 0.
        for _ in range(options.cycles) if options.cycles > 0 else count():
            lines = (Line(works, size, ranks, label) for size in sizes(options))
            while some := tuple(islice(lines, _AT_ONCE)):
                cells = tuple(cell for line in some for cell in line.cells(fabric))
                yield LineBlock(some, _benchmark(name, fabric, cells))


def _benchmark(name: str, fabric: DeviceSet, cells: tuple[Cell, ...]) -> Benchmark:
    title = "type(row) by size(column)"
    return Benchmark(name, title, fabric.backend, cells, COLLECTIVE, sweep=True, size=1)


def sizes(options: NcclOptions) -> Iterator[int]:
    size = options.least
    while size <= options.most:
        yield size
        size = size * options.factor if options.factor > 1 else size + options.step


def _works(
    name: CollectiveName, options: NcclOptions, split: str | None, ranks: int
) -> Iterator[tuple[tuple[Collective, Collective], str]]:
    numbers: tuple[NumberName, ...] = (options.number,) if options.number else tuple(NUMBERS)
    operations: tuple[Reduction, ...] = (options.reduction,) if options.reduction else REDUCTIONS
    group = len(Collective(name, split=split).groups(ranks)[0])
    for number, operation, root in product(
        numbers,
        operations if reduces(name) or name in _LABELLED else (None,),
        _roots(options.root, group) if has_root(name) else (None,),
    ):
        work = Collective(
            name,
            number,
            operation if reduces(name) else None,
            root,
            split=split,
            aggregated=options.aggregated,
            blocking=options.blocking > 0,
            graphed=options.graphs > 0,
            registered=_REGISTERED[options.registered],
        )
        unnamed = "" if name == "hypercube" else "none"
        yield (work, replace(work, in_place=True)), operation or unnamed


def _roots(asked: int, ranks: int) -> tuple[int, ...]:
    if asked == NO_ROOT:
        return tuple(range(ranks))
    if not 0 <= asked < ranks:
        raise Unable(f"-r {asked}: the ranks are 0 to {ranks - 1}")
    return (asked,)


_NUMBER = r"(0[xX][0-9a-f]{1,8}|0b[01]{1,32}|[1-9][0-9]{0,8}|0)"
_SPLIT = re.compile(rf"(AND|&|OR|\||MOD|%|DIV|/)\s*{_NUMBER}", re.IGNORECASE)


def split_of_environment() -> str | None:
    """Returns how NCCL_TESTS_SPLIT or NCCL_TESTS_SPLIT_MASK splits the ranks into groups, or None
    if both are unset. Raises Unable if a value cannot be read."""
    split = variable("NCCL_TESTS_SPLIT", "", _split)
    return variable("NCCL_TESTS_SPLIT_MASK", "", _mask) or split


def _mask(written: str) -> str | None:
    if not re.fullmatch("(0[xX])?[0-9a-fA-F]{0,8}", written):
        raise ValueError("give a mask in hexadecimal")
    return f"AND {int(written, 16)}" if written else None


def _split(written: str) -> str | None:
    if not written:
        return None
    found = _SPLIT.fullmatch(written.strip())
    kind, number = (found[1].upper(), int(found[2], 0)) if found else ("", 0)
    if not number and kind not in ("AND", "&", "OR", "|"):
        raise ValueError("give AND, OR, MOD or DIV and a number")
    return f"{kind} {number}"


# The text of nccl-tests 2.19.6, to the column.


VERSION = "2.19.6"
MEGA = 1e6
_BLOCKING = (
    "",
    "wait and barrier after each inner iteration (-m) ",
    "wait after each inner iteration (-m), no barrier ",
    "wait and barrier after each outer iteration (-n); time excludes barrier ",
)
TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


class RankLine(msgspec.Struct, frozen=True):
    """A rank's header line. `device_hex` is a PCI address, or a name such as `cuda:0`."""

    rank: int
    group: int
    pid: int
    hostname: str
    device: int
    device_hex: str
    device_info: str

    def __str__(self) -> str:
        return (
            f"#  Rank {self.rank:2d} Group {self.group:2d} Pid {self.pid:6d} on "
            f"{self.hostname:>10} device {self.device:2d} [{self.device_hex}] {self.device_info}"
        )


class Each(msgspec.Struct, frozen=True):
    """The seconds of iterations on the slowest rank. Statistics omit the first `skipped` ones."""

    seconds: tuple[float, ...]
    skipped: int = 0

    @property
    def figures(self) -> dict[str, float]:
        """Returns statistics in µs, and the variation `cv_pct` in %."""
        counted = sorted(self.seconds[self.skipped :])
        mean, deviation = statistics.fmean(counted), statistics.pstdev(counted)
        seconds = {
            "min_us": counted[0],
            "max_us": counted[-1],
            "avg_us": mean,
            "p50_us": counted[len(counted) // 2],
            "p95_us": counted[-(-len(counted) * 95 // 100) - 1],
            "p99_us": counted[-(-len(counted) * 99 // 100) - 1],
            "stdev_us": deviation,
        }
        variation = 100 * deviation / mean if mean > 0 else 0.0
        return {name: one * MEGA for name, one in seconds.items()} | {"cv_pct": variation}


class Body(msgspec.Struct, frozen=True):
    """The figures of a line, in or out of place. `algorithm` and `bus` are bandwidths in GB/s.
    `wrong` is the number of wrong elements, or None if they were not checked."""

    seconds: float
    algorithm: float
    bus: float
    wrong: int | None
    each: Each | None = None


def header(program: str, options: NcclOptions, library: int) -> Iterator[str]:
    # The headers that it was built with are those of the library: there is none but that.
    yield f"# nccl-tests version {VERSION} nccl-headers={library} nccl-library={library}"
    yield f"# Collective test starting: {program}"
    step = f"{options.factor}(factor)" if options.factor > 1 else f"{options.step}(bytes)"
    yield (
        f"# nThread {options.threads} nGpus {options.gpus} minBytes {options.least} maxBytes "
        f"{options.most} step: {step} warmup iters: {options.warm_ups} iters: "
        f"{options.iterations} agg iters: {options.aggregated} validation: {options.checks} graph: "
        f"{options.graphs} unalign: 0"
    )
    if options.blocking:
        yield f"# Blocking Enabled: {_BLOCKING[options.blocking]}"
    if options.timing:
        skips = f"; summary skips first {options.skipped} iterations" if options.skipped else ""
        yield (f"# Per-Iteration Report: CUDA event timing; i_* uses max over process rows{skips} ")
    if options.parallel_init:
        yield "# Parallel Init Enabled: threads call into NcclInitRank concurrently "
    yield "#"
    yield "# Using devices"


_FIRST = ("size", "count", "type", "redop", "root")
_UNITS = ("(B)", "(elements)", "", "", "")
_SIDE = (("time", "(us)", 7), ("algbw", "(GB/s)", 6), ("busbw", "(GB/s)", 6), ("#wrong", "", 6))
_EACH = tuple((f"i_{name}", unit, 7) for name, unit in
              (("min", "(us)"), ("max", "(us)"), ("p99", "(us)"), ("cv%", "(%)")))  # fmt: skip
_SINGLES = ("min_us", "max_us", "p99_us", "cv_pct")


def columns(options: NcclOptions) -> Iterator[str]:
    yield "#"
    more = options.timing
    left, between, right = (" " * wide for wide in ((14, 32, 0) if more else (11, 23, 10)))
    each = " (+ per-iteration)" if more else ""
    yield f"{_keys(('',) * 5)}{left}out-of-place{each}{between}in-place{each}{right}"
    side = (*_SIDE, *_EACH) if more else _SIDE
    stamp = ("timestamp", TIME_FORMAT) if options.timestamps else ("", "")
    width = 19 if options.timestamps else 0
    for place, keys in enumerate((_FIRST, _UNITS)):
        heads = "".join(f"  {head[place]:>{head[2]}}" for head in (*side, *side))
        yield f"{_keys(keys)}{heads} {stamp[place]:>{width}}"


def _keys(keys: Sequence[str]) -> str:
    widths = (10, 12, 8, 6, 6)
    return "# " + "  ".join(f"{key:>{wide}}" for key, wide in zip(keys, widths, strict=True))


def row(line: Line, bodies: Sequence[Body], now: datetime | None) -> str:
    work = line.works[0]
    keys = (
        f"{line.bytes_shown:12d}  {line.elements:12d}  {work.type:>8}  {line.operation:>6}  "
        f"{line.root:6d}"
    )
    stamp = "" if now is None else f"{now.strftime(TIME_FORMAT):>21}"
    return keys + "".join(map(_side, bodies)) + stamp


def _side(body: Body) -> str:
    times = number(body.seconds * MEGA, 7)
    rates = f"{number(body.algorithm, 6)}  {number(body.bus, 6)}"
    wrong = "N/A" if body.wrong is None else f"{float(body.wrong):6g}"
    figures = body.each.figures if body.each else {}
    singles = "".join(f"  {number(figures[name], 7)}" for name in _SINGLES if figures)
    # As there, N/A stands a column too far to the left.
    return f"  {times}  {rates}  {wrong:>5}{singles}"


def number(value: float, width: int) -> str:
    for decimals in (2, 1, 0):
        if len(text := f"{value:{width}.{decimals}f}") <= width:
            return text
    return f"{value:{width}.{1 if width >= 7 else 0}e}"[:width]


def footer(program: str, wrong: int, mean: float, enough: bool | None) -> Iterator[str]:
    """Yields the lines below the table. `wrong` counts wrong elements; `mean` is in GB/s."""
    said = {None: "", True: "OK", False: "FAILED"}[enough]
    yield f"# {'Out of bounds values':<20} : {wrong} {'FAILED' if wrong else 'OK'}"
    # As C's %g. For 0/0, C prints -nan on x86.
    shown = "-nan" if math.isnan(mean) else f"{mean:g}"
    yield f"# {'Avg bus bandwidth':<20} : {shown} {said}"
    yield "#"
    yield f"# Collective test concluded: {program}"
    yield "#"
    yield ""
