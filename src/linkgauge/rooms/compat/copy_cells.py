"""Copies between the host and devices as cells, for the tools that name them by their two ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from linkgauge.cli.tool import Context, measure
from linkgauge.engine.workers.messages import unmeasured
from linkgauge.model.documents.result import CellResult, exit_code
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import NULL, Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.operation import OperationName, named
from linkgauge.model.transfer import Benchmark, Cell, Engine, EngineKind, Report, Transfer
from linkgauge.model.units import BANDWIDTH, LATENCY, Unit
from linkgauge.report.words.sentences import sentence


class CopyPath(msgspec.Struct, frozen=True):
    """A path from one memory to another, at least one of them a device's; null is the host, on the
    node near the device. The source carries out a copy between two devices, or with `reads` the
    destination; `kind` is the kind of host memory."""

    source: Device | None
    destination: Device | None
    reads: bool = False
    kind: str = ""

    @property
    def tag(self) -> str:
        """H2D, D2H or D2D."""
        return "2".join("H" if end is None else "D" for end in (self.source, self.destination))

    def transfer(self, engine: EngineKind = "ce") -> Transfer:
        """One copy over this path by the device's `engine`."""
        ends = (self.source, self.destination)
        owner = next(end for end in (ends[::-1] if self.reads else ends) if end is not None)
        near = Memory("host", owner.near, self.kind)
        source, destination = (near if end is None else parse_memory(end.memory) for end in ends)
        return Transfer(source, destination, Engine(parse_memory(owner.memory), engine))


def chase(reader: Device, memory: Device) -> Transfer:
    """A pointer chase of `reader` through the memory of another device."""
    return Transfer(parse_memory(memory.memory), NULL, Engine(parse_memory(reader.memory), "sm"))


INTERRUPTED = "interrupted"
_WORST_FIRST = (130, 3, 1, 4, 0)
"""Exit codes by priority: the first that occurred is the result."""


class Meter:
    """Measures cells, one benchmark after the other, and tracks how all of them ended."""

    def __init__(self, context: Context, tool: str) -> None:
        self.context = context
        self._tool = tool
        self._codes: set[int] = set()
        self._reported: set[str] = set()
        self._count = 0
        """The number of cells planned so far."""

    def measure(
        self,
        cells: Sequence[Sequence[Transfer]],
        operation: OperationName = "copy",
        *,
        size: int | None = None,
        optional: bool = False,
    ) -> tuple[CellResult, ...]:
        """A result for each cell, in order, at `size` bytes (else the settings'); prints their
        errors and notes on stderr. If all are skipped, that is a failure, unless `optional`. After
        Ctrl-C whatever was not measured, and everything requested later, is skipped as
        interrupted."""
        if not cells:
            return ()
        copies = named(operation).is_copy
        unit: Unit = BANDWIDTH if copies else LATENCY
        report = Report.SPAN if copies else Report.LATENCY
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
        known = self._measure(benchmark, size, optional)
        return tuple(
            known.get(cell.column) or unmeasured(cell, "skip", INTERRUPTED, "interrupted")
            for cell in benchmark.cells
        )

    def _measure(
        self, benchmark: Benchmark, size: int | None, optional: bool
    ) -> dict[str, CellResult]:
        """The measured cells, by their columns."""
        if 130 in self._codes:
            return {}
        sizes = None if size is None else (size,)
        run = measure(self.context, (benchmark,), sizes=sizes, first=self._count)
        self._count += len(benchmark.cells)
        code = exit_code(run)
        self._codes.add(0 if optional and code == 4 else code)
        cells = [cell for result in run.results for cell in result.cells]
        for cell in cells:
            if cell.status != "pass" and not (optional and cell.status == "skip"):
                self.report(_trouble(cell))
            for note in cell.notes:
                self.report(f"note: {sentence(note)}")
        if run.finished is None:
            self._codes.add(130)
            self.report(INTERRUPTED)
        return {cell.column: cell for cell in cells}

    def report(self, line: str) -> None:
        """Prints each distinct line once on stderr."""
        if line not in self._reported:
            self._reported.add(line)
            print(f"{self._tool}: {line}", file=sys.stderr)

    @property
    def exit_code(self) -> int:
        """The worst of all that was measured: not 0 if nothing was."""
        return next((code for code in _WORST_FIRST if code in self._codes), 4)


def _trouble(cell: CellResult) -> str:
    """What happened to a cell; its reason may already name the transfer."""
    transfers, reason = str(cell), cell.reason or ""
    named = reason if reason.startswith(transfers) else f"{transfers}: {reason}"
    return f"{cell.status}: {named}"
