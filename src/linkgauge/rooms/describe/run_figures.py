"""Reads the figures of a run, and simulates them on a described machine."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from itertools import accumulate, pairwise
from statistics import median, pstdev
from typing import Any, NamedTuple

import yaml
from msgspec.structs import replace

from linkgauge.backends.sim.refusals import known_by
from linkgauge.engine.controller import Observer, execute
from linkgauge.engine.kept.journal import Opened
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable, Run
from linkgauge.model.memory import Memory
from linkgauge.model.recorded import RECORDED, path_kind
from linkgauge.model.settings import Settings, Simulation
from linkgauge.model.transfer import Cell, Engine
from linkgauge.model.units import STREAM

Tree = dict[str, Any]


class Figure(NamedTuple):
    """A figure of a run. Its `cell` is translated to the memories of the simulated machine."""

    benchmark: str
    cell: Cell
    size: int
    unit: str
    value: float

    @property
    def known_by(self) -> str:
        return known_by(self.cell.transfers, self.cell.does)

    @property
    def engine(self) -> Engine:
        return self.cell.transfers[0].engine

    @property
    def bytes(self) -> int:
        return self.cell.transfers[0].scale

    @property
    def places(self) -> frozenset[str]:
        named = (memory for each in self.cell.transfers for memory in each.named)
        return frozenset(str(memory.place) for memory in named if not memory.is_null)

    @property
    def is_of_arrays(self) -> bool:
        return self.unit == STREAM.symbol


def figures_of(run: Run) -> list[Figure]:
    found = ([one for one in some if not one.is_cpu] for some in run.machine.devices.values())
    cards = next(filter(None, found), [])
    numbers = {card.memory: number for number, card in enumerate(cards)}
    backends = {"host", *(card.memory.partition(":")[0] for card in cards)}

    def at(memory: Memory) -> Memory:
        number = numbers.get(str(memory.place))
        return memory if number is None else replace(memory, space="sim", index=number)

    def cell_of(cell: CellResult) -> Cell:
        transfers = tuple(one.placed(at) for one in cell.transfers)
        return Cell(cell.row, cell.column, transfers, cell.report, operation=cell.operation)

    return [
        Figure(result.benchmark, cell_of(cell), result.size, result.unit, cell.headline)
        for result in run.results
        if result.backend in backends
        for cell in result.cells
        if cell.headline and cell.status == "pass" and cell.workload is None
    ]


def simulated(tree: Tree, figures: Sequence[Figure]) -> list[float | None]:
    """Returns a described machine's figures without noise; None for a cell that it cannot run."""
    quiet = {name: value for name, value in tree.items() if not name.startswith("noise")}
    simulation = Simulation("described", yaml.safe_dump(quiet | {"noise": 0}))
    settings = Settings((1,), samples=1, verify=False, simulation=simulation)
    cells = [
        PlannedCell(
            "", "", one.cell.transfers, one.cell.report, number=n, operation=one.cell.operation
        )
        for n, one in enumerate(figures)
    ]
    plan = tuple(
        PlannedTable(
            benchmark=one.benchmark, title="", backend="sim", size=one.size, unit=one.unit,
            better="higher", cells=(cell,),
        )
        for one, cell in zip(figures, cells, strict=True)
    )  # fmt: skip
    with closing(LocalWorker(settings)) as worker:
        opened = Opened(
            id="", label="", simulated=True, command=(), started="",
            machine=worker.survey(("sim",)), settings=settings, plan=plan,
        )  # fmt: skip
        run = execute((opened,), worker, lambda record: None, Observer())
    return [result.cells[0].headline for result in run.results]


def noises_of(run: Run) -> dict[str, dict[str, str]]:
    """Returns the relative standard deviations of samples, repetitions and runs, as texts in
    percent, by kind of path. Those of runs come from recorded machines: one run shows none."""
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for cell in (cell for result in run.results for cell in result.cells):
        logs = [math.log(one) for one in cell.samples if one > 0]
        if len(logs) == sum(map(sum, cell.repetitions)) > 1:
            ends = accumulate(map(sum, cell.repetitions), initial=0)
            repetitions = [logs[a:b] for a, b in pairwise(ends) if b > a]
            kind = path_kind(cell, cell.bytes)
            within, between = median(map(pstdev, repetitions)), pstdev(map(median, repetitions))
            found[kind].append((within, between, RECORDED[kind].process))
    fields = "samples", "repetitions", "runs"
    return {
        kind: {
            field: f"{median(each):.3%}"
            for field, each in zip(fields, zip(*some, strict=True), strict=True)
        }
        for kind, some in found.items()
    }
