"""The seven test cases of rblnBandwidthLatencyTest: what each measures, as lines and their figures.

Where the page is brief, it is read as follows: case 5 copies both ways at once; case 6 copies over
several paths at once, first host to NPUs, then NPU to NPU (in pairs as they are listed), then NPUs
to host. The sync latency is the time of one access to the other NPU's memory: a pointer chase
through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations

import msgspec

from linkgauge.model.machine import Device
from linkgauge.model.result import CellResult

from . import rbln_text as text
from .copy_cells import CopyPath, Meter, chase
from .rbln_text import Figure

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
CaseSection = Callable[[Meter, CaseRequest], tuple[Lines, list[Figure]]]


class TestCase(msgspec.Struct, frozen=True):
    """`parts` return the lines below the case's banner and the figures in them, for which
    --get_perf adds lines; cases `between` NPUs need two of them."""

    name: str
    parts: tuple[CaseSection, ...]
    between: bool = False


def _own(path: CopyPath, cell: CellResult, place: int = 0) -> Figure:
    """One path of a cell."""
    of = cell.parts[place] if cell.parts else cell
    ends = f"{text.label(path.source)} -> {text.label(path.destination)}"
    return Figure(path.tag, ends, of.samples, of.bytes)


def _each(gauge: Meter, paths: Sequence[CopyPath]) -> list[Figure]:
    """Each path separately."""
    cells = gauge.measure([[path.transfer()] for path in paths])
    return [_own(path, cell) for path, cell in zip(paths, cells, strict=True)]


def _matrix(gauge: Meter, asked: CaseRequest) -> tuple[Lines, list[Figure]]:
    """Each path separately, over all NPUs."""
    ends: tuple[Device | None, ...] = (None, *asked.ordered) if asked.host else asked.ordered
    paths = [CopyPath(*pair, asked.reads) for pair in permutations(ends, 2)]
    figures = _each(gauge, paths)
    means = (figure.mean for figure in figures)  # row by row, without the diagonal
    rows = [[0.0 if row == column else next(means) for column in ends] for row in ends]
    lines = text.matrix([text.label(end) for end in ends], rows)
    return [f"Device {asked.direction} bandwidth (GB/s)", *lines], figures


def _latencies(gauge: Meter, pairs: Sequence[tuple[Device, Device]]) -> list[Figure]:
    cells = gauge.measure([[chase(*pair)] for pair in pairs], "chase", size=CHASE_SIZE)
    return [
        Figure("D2D", f"{text.label(one)} -> {text.label(other)}", cell.samples)
        for (one, other), cell in zip(pairs, cells, strict=True)
    ]


def _all_latencies(gauge: Meter, asked: CaseRequest) -> tuple[Lines, list[Figure]]:
    figures = _latencies(gauge, list(permutations(asked.ordered, 2)))
    return [text.LATENCY, *map(text.latency_line, figures)], figures


def _latency(gauge: Meter, asked: CaseRequest) -> tuple[Lines, list[Figure]]:
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


def _bandwidth(gauge: Meter, asked: CaseRequest) -> tuple[Lines, list[Figure]]:
    figures = _each(gauge, [path for step in _steps(asked) for path in step])
    return _titled("", asked, figures)


def _titled(kind: str, asked: CaseRequest, figures: list[Figure]) -> tuple[Lines, list[Figure]]:
    title = text.title(f"Device {kind}bandwidth (GB/s) *{asked.direction}")
    return [*title, *map(text.bandwidth_line, figures)], figures


def _both_ways(gauge: Meter, asked: CaseRequest) -> tuple[Lines, list[Figure]]:
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


def _parallel(gauge: Meter, asked: CaseRequest) -> tuple[Lines, list[Figure]]:
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
) -> list[Figure]:
    """For each group of paths that are measured at the same time: each path's figure, then that of
    all of them."""
    cells = gauge.measure([[path.transfer() for path in group] for group in groups])
    figures: list[Figure] = []
    for group, cell, tag, label in zip(groups, cells, tags, labels, strict=True):
        figures += [_own(path, cell, place) for place, path in enumerate(group)]
        figures.append(Figure(tag, label, cell.samples, cell.bytes))
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
