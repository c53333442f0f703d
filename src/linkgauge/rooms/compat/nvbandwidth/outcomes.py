"""Converts results to what nvbandwidth reports: a status, and matrices over all devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, pstdev
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from linkgauge.benchmarks.table import HOST_ROW, Layout
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Place, Transfer
from linkgauge.model.units import unit_of
from linkgauge.report.matrix import Matrix

from .cases import Testcase

NAMED = 3


Spread = Literal["cells", "samples"] | None
"""Over what a coefficient of variation is taken: the figures of a matrix, as in nvbandwidth 0.9, or
the samples of each figure, as in 0.10. None for nothing."""


class TestMatrix(Matrix, frozen=True):
    """A test's matrix in GB/s or ns. `labels` replace row names; `variation` is stdev / mean."""

    heading: str = ""
    labels: tuple[str, ...] = ()
    variation: float | None = None

    @property
    def ordered(self) -> list[list[float | None]]:
        return [
            [self.figures.get(Place(row, column)) for column in self.columns] for row in self.rows
        ]

    @property
    def known(self) -> list[float]:
        return [figure for row in self.ordered for figure in row if figure is not None]


class TestOutcome(msgspec.Struct, frozen=True):
    """The outcome of a test. `reasons` say why the status is not Passed. `shares` has the figures
    in % of the theoretical figures."""

    name: str
    status: str
    reasons: tuple[str, ...]
    better: str
    matrices: tuple[TestMatrix, ...]
    samples: tuple[str, ...] = ()
    shares: TestMatrix | None = None


class Misprint(msgspec.Struct, frozen=True):
    written: str
    meant: str


class Outcomes(NamedTuple):
    """Makes outcomes for `devices` by a tool's options. An empty `only_rows` selects all rows."""

    devices: Sequence[Device]
    use_mean: bool
    verbose: bool
    spread: Spread
    only_rows: tuple[str, ...]

    def of(self, result: Result, case: Testcase) -> TestOutcome:
        """Returns a test's outcome: `Waived` if it was skipped. Failed cells have no figure."""
        status = {"pass": "Passed", "skip": "Waived"}.get(result.status, "Error")
        reasons = list(dict.fromkeys(_reasons(result)))
        if len(reasons) > NAMED:
            reasons[NAMED:] = [f"and {len(reasons) - NAMED} more"]
        matrices = list(_matrices(result, self.frame(result, case), self.use_mean))
        if matrices and result.better == "higher":
            variation = _variation(result, matrices[-1], self.spread)
            matrices[-1] = replace(matrices[-1], variation=variation)
        return TestOutcome(
            case.name,
            status,
            tuple(reasons),
            result.better,
            tuple(matrices),
            tuple(_samples(result)) if self.verbose else (),
        )

    def frame(self, result: Result, case: Testcase) -> TestMatrix:
        each = tuple(parse_memory(device.memory).label for device in self.devices)
        host: tuple[str, ...] = (HOST_ROW,)
        rows, columns, labels = host, each, host
        match case.row.layout:
            case Layout.PAIRS:
                rows = labels = self.only_rows or each
            case Layout.TOGETHER:
                columns = host
            case Layout.HALVES:
                width = len(str(len(each) - 1))
                rows, columns = tuple(cell.row for cell in result.cells), host
                labels = tuple(_ends(cell.transfers[0], width) for cell in result.cells)
        return TestMatrix(case.name, rows, columns, {}, heading=case.heading, labels=labels)


def _reasons(result: Result) -> Iterator[str]:
    if result.status == "skip":
        yield from (result.reason,) if result.reason else (c.reason or "" for c in result.cells)
    for cell in result.cells:
        if cell.status not in ("pass", "skip"):
            yield f"({cell.row}, {cell.column}): {cell.reason}"


def _variation(result: Result, matrix: TestMatrix, spread: Spread) -> float | None:
    if spread == "samples":
        sampled = (cell.samples for cell in result.cells if cell.status == "pass")
        return fmean(pstdev(samples) / fmean(samples) for samples in sampled)
    if spread is None or len(matrix.known) < 2:
        return None
    return pstdev(matrix.known) / fmean(matrix.known)


def _ends(transfer: Transfer, width: int) -> str:
    return f"{transfer.source.label:>{width}}->{transfer.destination.label:>{width}}"


def _matrices(result: Result, over: TestMatrix, use_mean: bool) -> Iterator[TestMatrix]:
    scale = unit_of(result.unit).scale
    passed = [cell for cell in result.cells if cell.status == "pass"]
    if not passed:
        return

    def figures(*parts: int) -> dict[Place, float]:
        found = {}
        for cell in passed:
            every = [cell.parts[part].summary for part in parts] or [cell.summary]
            if known := [one for one in every if one is not None]:
                each = (one.mean if use_mean else one.median for one in known)
                found[cell.place] = sum(figure / scale for figure in each)
        return found

    for number, part in enumerate(result.parts):
        heading = over.heading.replace(" Total ", f" {part.capitalize()} ")
        name = f"{over.name}_{part}"
        yield replace(over, name=name, heading=heading, figures=figures(number))
    name = over.name + ("_total" if result.parts else "")
    yield replace(over, name=name, figures=figures(*range(len(result.parts))))


def _samples(result: Result) -> Iterator[str]:
    unit = unit_of(result.unit)
    for cell in (cell for cell in result.cells if cell.status == "pass"):
        for number in range(len(cell.samples)):
            for what, figure in _sampled(cell, number):
                yield f"\tSample {number}: {what}: {figure / unit.scale:.2f} {unit.shown}"


def _sampled(cell: CellResult, number: int) -> Iterator[tuple[str, float]]:
    routes = [_route(transfer) for transfer in cell.transfers]
    if cell.report.is_first:
        yield routes[0], cell.samples[number]
        return
    for part in cell.parts:
        yield routes[part.transfer], part.samples[number]
    if cell.report.is_total:
        yield "Total Bandwidth ", cell.samples[number]


def _route(transfer: Transfer) -> str:
    """Formats a transfer as `SOURCE -> DESTINATION`, a latency as `READER -> MEMORY`."""
    if transfer.destination.is_null:
        return f"{_place(transfer.engine.owner)} -> {_place(transfer.source)}"
    return f"{_place(transfer.source)} -> {_place(transfer.destination)}"


def _place(memory: Memory) -> str:
    if memory.rank is not None:
        return f"Multinode node {memory.rank}"
    return "Host" if memory.is_host else f"Device {memory.index}"
