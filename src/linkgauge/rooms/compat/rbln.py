"""The seven test cases of rblnBandwidthLatencyTest: what each measures, as lines and their figures.

Where the page is brief, it is read as follows: case 5 copies both ways at once; case 6 copies over
several paths at once, first host to NPUs, then NPU to NPU (in pairs as they are listed), then NPUs
to host. The sync latency is the time of one access to the other NPU's memory: a pointer chase
through it.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations

import msgspec

from linkgauge.cli.tool import (
    Context,
    Parser,
    UsageError,
    Where,
    hinting,
    opened_devices,
    size_of,
    whole,
)
from linkgauge.model.documents.result import CellResult
from linkgauge.model.hardware.machine import Device
from linkgauge.model.settings import EngineSettings, Settings

from . import rbln_text as text
from .copy_cells import CopyPath, Meter, chase
from .rbln_text import PathFigure

CHASE_SIZE = 2 << 20
"""Bytes through which pointers are chased, as in linkgauge's own latency benchmarks."""


class CaseRequest(msgspec.Struct, frozen=True):
    """The command line's request of a case: the NPUs, source first; whether destinations pull
    (`reads`), and whether the host takes part."""

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
    """`parts` return the lines below the case's banner and the figures in them, for which
    --get_perf adds lines; cases `between` NPUs need two of them."""

    name: str
    parts: tuple[CaseSection, ...]
    between: bool = False


def _own(path: CopyPath, cell: CellResult, place: int = 0) -> PathFigure:
    """One path of a cell."""
    of = cell.parts[place] if cell.parts else cell
    ends = f"{text.label(path.source)} -> {text.label(path.destination)}"
    return PathFigure(path.tag, ends, of.samples, of.bytes)


def _each(gauge: Meter, paths: Sequence[CopyPath]) -> list[PathFigure]:
    """Each path separately."""
    cells = gauge.measure([[path.transfer()] for path in paths])
    return [_own(path, cell) for path, cell in zip(paths, cells, strict=True)]


def _matrix(gauge: Meter, asked: CaseRequest) -> tuple[Lines, list[PathFigure]]:
    """Each path separately, over all NPUs."""
    ends: tuple[Device | None, ...] = (None, *asked.ordered) if asked.host else asked.ordered
    paths = [CopyPath(*pair, asked.reads) for pair in permutations(ends, 2)]
    figures = _each(gauge, paths)
    means = (figure.mean for figure in figures)  # row by row, without the diagonal
    rows = [[0.0 if row == column else next(means) for column in ends] for row in ends]
    lines = text.matrix([text.label(end) for end in ends], rows)
    return [f"Device {asked.direction} bandwidth (GB/s)", *lines], figures


def _latencies(gauge: Meter, pairs: Sequence[tuple[Device, Device]]) -> list[PathFigure]:
    cells = gauge.measure([[chase(*pair)] for pair in pairs], "chase", size=CHASE_SIZE)
    return [
        PathFigure("D2D", f"{text.label(one)} -> {text.label(other)}", cell.samples)
        for (one, other), cell in zip(pairs, cells, strict=True)
    ]


def _all_latencies(gauge: Meter, asked: CaseRequest) -> tuple[Lines, list[PathFigure]]:
    figures = _latencies(gauge, list(permutations(asked.ordered, 2)))
    return [text.LATENCY, *map(text.latency_line, figures)], figures


def _latency(gauge: Meter, asked: CaseRequest) -> tuple[Lines, list[PathFigure]]:
    figures = _latencies(gauge, [(asked.source, other) for other in asked.others])
    return [*text.title(text.LATENCY), *map(text.latency_line, figures)], figures


def _steps(asked: CaseRequest) -> Iterator[list[CopyPath]]:
    """From the host to the source, from there to each other NPU, and from those to the host."""
    last = asked.others or asked.npus
    if asked.host:
        yield [CopyPath(None, asked.source)]
    yield [CopyPath(asked.source, other, asked.reads) for other in asked.others]
    if asked.host:
        yield [CopyPath(other, None) for other in last]


def _bandwidth(gauge: Meter, asked: CaseRequest) -> tuple[Lines, list[PathFigure]]:
    figures = _each(gauge, [path for step in _steps(asked) for path in step])
    return _titled("", asked, figures)


def _titled(
    kind: str, asked: CaseRequest, figures: list[PathFigure]
) -> tuple[Lines, list[PathFigure]]:
    title = text.title(f"Device {kind}bandwidth (GB/s) *{asked.direction}")
    return [*title, *map(text.bandwidth_line, figures)], figures


def _both_ways(gauge: Meter, asked: CaseRequest) -> tuple[Lines, list[PathFigure]]:
    """Both ways at the same time, over each pair separately."""
    pairs: list[tuple[Device | None, Device]] = [(asked.source, other) for other in asked.others]
    if asked.host:
        pairs = [*((None, npu) for npu in asked.npus), *pairs]
    groups = [
        (CopyPath(one, other, asked.reads), CopyPath(other, one, asked.reads))
        for one, other in pairs
    ]
    labels = [f"{text.label(one)} <-> {text.label(other)}" for one, other in pairs]
    tags = ["D2D" if one else "H2D/D2H" for one, _ in pairs]
    return _titled("bidirectional ", asked, _together(gauge, groups, tags, labels))


def _parallel(gauge: Meter, asked: CaseRequest) -> tuple[Lines, list[PathFigure]]:
    """Several paths at the same time."""
    two_by_two = zip(asked.npus[::2], asked.npus[1::2], strict=False)
    between = tuple(CopyPath(one, other, asked.reads) for one, other in two_by_two)
    groups = [between] if between else []
    if asked.host:
        groups.insert(0, tuple(CopyPath(None, npu) for npu in asked.npus))
        groups.append(tuple(CopyPath(npu, None) for npu in asked.npus))
    tags = [group[0].tag for group in groups]
    labels = ["TOTAL"] * len(groups)
    return _titled("parallel ", asked, _together(gauge, groups, tags, labels))


def _together(
    gauge: Meter,
    groups: Sequence[tuple[CopyPath, ...]],
    tags: Sequence[str],
    labels: Sequence[str],
) -> list[PathFigure]:
    """For each group of paths that are measured at the same time: each path's figure, then that of
    all of them."""
    cells = gauge.measure([[path.transfer() for path in group] for group in groups])
    figures: list[PathFigure] = []
    for group, cell, tag, label in zip(groups, cells, tags, labels, strict=True):
        figures += [_own(path, cell, place) for place, path in enumerate(group)]
        figures.append(PathFigure(tag, label, cell.samples, cell.bytes))
    return figures


CASES = (
    TestCase("RBLN_PERF_TEST_ALL", (_matrix, _all_latencies)),
    TestCase("RBLN_PERF_BANDWIDTH_TEST_ALL", (_matrix,)),
    TestCase("RBLN_PERF_LATENCY_TEST_ALL", (_all_latencies,), between=True),
    TestCase("RBLN_PERF_BANDWIDTH_TEST", (_bandwidth,)),
    TestCase("RBLN_PERF_LATENCY_TEST", (_latency,), between=True),
    TestCase("RBLN_PERF_BIDIR_BANDWIDTH_TEST", (_both_ways,)),
    TestCase("RBLN_PERF_PARALLEL_BANDWIDTH_TEST", (_parallel,)),
)
"""By their ids."""


# rblnBandwidthLatencyTest: Rebellions' test of the paths between a host and its NPUs.


TOOL = "rblnBandwidthLatencyTest"
_DEFAULT_SIZE = "512M"
_MOST_ITERATIONS = 1_000_000


class RblnOptions(msgspec.Struct, frozen=True):
    """The checked command line."""

    case: int
    sizes: tuple[int, ...]
    size_is_given: bool
    npus: tuple[int, ...]
    source: int | None
    iterations: int
    timeout: float | None
    reads: bool
    numa_node: int | None
    pattern: int | None
    only_d2d: bool
    performance: int
    test_list: bool
    skip_test_env_info: bool
    test_env_info: bool


@hinting(f"Try '{TOOL} --help' for more information.")
def run(arguments: Sequence[str], where: Where) -> int:
    """Measures as this command line asks and prints what the tool prints."""
    if {"-h", "--help"} & set(arguments):
        print(text.HELP)
        return 0
    options = parse(arguments)
    if options.test_list:
        print("\n".join(("List of tests:", *(case.name for case in CASES))))
        return 0
    settings = Settings(
        sizes=options.sizes,
        samples=options.iterations,
        loops=1,
        timeout=options.timeout,
        pattern=options.pattern,
        engines=EngineSettings(numa_node=options.numa_node),
    )
    with opened_devices(where, settings) as context:
        return _run_in(context, options)


def _run_in(context: Context, options: RblnOptions) -> int:
    if options.test_env_info:
        print("\n".join(text.environment(context.machine, context.devices, links=True)))
        return 0
    asked = _asked(context.devices, options)
    case = CASES[options.case]
    if not options.skip_test_env_info:
        print("\n".join(text.environment(context.machine, context.devices, links=False)))
    if options.size_is_given:
        print(f"This test will run with size ({options.sizes[0]:#x})")
    print(text.banner("Run", case.name))
    print(f"\n[Measure Iteration cnt : {options.iterations}]")
    print(f"[Measure Buffer Size : {options.sizes[0]:#x}]\n")
    print("\n".join(text.distances(context.machine, context.devices)), flush=True)
    gauge = Meter(context, TOOL)
    for measure in case.parts:
        lines, figures = measure(gauge, asked)
        performance = text.performance(figures, options.performance)
        print("\n" + "\n".join((*lines, *performance)), flush=True)
    print("\n" + text.banner("FAIL" if gauge.exit_code else "PASS", case.name))
    return gauge.exit_code


def _asked(devices: Sequence[Device], options: RblnOptions) -> CaseRequest:
    """The requested NPUs, the source first. Raises UsageError for one that does not exist, or if a
    case between NPUs has only one."""
    there = {device.index: device for device in devices}
    source = () if options.source is None else (options.source,)
    for index in (*options.npus, *source):
        if index not in there:
            known = ", ".join(map(text.label, devices))
            raise UsageError(f"no NPU {index}: NPUs are {known}")
    chosen = dict.fromkeys((*source, *(options.npus or there)))
    npus = tuple(there[index] for index in chosen)
    if len(npus) < 2 and (options.only_d2d or CASES[options.case].between):
        raise UsageError("this test needs two NPUs, and there is one")
    return CaseRequest(npus, options.reads, not options.only_d2d)


_NUMBERS: tuple[tuple[str, tuple[str, ...], int | None, int | None, int | None], ...] = (
    ("timeout", ("-t", "--timeout"), None, 1, None),
    ("iterations", ("-i", "--iteration_cnt"), 1, 1, _MOST_ITERATIONS),
    ("case", ("--tc",), None, None, None),
    ("source", ("-n", "--device_name"), None, None, None),
    ("performance", ("--get_perf",), 0, 0, 2),
    ("priority", ("--priority",), 0, 0, 4),
    ("reads", ("-r", "--hdma_read"), 0, 0, 1),
    ("numa_node", ("--numa_node",), -1, -1, None),
    ("pattern", ("--data_pattern",), None, 0, (1 << 64) - 1),
    ("flags", ("-f", "--flags"), 0, None, None),
    ("group", ("-g",), 0, None, None),
)
"""Options with a whole number: field, names, default, least (null: any number) and most."""
_FLAGS = ("warmup", "only_d2d", "test_list", "test_env_info", "skip_test_env_info")


def parse(arguments: Sequence[str]) -> RblnOptions:
    """Raises UsageError for unknown options, and for options that contradict each other."""
    parser = Parser()
    for field, names, default, *_ in _NUMBERS:
        parser.add_argument(*names, dest=field, type=_whole, default=default)
    for flag in _FLAGS:
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--test_size")
    parser.add_argument("--npu_id_list")
    given = parser.parse_args(list(arguments))
    _check(given)
    read = {
        "case": given.case or 0,
        "sizes": (size_of("--test_size", given.test_size or _DEFAULT_SIZE),),
        "size_is_given": given.test_size is not None,
        "npus": () if given.npu_id_list is None else _npus(given.npu_id_list),
        "reads": given.reads == 1,
        "numa_node": None if given.numa_node < 0 else given.numa_node,
        "pattern": None if given.pattern is None else _repeated(given.pattern),
    }
    return msgspec.convert(vars(given) | read, RblnOptions)


def _check(given: Namespace) -> None:
    """Raises UsageError for a number out of its range, and for options that contradict each
    other."""
    for field, names, _, low, high in _NUMBERS:
        name = names[-1].lstrip("-")
        value = getattr(given, field)
        if low is None or value is None:
            continue
        if value < low or (high is not None and value > high):
            raise UsageError(
                f"--{name} {value}: give {low} {'or more' if high is None else f'to {high}'}"
            )
    if given.case is not None and not 0 <= given.case < len(CASES):
        raise UsageError(f"unknown test case {given.case}: --test_list shows 0 to {len(CASES) - 1}")
    if given.test_env_info and given.skip_test_env_info:
        raise UsageError("--test_env_info and --skip_test_env_info contradict each other")
    if given.test_env_info and given.case is not None:
        raise UsageError("--test_env_info measures nothing: leave out --tc")


def _whole(written: str) -> int:
    """A whole number, also hexadecimal (0xa5)."""
    try:
        return int(written, 16) if re.fullmatch("0[xX][0-9a-fA-F]+", written) else whole(written)
    except ValueError:
        raise ArgumentTypeError(f"{written!r} is not a whole number") from None


def _npus(written: str) -> tuple[int, ...]:
    try:
        npus = tuple(map(whole, written.split(",")))
    except ValueError:
        why = f"--npu_id_list {written!r}: give numbers with commas, such as 0,1,2"
        raise UsageError(why) from None
    if len(set(npus)) < len(npus):
        raise UsageError(f"--npu_id_list {written}: NPU listed twice")
    return npus


def _repeated(value: int) -> int:
    """The 64-bit word that results from filling memory with a pattern of one, four or eight
    bytes."""
    width = 1 if value < 1 << 8 else 4 if value < 1 << 32 else 8
    return int.from_bytes(value.to_bytes(width, "little") * (8 // width), "little")
