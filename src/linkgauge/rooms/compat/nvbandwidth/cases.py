"""Defines nvbandwidth's 35 tests for one process and its 13 tests for several processes, with their
descriptions and headings. benchmarks/copies.py and multinode.py define the measurements.

Names, order and headings are the interface of nvbandwidth 0.8."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from linkgauge.benchmarks.copies import NVBANDWIDTH
from linkgauge.benchmarks.multinode import MULTINODE
from linkgauge.benchmarks.table import HOST_ROW, Layout, Row
from linkgauge.cli.tool_options import digits
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Place, Report, Transfer
from linkgauge.model.units import BANDWIDTH, unit_of
from linkgauge.report.matrix import Matrix

_READ = "Read: the device of the row pulls from the device of the column."
_WRITE = "Write: the device of the row pushes to the device of the column."
_PAIRS = "Bandwidth between each pair of devices that reach each other."
_PAIRS_BOTH = "Both directions at once between each pair of devices; each of them and their total."
_PREFIX = "multinode_"
_OF_PROCESSES = "Each device belongs to another process."
_TOTAL = "Total bandwidth, from the first copy's start to the last one's end, for each device."

# Rows and columns, with the arrow between them in the heading, and the list text.
_COPIES: dict[str, tuple[str, ...]] = {
    "host_to_device_memcpy": ("CPU -> GPU", "Copy from the host to each device."),
    "device_to_host_memcpy": ("CPU <- GPU", "Copy from each device to the host."),
    "host_to_device_bidirectional_memcpy": (
        "CPU <-> GPU", "Copy from the host to each device while another goes back.",
        "Only the way to the device is reported.",
    ),
    "device_to_host_bidirectional_memcpy": (
        "CPU <-> GPU", "Copy from each device to the host while another goes back.",
        "Only the way to the host is reported.",
    ),
    "device_to_device_memcpy_read": ("GPU -> GPU", _PAIRS, _READ),
    "device_to_device_memcpy_write": ("GPU <- GPU", _PAIRS, _WRITE),
    "device_to_device_bidirectional_memcpy_read": (
        "GPU <-> GPU", _PAIRS_BOTH, "Read: each device pulls.",
    ),
    "device_to_device_bidirectional_memcpy_write": (
        "GPU <-> GPU", _PAIRS_BOTH, "Write: each device pushes.",
    ),
    "all_to_host_memcpy": (
        "CPU <- GPU", "Copy from one device to the host while all others copy to the host.",
    ),
    "all_to_host_bidirectional_memcpy": (
        "CPU <-> GPU", "Copy from one device to the host while all devices copy both ways.",
        "Only the one device's way to the host is reported.",
    ),
    "host_to_all_memcpy": (
        "CPU -> GPU", "Copy from the host to one device while the host copies to all others.",
    ),
    "host_to_all_bidirectional_memcpy": (
        "CPU <-> GPU", "Copy from the host to one device while all devices copy both ways.",
        "Only the way to the one device is reported.",
    ),
    "all_to_one_write": ("GPU <- GPU", "Copies from all others to one device, by them.", _TOTAL),
    "all_to_one_read": ("GPU -> GPU", "Copies from one device to all others.", _TOTAL),
    "one_to_all_write": ("GPU -> GPU", "Copies from one device to all others, by it.", _TOTAL),
    "one_to_all_read": ("GPU <- GPU", "Copies from all others to one device.", _TOTAL),
}  # fmt: skip
_BY = {
    "ce": "By copy engines (memcpy calls of the driver).",
    "sm": "By a kernel on the multiprocessors.",
    "tma": "By the bulk copy unit (TMA), which a kernel controls.",
}

_OTHERS: dict[str, tuple[str, ...]] = {
    "host_device_latency_sm": (
        "memory latency SM CPU(row) <-> GPU(column) (ns)",
        "Latency of a device's access to host memory: a pointer chase through 2 MiB.",
        "--bufferSize has no effect.",
    ),
    "device_to_device_latency_sm": (
        "Device to Device Latency SM GPU(row) <-> GPU(column) (ns)",
        "Latency of the row's device reaching memory of the column's: a pointer chase through",
        "2 MiB. --bufferSize has no effect.",
    ),
    "device_to_device_latency_tma": (
        "Device to Device Latency TMA GPU(row) <-> GPU(column) (ns)",
        "Latency of the row's device reaching memory of the column's by the bulk copy unit (TMA): a",
        "pointer chase through 2 MiB. --bufferSize has no effect.",
    ),
    "device_local_copy": (
        "memcpy local GPU(column) bandwidth (GB/s)",
        "Copy between two buffers of the same device, by copy engines.",
    ),
    "device_local_copy_sm": (
        "memcpy local SM GPU(column) bandwidth (GB/s)",
        "Copy between two buffers of the same device, by a kernel.",
    ),
    "device_local_read_sm": (
        "memcpy local SM read GPU(column) bandwidth (GB/s)",
        "A kernel reads a buffer of its own device.",
    ),
    "device_local_write_sm": (
        "memcpy local SM write GPU(column) bandwidth (GB/s)",
        "A kernel writes to a buffer of its own device.",
    ),
    "device_local_copy_tma": (
        "memcpy local TMA GPU(column) bandwidth (GB/s)",
        "Copy between two buffers of the same device, by the bulk copy unit (TMA).",
    ),
    "multinode_device_to_device_all_to_one_write_sm": (
        "memcpy SM All Gpus -> GPU(column) total bandwidth (GB/s)",
        "Copies from all others to one device, by them; the sum of their rates.", _OF_PROCESSES,
    ),
    "multinode_device_to_device_all_from_one_read_sm": (
        "memcpy SM All Gpus <- GPU(column) total bandwidth (GB/s)",
        "Copies from one device to all others, by them; the sum of their rates.", _OF_PROCESSES,
    ),
    "multinode_device_to_device_broadcast_one_to_all_sm": (
        "multicast SM GPU(column) -> All Gpus total bandwidth (GB/s)",
        "One device stores in the memories of all others at once.", _OF_PROCESSES,
    ),
    "multinode_device_to_device_broadcast_all_to_all_sm": (
        "multicast SM All -> All Gpus total bandwidth (GB/s)",
        "Each device stores in the memories of all others at once; the sum of their rates.",
        _OF_PROCESSES,
    ),
    "multinode_bisect_write_ce": (
        "Bisect benchmarking, simultaneous write CE BW",
        "Each device writes to the one half of all further on, all at the same time.",
        _OF_PROCESSES,
    ),
}  # fmt: skip
"""The line above the matrix, and the list text, by test."""


class Testcase(msgspec.Struct, frozen=True):
    """A test. `row` is its benchmark, `heading` the line above its matrix, and `about` its
    description in the list of tests. If the test has several matrices, the heading is above the
    total."""

    row: Row
    heading: str
    about: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def is_of_pairs(self) -> bool:
        """Whether the rows of the test are devices, like its columns."""
        return self.row.layout is Layout.PAIRS

    @property
    def row_with_local_copies(self) -> Row:
        """Returns the row of the benchmark. For copies between pairs of devices in one process, the
        row includes copies within a device."""
        has_local = self.is_of_pairs and self.row.unit is BANDWIDTH and not self.row.across_ranks
        return replace(self.row, diagonal=has_local)


def _case(row: Row) -> Testcase:
    if row.report is Report.TOTAL:
        row = replace(row, report=Report.SPAN)
    if row.name in _OTHERS:
        heading, *about = _OTHERS[row.name]
        return Testcase(row, heading, tuple(about))
    name, _, kind = row.name.rpartition("_")
    ends, *about = _COPIES[name.removeprefix(_PREFIX)]
    if row.across_ranks:
        about.append(_OF_PROCESSES)
    row_label, arrow, column_label = ends.split()
    total = "Total " if row.parts else ""
    between = f"{row_label}(row) {arrow} {column_label}(column)"
    heading = f"memcpy {kind.upper()} {between} {total}bandwidth (GB/s)"
    return Testcase(row, heading, (*about, _BY[kind]))


CASES = tuple(map(_case, NVBANDWIDTH))
"""The tests for one process, in the order of their indices."""
_OF_SEVERAL = tuple(map(_case, MULTINODE))
BY_NAME = {case.name: case for case in (*CASES, *_OF_SEVERAL)}


def cases_of(*, several: bool) -> tuple[Testcase, ...]:
    """Returns the tests for one process or for several processes, by index. As in nvbandwidth,
    tests between processes come last and need several processes."""
    return (*CASES, *_OF_SEVERAL) if several else CASES


def hint(command: str, asked: str) -> str:
    """Returns a hint on how to run a test that needs several processes, or an empty text for other
    tests. The hint shows the command line: `command`, then the name."""
    if not any(case.name.startswith(asked) for case in _OF_SEVERAL):
        return ""
    return (
        " (multinode tests need a process for each device: "
        f"mpirun -n 2 linkgauge as {command} {asked})"
    )


def find(asked: str, cases: Sequence[Testcase]) -> Testcase | str:
    """Returns the test with this name or index. If there is no such test among `cases`, returns the
    reason."""
    if (index := digits(asked)) is not None:
        return cases[index] if index < len(cases) else f"Testcase index {asked} out of bound!"
    case = BY_NAME.get(asked)
    return case if case is not None and case in cases else f"Testcase {asked} not found!"


def with_prefixes(prefixes: Sequence[str], cases: Sequence[Testcase]) -> tuple[str, ...]:
    """Returns the names among `cases` that begin with one of these prefixes."""
    return tuple(case.name for case in cases if case.name.startswith(tuple(prefixes)))


# Results as nvbandwidth reports them: a status, and matrices over all devices.


NAMED = 3
"""The most reasons that are reported for a failed test."""


class TestMatrix(Matrix, frozen=True):
    """A matrix in GB/s or ns, with the heading above it. `labels` replace the names of the rows."""

    heading: str = ""
    labels: tuple[str, ...] = ()

    @property
    def ordered(self) -> list[list[float | None]]:
        """Returns the figures by row and column; None where there is no figure."""
        return [
            [self.figures.get(Place(row, column)) for column in self.columns] for row in self.rows
        ]

    @property
    def known(self) -> list[float]:
        """Returns the figures that exist, row by row."""
        return [figure for row in self.ordered for figure in row if figure is not None]


class TestOutcome(msgspec.Struct, frozen=True):
    """The result of a test. `reasons` say why the status is not Passed. `samples` are lines on each
    sample. `shares` are percentages of the theoretical figures, if requested."""

    name: str
    status: str
    reasons: tuple[str, ...]
    better: str
    matrices: tuple[TestMatrix, ...]
    samples: tuple[str, ...] = ()
    shares: TestMatrix | None = None


class Misprint(msgspec.Struct, frozen=True):
    """A wrong word in the headings of a test. `written` is what the tool writes, and `meant` is the
    right word."""

    written: str
    meant: str

    def in_headings(self, shown: TestOutcome) -> TestOutcome:
        matrices = tuple(
            replace(matrix, heading=matrix.heading.replace(self.meant, self.written))
            for matrix in shown.matrices
        )
        return replace(shown, matrices=matrices)


def outcome(
    result: Result, case: Testcase, devices: Sequence[Device], *, use_mean: bool, verbose: bool
) -> TestOutcome:
    """Returns the outcome of a test. A test that was skipped is Waived. Failed cells have no
    figure."""
    status = {"pass": "Passed", "skip": "Waived"}.get(result.status, "Error")
    reasons = list(dict.fromkeys(_reasons(result)))
    if len(reasons) > NAMED:
        reasons[NAMED:] = [f"and {len(reasons) - NAMED} more"]
    has_figures = any(cell.status == "pass" for cell in result.cells)
    return TestOutcome(
        case.name,
        status,
        tuple(reasons),
        result.better,
        tuple(_matrices(result, case, devices, use_mean)) if has_figures else (),
        tuple(_samples(result)) if verbose else (),
    )


def _reasons(result: Result) -> Iterator[str]:
    """Yields the reasons why the test is not Passed."""
    if result.status == "skip":
        yield from (result.reason,) if result.reason else (c.reason or "" for c in result.cells)
    for cell in result.cells:
        if cell.status not in ("pass", "skip"):
            yield f"({cell.row}, {cell.column}): {cell.reason}"


def frame(result: Result, case: Testcase, devices: Sequence[Device]) -> TestMatrix:
    """Returns an empty matrix with the rows and columns of a test over these devices. The host is a
    single row."""
    each = tuple(parse_memory(device.memory).label for device in devices)
    host: tuple[str, ...] = (HOST_ROW,)
    rows, columns, labels = host, each, host
    match case.row.layout:
        case Layout.PAIRS:
            rows = labels = each
        case Layout.TOGETHER:
            columns = host
        case Layout.HALVES:
            width = len(str(len(devices) - 1))
            rows, columns = tuple(cell.row for cell in result.cells), host
            labels = tuple(_ends(cell.transfers[0], width) for cell in result.cells)
    return TestMatrix(case.name, rows, columns, {}, heading=case.heading, labels=labels)


def _ends(transfer: Transfer, width: int) -> str:
    """Returns the numbers of both processes, padded to `width`: `0->2`."""
    return f"{transfer.source.label:>{width}}->{transfer.destination.label:>{width}}"


def _matrices(
    result: Result, case: Testcase, devices: Sequence[Device], use_mean: bool
) -> Iterator[TestMatrix]:
    """Yields a matrix for each part of a test, then the matrix of the headline figures. If there
    are parts, the headline figure is their sum."""
    scale = unit_of(result.unit).scale
    over = frame(result, case, devices)
    passed = [cell for cell in result.cells if cell.status == "pass"]

    def figures(*parts: int) -> dict[Place, float]:
        """Returns the sum of these parts for each cell. If no parts are given, returns the headline
        figures."""
        summaries = (
            (cell.place, [cell.parts[part].summary for part in parts] or [cell.summary])
            for cell in passed
        )
        known = {place: [one for one in each if one is not None] for place, each in summaries}
        return {
            place: sum((one.mean if use_mean else one.median) / scale for one in each)
            for place, each in known.items()
            if each
        }

    for number, part in enumerate(result.parts):
        heading = case.heading.replace(" Total ", f" {part.capitalize()} ")
        name = f"{case.name}_{part}"
        yield replace(over, name=name, heading=heading, figures=figures(number))
    name = case.name + ("_total" if result.parts else "")
    yield replace(over, name=name, figures=figures(*range(len(result.parts))))


def _samples(result: Result) -> Iterator[str]:
    """Yields a line for each sample of each reported figure."""
    unit = unit_of(result.unit)
    for cell in (cell for cell in result.cells if cell.status == "pass"):
        for number in range(len(cell.samples)):
            for what, figure in _sampled(cell, number):
                yield f"\tSample {number}: {what}: {figure / unit.scale:.2f} {unit.shown}"


def _sampled(cell: CellResult, number: int) -> Iterator[tuple[str, float]]:
    """Yields each figure of one sample, with the path of the transfer."""
    routes = [_route(transfer) for transfer in cell.transfers]
    if cell.report.is_first:
        yield routes[0], cell.samples[number]
        return
    for part in cell.parts:
        yield routes[part.transfer], part.samples[number]
    if cell.report.is_total:
        yield "Total Bandwidth ", cell.samples[number]


def _route(transfer: Transfer) -> str:
    """Returns the path of a transfer: `Host -> Device 0`. The path of a latency goes from the
    reader to the memory that is read."""
    if transfer.destination.is_null:
        return f"{_place(transfer.engine.owner)} -> {_place(transfer.source)}"
    return f"{_place(transfer.source)} -> {_place(transfer.destination)}"


def _place(memory: Memory) -> str:
    if memory.rank is not None:
        return f"Multinode node {memory.rank}"
    return "Host" if memory.is_host else f"Device {memory.index}"


# How much of the theoretical figure was reached.


def utilisation(result: Result) -> dict[tuple[str, str], float]:
    """Returns the figure divided by the theoretical figure, by row and column. A cell that lacks
    one of these figures is left out."""
    return {
        cell.place: share
        for cell in result.cells
        if cell.expected is not None and (share := cell.share(cell.expected.theoretical))
    }
