"""The text of nccl-tests 2.19.6, to the column.

Source: src/util.cu of that version.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from .nccl_tests_cases import Line
from .nccl_tests_options import NcclOptions

VERSION = "2.19.6"
_MEGA = 1e6
_BLOCKING = (
    "",
    "wait and barrier after each inner iteration (-m) ",
    "wait after each inner iteration (-m), no barrier ",
    "wait and barrier after each outer iteration (-n); time excludes barrier ",
)
TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


class RankLine(msgspec.Struct, frozen=True):
    """A rank as the header shows it. `address` is the device's on the PCI bus, or the memory."""

    rank: int
    group: int
    process: int
    host: str
    device: int
    address: str
    name: str

    def __str__(self) -> str:
        return (
            f"#  Rank {self.rank:2d} Group {self.group:2d} Pid {self.process:6d} on "
            f"{self.host:>10} device {self.device:2d} [{self.address}] {self.name}"
        )


class Each(msgspec.Struct, frozen=True):
    """What single iterations took, in seconds: of each the longest of all ranks. The figures leave
    out the first `skipped`."""

    seconds: tuple[float, ...]
    skipped: int = 0

    @property
    def counted(self) -> list[float]:
        return sorted(self.seconds[self.skipped :])

    @property
    def mean(self) -> float:
        return sum(self.counted) / len(self.counted)

    @property
    def deviation(self) -> float:
        mean, counted = self.mean, self.counted
        return math.sqrt(sum((one - mean) ** 2 for one in counted) / len(counted))

    @property
    def variation(self) -> float:
        """The deviation in per cent of the mean."""
        return 100 * self.deviation / self.mean if self.mean > 0 else 0.0

    def percentile(self, percent: int) -> float:
        """By nearest rank."""
        counted = self.counted
        return counted[min(len(counted) - 1, -(-len(counted) * percent // 100) - 1)]


class Body(msgspec.Struct, frozen=True):
    """The figures of one side of a line: seconds, GB/s, the wrong elements (null: unchecked), and
    single iterations if they were asked for."""

    seconds: float
    algorithm: float
    bus: float
    wrong: int | None
    each: Each | None = None


def header(program: str, options: NcclOptions, library: int | None) -> Iterator[str]:
    """Up to the devices."""
    # The headers that it was built with are those of the library: there is none but that.
    version = library or 0
    yield f"# nccl-tests version {VERSION} nccl-headers={version} nccl-library={version}"
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
    if options.each_iteration:
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


def columns(options: NcclOptions) -> Iterator[str]:
    """The heads of the table."""
    yield "#"
    more = options.each_iteration
    sides = (
        ("out-of-place (+ per-iteration)", "in-place (+ per-iteration)")
        if more
        else ("out-of-place", "in-place")
    )
    blanks = (14, 32, 0) if more else (11, 23, 10)
    over = f"{' ' * blanks[0]}{sides[0]}{' ' * blanks[1]}{sides[1]}{' ' * blanks[2]}"
    yield _keys(("",) * 5) + over
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
    """A line of figures."""
    work = line.works[0]
    keys = (
        f"{line.bytes_shown:12d}  {line.elements:12d}  {work.type:>8}  {line.operation:>6}  "
        f"{line.root:6d}"
    )
    stamp = "" if now is None else f"{now.strftime(TIME_FORMAT):>21}"
    return keys + "".join(map(_side, bodies)) + stamp


def _side(body: Body) -> str:
    times = number(body.seconds * _MEGA, 7)
    rates = f"{number(body.algorithm, 6)}  {number(body.bus, 6)}"
    wrong = "N/A" if body.wrong is None else f"{float(body.wrong):6g}"
    # As there, N/A stands a column too far to the left.
    return f"  {times}  {rates}  {wrong:>5}{_singles(body.each)}"


def _singles(each: Each | None) -> str:
    if each is None:
        return ""
    least, most = each.counted[0], each.counted[-1]
    figures = (*(one * _MEGA for one in (least, most, each.percentile(99))), each.variation)
    return "".join(f"  {number(figure, 7)}" for figure in figures)


def number(value: float, width: int) -> str:
    """A figure in so many columns, with as many decimals up to two as there is room for."""
    for decimals in (2, 1, 0):
        if len(text := f"{value:{width}.{decimals}f}") <= width:
            return text
    return f"{value:{width}.{1 if width >= 7 else 0}e}"[:width]


def footer(program: str, wrong: int, mean: float, least: float | None) -> Iterator[str]:
    """`wrong` counts sides of lines with wrong elements; `mean` is the bus bandwidth in GB/s, of
    which at least 0.9 of `least` was asked for."""
    said = "" if least is None else "FAILED" if mean < least * 0.9 else "OK"
    yield f"# {'Out of bounds values':<20} : {wrong} {'FAILED' if wrong else 'OK'}"
    yield f"# {'Avg bus bandwidth':<20} : {_shortest(mean)} {said}"
    yield "#"
    yield f"# Collective test concluded: {program}"
    yield "#"
    yield ""


def _shortest(value: float) -> str:
    """As C's %g; what comes of 0/0 is negative on the CPUs that nccl-tests runs on."""
    return "-nan" if math.isnan(value) else f"{value:g}"
