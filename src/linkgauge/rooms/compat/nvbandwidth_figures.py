"""Results as nvbandwidth reports them: a status, and matrices over all devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from linkgauge.benchmarks.table import HOST_ROW, Layout
from linkgauge.model.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.result import CellResult, Part, Result
from linkgauge.model.transfer import Transfer
from linkgauge.model.units import unit_of

from .nvbandwidth_cases import Testcase

NAMED = 3
"""Maximum number of reasons reported for a failed test."""


class TestMatrix(msgspec.Struct, frozen=True):
    """Rows by columns of figures in GB/s or ns, null if there is none."""

    name: str
    heading: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    figures: tuple[tuple[float | None, ...], ...]

    @property
    def known(self) -> tuple[float, ...]:
        return tuple(figure for row in self.figures for figure in row if figure is not None)


class Outcome(msgspec.Struct, frozen=True):
    """A test that ran or could not: `reasons` say why it is not Passed, `samples` are lines of each
    sample. `shares` is the percentage of the theoretical figures, if requested."""

    name: str
    status: str
    reasons: tuple[str, ...]
    better: str
    matrices: tuple[TestMatrix, ...]
    samples: tuple[str, ...] = ()
    shares: TestMatrix | None = None


class Misprint(msgspec.Struct, frozen=True):
    """What a tool writes in the headings of a test where it means something else."""

    written: str
    meant: str

    def in_headings(self, shown: Outcome) -> Outcome:
        matrices = tuple(
            replace(matrix, heading=matrix.heading.replace(self.meant, self.written))
            for matrix in shown.matrices
        )
        return replace(shown, matrices=matrices)


def outcome(
    result: Result, case: Testcase, devices: Sequence[Device], *, use_mean: bool, verbose: bool
) -> Outcome:
    """A test skipped altogether is Waived; failed cells have no figure."""
    status = {"pass": "Passed", "skip": "Waived"}.get(result.status, "Error")
    reasons = list(dict.fromkeys(_reasons(result)))
    if len(reasons) > NAMED:
        reasons[NAMED:] = [f"and {len(reasons) - NAMED} more"]
    has_figures = any(cell.status == "pass" for cell in result.cells)
    return Outcome(
        case.name,
        status,
        tuple(reasons),
        result.better,
        tuple(_matrices(result, case, devices, use_mean)) if has_figures else (),
        tuple(_samples(result)) if verbose else (),
    )


def _reasons(result: Result) -> Iterator[str]:
    """Why it is not Passed."""
    if result.status == "skip":
        yield from (result.reason,) if result.reason else (c.reason or "" for c in result.cells)
    for cell in result.cells:
        if cell.status not in ("pass", "skip"):
            yield f"({cell.row}, {cell.column}): {cell.reason}"


class Axes(msgspec.Struct, frozen=True):
    """The rows and columns of a test's matrices, and what is shown in place of the rows."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    labels: tuple[str, ...]

    def grid(
        self, name: str, heading: str, figures: Mapping[tuple[str, str], float | None]
    ) -> TestMatrix:
        """The matrix of these figures, by row and column."""
        ordered = tuple(
            tuple(figures.get((row, column)) for column in self.columns) for row in self.rows
        )
        return TestMatrix(name, heading, self.labels, self.columns, ordered)


def axes(result: Result, case: Testcase, devices: Sequence[Device]) -> Axes:
    """Those of a test over these devices; the host is one row."""
    each = tuple(parse_memory(device.memory).label for device in devices)
    match case.row.layout:
        case Layout.PAIRS:
            return Axes(each, each, each)
        case Layout.TOGETHER:
            return Axes((HOST_ROW,), (HOST_ROW,), (HOST_ROW,))
        case Layout.HALVES:
            width = len(str(len(devices) - 1))
            labels = tuple(_ends(cell.transfers[0], width) for cell in result.cells)
            return Axes(tuple(cell.row for cell in result.cells), (HOST_ROW,), labels)
        case _:
            return Axes((HOST_ROW,), each, (HOST_ROW,))


def _ends(transfer: Transfer, width: int) -> str:
    """`0->2`: the numbers of both processes, as wide as the longest."""
    return f"{transfer.source.label:>{width}}->{transfer.destination.label:>{width}}"


def _matrices(
    result: Result, case: Testcase, devices: Sequence[Device], use_mean: bool
) -> Iterator[TestMatrix]:
    """The matrices of the parts, then the headline's: with parts, that is their sum."""
    scale = unit_of(result.unit).scale
    over = axes(result, case, devices)
    passed: dict[tuple[str, str], CellResult] = {
        cell.place: cell for cell in result.cells if cell.status == "pass"
    }

    def value(measured: CellResult | Part) -> float | None:
        if (summary := measured.summary) is None:
            return None
        return (summary.mean if use_mean else summary.median) / scale

    figures = {at: value(cell) for at, cell in passed.items()}
    if result.parts:
        figures = dict.fromkeys(passed, 0.0)
    for number, name in enumerate(result.parts):
        own = {at: value(cell.parts[number]) for at, cell in passed.items()}
        heading = case.heading.replace(" Total ", f" {name.capitalize()} ")
        yield over.grid(f"{case.name}_{name}", heading, own)
        figures = {at: (total or 0.0) + (own[at] or 0.0) for at, total in figures.items()}
    suffix = "_total" if result.parts else ""
    yield over.grid(case.name + suffix, case.heading, figures)


def _samples(result: Result) -> Iterator[str]:
    """A line for each sample of each reported figure."""
    unit = unit_of(result.unit)
    for cell in (cell for cell in result.cells if cell.status == "pass"):
        for number in range(len(cell.samples)):
            for what, figure in _sampled(cell, number):
                yield f"\tSample {number}: {what}: {figure / unit.scale:.2f} {unit.shown}"


def _sampled(cell: CellResult, number: int) -> Iterator[tuple[str, float]]:
    """The figures of one sample, with what each measured."""
    routes = [_route(transfer) for transfer in cell.transfers]
    if cell.report.is_first:
        yield routes[0], cell.samples[number]
        return
    for part in cell.parts:
        yield routes[part.transfer], part.samples[number]
    if cell.report.is_total:
        yield "Total Bandwidth ", cell.samples[number]


def _route(transfer: Transfer) -> str:
    """`Host -> Device 0`; for a latency, from who accesses to what is accessed."""
    if transfer.destination.is_null:
        return f"{_place(transfer.engine.owner)} -> {_place(transfer.source)}"
    return f"{_place(transfer.source)} -> {_place(transfer.destination)}"


def _place(memory: Memory) -> str:
    if memory.rank is not None:
        return f"Multinode node {memory.rank}"
    return "Host" if memory.is_host else f"Device {memory.index}"
