"""Emulates the seven cases of rblnBandwidthLatencyTest, after its manual page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, permutations
from typing import NamedTuple

import msgspec

from linkgauge.cli.tool import Where, helpful, show
from linkgauge.cli.tool_options import (
    ToolOption,
    ToolOptions,
    UsageError,
    help_lines,
    option,
    whole,
)
from linkgauge.model.hardware.machine import Device
from linkgauge.model.settings import EngineSettings, Settings
from linkgauge.model.units import parse_size

from ..copy_cells import CopyPath, Meter, chase, metered
from . import text
from .text import PathFigure

Pair = tuple[Device, Device]
CHASE_SIZE = 2 << 20
"""The bytes of memory through which a pointer chase goes, as in linkgauge's own latency
benchmarks."""


class CaseRequest(msgspec.Struct, frozen=True):
    """What a case measures. `npus[0]` is the source. If `reads`, destinations run the copies. If
    `host`, also measures copies with the host."""

    npus: tuple[Device, ...]
    reads: bool
    host: bool

    @property
    def source(self) -> Device:
        return self.npus[0]

    @property
    def ordered(self) -> tuple[Device, ...]:
        return tuple(sorted(self.npus, key=lambda npu: npu.index))

    @property
    def others(self) -> tuple[Device, ...]:
        return self.npus[1:]

    @property
    def direction(self) -> str:
        return "Read" if self.reads else "Write"


Lines = Iterable[str]
CaseSection = Callable[[Meter, CaseRequest], tuple[Lines, list[PathFigure]]]


class TestCase(msgspec.Struct, frozen=True):
    """A test case. `parts` measure and return lines and figures. Needs two NPUs if `between`."""

    name: str
    parts: tuple[CaseSection, ...]
    between: bool = False


class PathGroup(NamedTuple):
    """Paths of concurrent copies. If `total` is not empty, a line of that name shows the total."""

    paths: Sequence[CopyPath]
    tag: str = ""
    total: str = ""


def _measured(meter: Meter, groups: Iterable[PathGroup]) -> list[PathFigure]:
    groups = list(groups)
    cells = meter.measure([[path.transfer() for path in group.paths] for group in groups])
    figures: list[PathFigure] = []
    for group, cell in zip(groups, cells, strict=True):
        for place, path in enumerate(group.paths):
            of = cell.parts[place] if cell.parts else cell
            ends = f"{text.label(path.source)} -> {text.label(path.destination)}"
            figures.append(PathFigure(path.tag, ends, of.samples, of.bytes))
        if group.total:
            figures.append(PathFigure(group.tag, group.total, cell.samples, cell.bytes))
    return figures


def _matrix(meter: Meter, asked: CaseRequest) -> tuple[Lines, list[PathFigure]]:
    ends: tuple[Device | None, ...] = (None, *asked.ordered) if asked.host else asked.ordered
    paths = (CopyPath(*pair, asked.reads) for pair in permutations(ends, 2))
    figures = _measured(meter, (PathGroup((path,)) for path in paths))
    means = (figure.mean for figure in figures)  # row by row, without the diagonal
    rows = [[0.0 if row == column else next(means) for column in ends] for row in ends]
    lines = text.matrix([text.label(end) for end in ends], rows)
    return [f"Device {asked.direction} bandwidth (GB/s)", *lines], figures


def _latencies(title: Lines, pairs_of: Callable[[CaseRequest], Iterable[Pair]]) -> CaseSection:
    def measured(meter: Meter, asked: CaseRequest) -> tuple[Lines, list[PathFigure]]:
        pairs = list(pairs_of(asked))  # a sync latency is one step of a pointer chase
        cells = meter.measure([[chase(*pair)] for pair in pairs], "chase", size=CHASE_SIZE)
        figures = [
            PathFigure("D2D", f"{text.label(one)} -> {text.label(other)}", cell.samples)
            for (one, other), cell in zip(pairs, cells, strict=True)
        ]
        return [*title, *map(text.latency_line, figures)], figures

    return measured


def _bandwidths(kind: str, groups_of: Callable[[CaseRequest], Iterable[PathGroup]]) -> CaseSection:
    def measured(meter: Meter, asked: CaseRequest) -> tuple[Lines, list[PathFigure]]:
        figures = _measured(meter, groups_of(asked))
        title = text.title(f"Device {kind}bandwidth (GB/s) *{asked.direction}")
        return [*title, *map(text.bandwidth_line, figures)], figures

    return measured


def _to_others(asked: CaseRequest) -> Iterator[Pair]:
    return ((asked.source, other) for other in asked.others)


def _steps(asked: CaseRequest) -> Iterator[PathGroup]:
    if asked.host:
        yield PathGroup((CopyPath(None, asked.source),))
    yield from (PathGroup((CopyPath(*pair, asked.reads),)) for pair in _to_others(asked))
    for last in (asked.others or asked.npus) if asked.host else ():
        yield PathGroup((CopyPath(last, None),))


def _both_ways(asked: CaseRequest) -> Iterator[PathGroup]:
    from_host = ((None, npu) for npu in asked.npus if asked.host)
    for one, other in chain(from_host, _to_others(asked)):
        ways = CopyPath(one, other, asked.reads), CopyPath(other, one, asked.reads)
        both = f"{text.label(one)} <-> {text.label(other)}"
        yield PathGroup(ways, "D2D" if one else "H2D/D2H", both)


def _parallel(asked: CaseRequest) -> Iterator[PathGroup]:
    two_by_two = zip(asked.npus[::2], asked.npus[1::2], strict=False)
    groups = [[CopyPath(*pair, asked.reads) for pair in two_by_two]]
    if asked.host:
        groups.insert(0, [CopyPath(None, npu) for npu in asked.npus])
        groups.append([CopyPath(npu, None) for npu in asked.npus])
    return (PathGroup(group, group[0].tag, "TOTAL") for group in groups if group)


_all_latencies = _latencies([text.LATENCY], lambda asked: permutations(asked.ordered, 2))
_latency = _latencies(text.title(text.LATENCY), _to_others)
CASES = (
    TestCase("RBLN_PERF_TEST_ALL", (_matrix, _all_latencies)),
    TestCase("RBLN_PERF_BANDWIDTH_TEST_ALL", (_matrix,)),
    TestCase("RBLN_PERF_LATENCY_TEST_ALL", (_all_latencies,), between=True),
    TestCase("RBLN_PERF_BANDWIDTH_TEST", (_bandwidths("", _steps),)),
    TestCase("RBLN_PERF_LATENCY_TEST", (_latency,), between=True),
    TestCase("RBLN_PERF_BIDIR_BANDWIDTH_TEST", (_bandwidths("bidirectional ", _both_ways),)),
    TestCase("RBLN_PERF_PARALLEL_BANDWIDTH_TEST", (_bandwidths("parallel ", _parallel),)),
)


# rblnBandwidthLatencyTest: Rebellions' test of the paths between a host and its NPUs.


DEFAULT_SIZE = 512 << 20


def _whole(written: str) -> int:
    return int(written, 16) if re.fullmatch("0[xX][0-9a-fA-F]+", written) else whole(written)


def _npus(written: str) -> tuple[int, ...]:
    npus = tuple(map(whole, written.split(",")))
    if len(set(npus)) < len(npus):
        raise ValueError("NPU listed twice")
    return npus


class RblnOptions(ToolOptions):
    timeout: float | None = option(
        "-t, --timeout <int>", "Timeout of a test in seconds", _whole, least=1
    )
    iterations: int = option(
        "-i, --iteration_cnt <int>", "Number of iterations (default: 1)", _whole, 1,
        least=1, most=1_000_000,
    )  # fmt: skip
    warmup: bool = option("--warmup", "Warm up before measuring (always done)")
    test_size: int | None = option(
        "--test_size <str>", "Data size, such as 4K, 128M, 1G (default: 512M)", parse_size
    )
    npus: tuple[int, ...] = option(
        "--npu_id_list <list>", "NPU ids with commas, such as 0,1,2", _npus, ()
    )
    only_d2d: bool = option("--only_d2d", "Only NPU to NPU")
    test_list: bool = option("--test_list", "List the test cases")
    case: int | None = option(
        "--tc <int>", "Test case, an index (from 0) of --test_list", _whole,
        least=0, most=len(CASES) - 1,
    )  # fmt: skip
    test_env_info: bool = option("--test_env_info", "Show the system and its devices")
    skip_test_env_info: bool = option("--skip_test_env_info", "Do not show them before a test")
    source: int | None = option("-n, --device_name <int>", "Source device", _whole)
    performance: int = option(
        "--get_perf <int>", "Report performance (1: average, 2: per_inference)", _whole, 0,
        least=0, most=2,
    )  # fmt: skip
    priority: int = option(
        "--priority <int>", "Context priority, 0-4 (no effect)", _whole, least=0, most=4
    )
    reads: int = option(
        "-r, --hdma_read <int>", "HDMA direction (0: write, 1: read)", _whole, 0, least=0, most=1
    )
    numa_node: int = option(
        "--numa_node <int>", "NUMA node of host memory (default: -1)", _whole, -1, least=-1
    )
    pattern: int | None = option(
        "--data_pattern <int>", "Value that the data consists of", _whole,
        least=0, most=(1 << 64) - 1,
    )  # fmt: skip
    flags: int = option("-f, --flags <int>", "Context flags (no effect)", _whole)
    group: int = option("-g <int>", "Execution group (no effect)", _whole)

    @property
    def size(self) -> int:
        return DEFAULT_SIZE if self.test_size is None else self.test_size


HELP = f"""\
Usage: rblnBandwidthLatencyTest [options]
       rblnBandwidthLatencyTest --tc <id> [options]

Options:
{help_lines((ToolOption("-h, --help", "Show this help and exit"), *RblnOptions.table()), 27)}"""


@helpful(HELP)
def run(arguments: Sequence[str], where: Where) -> int:
    options = RblnOptions.of(arguments)
    if options.test_env_info and (options.skip_test_env_info or options.case is not None):
        raise UsageError("--test_env_info measures nothing: leave out the other options")
    if options.test_list:
        show(("List of tests:", *(case.name for case in CASES)))
        return 0
    settings = Settings(
        sizes=(options.size,),
        samples=options.iterations,
        loops=1,
        timeout=options.timeout,
        pattern=None if options.pattern is None else _repeated(options.pattern),
        engines=EngineSettings(numa_node=None if options.numa_node < 0 else options.numa_node),
    )
    with metered(where, settings) as meter:
        return _run_in(meter, options)


def _run_in(meter: Meter, options: RblnOptions) -> int:
    context = meter.context
    if options.test_env_info:
        show(text.environment(context.machine, context.devices, links=True))
        return 0
    asked = _asked(context.devices, options)
    case = CASES[options.case or 0]
    if not options.skip_test_env_info:
        show(text.environment(context.machine, context.devices, links=False))
    if options.test_size is not None:
        print(f"This test will run with size ({options.size:#x})")
    print(text.banner("Run", case.name))
    print(f"\n[Measure Iteration cnt : {options.iterations}]")
    print(f"[Measure Buffer Size : {options.size:#x}]\n")
    show(text.distances(context.machine, context.devices))
    for measure in case.parts:
        lines, figures = measure(meter, asked)
        performance = text.performance(figures, options.performance)
        show([""], lines, performance)
    print("\n" + text.banner("FAIL" if meter.exit_code else "PASS", case.name))
    return meter.exit_code


def _asked(devices: Sequence[Device], options: RblnOptions) -> CaseRequest:
    there = {device.index: device for device in devices}
    source = () if options.source is None else (options.source,)
    for index in (*options.npus, *source):
        if index not in there:
            known = ", ".join(map(text.label, devices))
            raise UsageError(f"no NPU {index}: NPUs are {known}")
    chosen = dict.fromkeys((*source, *(options.npus or there)))
    npus = tuple(there[index] for index in chosen)
    if len(npus) < 2 and (options.only_d2d or CASES[options.case or 0].between):
        raise UsageError("this test needs two NPUs, and there is one")
    return CaseRequest(npus, options.reads == 1, not options.only_d2d)


def _repeated(value: int) -> int:
    width = 1 if value < 1 << 8 else 4 if value < 1 << 32 else 8
    return int.from_bytes(value.to_bytes(width, "little") * (8 // width), "little")
