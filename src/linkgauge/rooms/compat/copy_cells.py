"""Measures copies between host and devices, for tools that name a source and a destination."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from linkgauge.cli.tool import Context, Where, measure, opened
from linkgauge.engine.workers.outcomes import unmeasured
from linkgauge.model.documents.result import CellResult, Run, exit_code
from linkgauge.model.errors import InputError, worst_code
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import NULL, Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.operation import OperationName, named
from linkgauge.model.settings import EngineSettings, Settings
from linkgauge.model.transfer import Benchmark, Cell, Engine, EngineKind, Report, Transfer
from linkgauge.model.units import BANDWIDTH, LATENCY, Unit
from linkgauge.report.words.sentences import sentence

PARITY = EngineSettings(tuned=False, streams=1)
"""The settings with which other tools copy: one plain copy after another on one stream."""
NONE = "N/A"


def shown(figure: float | None, form: str) -> str:
    return NONE if figure is None else format(figure, form)


class CopyPath(msgspec.Struct, frozen=True):
    """A copy's source and destination. None is host memory of `kind` near the other device. `reads`
    is true if the destination device copies, false if the source device copies."""

    source: Device | None
    destination: Device | None
    reads: bool = False
    kind: str = ""

    @property
    def tag(self) -> str:
        return "2".join("H" if end is None else "D" for end in (self.source, self.destination))

    def transfer(self, engine: EngineKind = "ce") -> Transfer:
        ends = (self.source, self.destination)
        owner = next(end for end in (ends[::-1] if self.reads else ends) if end is not None)
        near = Memory("host", owner.near, self.kind)
        source, destination = (near if end is None else parse_memory(end.memory) for end in ends)
        return Transfer(source, destination, Engine(parse_memory(owner.memory), engine))


def chase(reader: Device, memory: Device) -> Transfer:
    return Transfer(parse_memory(memory.memory), NULL, Engine(parse_memory(reader.memory), "sm"))


INTERRUPTED = "interrupted"


class Meter:
    def __init__(self, context: Context) -> None:
        self.context = context
        self._tool = context.tool
        self._codes: set[int] = set()
        self._reported: set[str] = set()
        self._count = 0

    def measure(
        self,
        cells: Sequence[Sequence[Transfer]],
        operation: OperationName = "copy",
        *,
        size: int | None = None,
        optional: bool = False,
        figure: tuple[Unit, Report] | None = None,
    ) -> tuple[CellResult, ...]:
        """Measures cells, and prints errors to stderr. If `optional`, skipped cells are no errors.
        `figure` is by default a bandwidth for copies, and a latency for other operations."""
        if not cells:
            return ()
        rate, latency = (BANDWIDTH, Report.SPAN), (LATENCY, Report.LATENCY)
        unit, report = figure or (rate if named(operation).is_copy else latency)
        benchmark = Benchmark(
            self._tool,
            self._tool,
            self.context.backend,
            tuple(
                Cell("0", str(n), tuple(cell), report, operation=operation)
                for n, cell in enumerate(cells)
            ),
            unit,
        )
        known: dict[str, CellResult] = {}
        if 130 not in self._codes:
            sizes = None if size is None else (size,)
            run = measure(self.context, (benchmark,), sizes=sizes, first=self._count)
            self._count += len(benchmark.cells)
            self._note(run, optional)
            known = {cell.column: cell for result in run.results for cell in result.cells}
        return tuple(
            known.get(cell.column) or unmeasured(cell, "skip", INTERRUPTED, "interrupted")
            for cell in benchmark.cells
        )

    def _note(self, run: Run, optional: bool) -> None:
        code = exit_code(run)
        self._codes.add(0 if optional and code == 4 else code)
        for cell in (cell for result in run.results for cell in result.cells):
            if cell.status != "pass" and not (optional and cell.status == "skip"):
                self.report(_trouble(cell))
            for note in cell.notes:
                self.report(f"note: {sentence(note)}")
        if run.finished is None:
            self._codes.add(130)
            self.report(INTERRUPTED)

    def report(self, line: str) -> None:
        if line not in self._reported:
            self._reported.add(line)
            print(f"{self._tool}: {line}", file=sys.stderr)

    @property
    def exit_code(self) -> int:
        """Returns the worst exit code of all measurements, or 4 if nothing was measured."""
        return 4 if (worst := worst_code(self._codes)) is None else worst


@contextmanager
def metered(where: Where, settings: Settings, *, tells: bool = True) -> Iterator[Meter]:
    with opened(where, settings, tells=tells) as context:
        if not context.devices:
            raise InputError(f"backend {context.backend} has no devices")
        yield Meter(context)


def _trouble(cell: CellResult) -> str:
    transfers, reason = str(cell), cell.reason or ""
    named = reason if reason.startswith(transfers) else f"{transfers}: {reason}"
    return f"{cell.status}: {named}"
