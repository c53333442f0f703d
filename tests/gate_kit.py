"""Runs with given figures, for whoever compares and gates them, and noise to draw figures from."""

from __future__ import annotations

import csv
import math
import random
import statistics
from pathlib import Path

from fakes import machine
from linkgauge.judge.compare.gate import hold, suspects
from linkgauge.judge.compare.likeness import CellFigure, RunFigures
from linkgauge.judge.compare.machine_state import state_from
from linkgauge.judge.compare.side_tests import key_of
from linkgauge.model.counters import Load
from linkgauge.model.documents.history import EarlierMedians
from linkgauge.model.settings import Settings
from linkgauge.model.stats.changes import Aim

RECORDED = Path(__file__).parents[1] / "docs" / "intervals-2xH200.csv"
MACHINE = machine()
EQUIVALENT = 4
"""Cells of one benchmark."""


def cell(
    number, figure, *, status="pass", better="higher", busy=None, process=None, apart=(), **more
):
    """Cell `number`, of which each four are one benchmark's; `busy` are CPUs of others, and `apart`
    how far its own are from each other."""
    pid = 77 if process else None
    load = None if busy is None else Load(10.0, 10.0 * busy, 0.0, process, pid, apart)
    slow = {} if figure is None else {"slow_p95": figure * 0.99, "slow_p99": figure * 0.98}
    return CellFigure(**{
        "benchmark": f"benchmark_{number // EQUIVALENT}", "backend": "sim", "size": 1 << 20,
        "row": "0", "column": str(number % EQUIVALENT),
        "unit": "B/s" if better == "higher" else "s", "better": better, "status": status,
        "figure": figure, "load": load, **slow, **more,
    })  # fmt: skip


def run(name, *cells, again=False, settings=None, of=MACHINE, facts=None, busy=None):
    return RunFigures(
        id=name, label="", started=name, machine=of, settings=settings or Settings((1 << 20,)),
        cells=tuple(cells), again=again, facts=facts or {}, busy=busy or {},
    )  # fmt: skip


def runs(name, *figures, **more):
    """A run for each figure of one cell."""
    return [run(f"{name}{n}", cell(0, figure, **more)) for n, figure in enumerate(figures)]


def normal(generator, count):
    """Deviations of a run's cells, of variance 1, each by itself."""
    return [generator.gauss(0.0, 1.0) for _ in range(count)]


def recorded(*, once=False):
    """The same, as six sets of 24 runs of 12 cells on two H200s deviated, one set in a trial; a
    simulated run takes the deviations of one recorded run for 12 cells together, so that they are
    correlated as they were. These are the noises of the sets."""
    sets: dict[str, dict[tuple[str, str, str], list[float]]] = {}
    with RECORDED.open() as file:
        for line in csv.DictReader(file):
            key = line["benchmark"], line["row"], line["column"]
            own = sets.setdefault(line["set"], {})
            own.setdefault(key, []).append(math.log(float(line["median"])))
    logs = [[standardized(each) for each in own.values()] for own in sets.values()]
    return [drawn_from(each, once=once) for each in logs]


def standardized(values):
    middle, deviation = statistics.fmean(values), statistics.pstdev(values)
    return [(value - middle) / deviation for value in values]


def drawn_from(columns, *, once=False):
    """Noise that takes whole rows of these columns, each of them `once` if there are enough."""
    rows = list(zip(*columns, strict=True))

    def draw(generator, count):
        found, left = [], vars(generator).setdefault("left", [])
        while len(found) < count:
            left += [] if left or not once else generator.sample(rows, len(rows))
            found += left.pop() if once else generator.choice(rows)
        return found[:count]

    return draw


class Trial:
    """Runs of so many cells, whose deviations between runs are exactly `deviation` (one of all, or
    one of each); cell 0 has lost `loss` in current runs. Of several noises it takes one."""

    def __init__(self, seed, noise, cells, deviation=0.01, loss=0.0, at=0):
        self._random = random.Random(seed)
        self._noise = self._random.choice(noise) if isinstance(noise, list) else noise
        self._cells, self._loss, self._at = cells, loss, at
        each = isinstance(deviation, list)
        self._deviations = deviation if each else [deviation] * cells
        self._count = 0

    def skip(self, count):
        """Goes on as if so many runs had been measured."""
        self.runs(count, current=False)

    def runs(self, count, *, current, only=None):
        return [self._run(current, only) for _ in range(count)]

    def _run(self, current, only):
        self._count += 1
        drawn = self._noise(self._random, self._cells)
        figures = [
            100e9 * math.exp(deviation * each) * (1 - self._loss * (current and number == self._at))
            for number, (deviation, each) in enumerate(zip(self._deviations, drawn, strict=True))
        ]
        cells = [
            cell(number, figure, slow_p95=None, slow_p99=None)
            for number, figure in enumerate(figures)
            if only is None or number in only
        ]
        return run(str(self._count), *cells, again=only is not None)

    def held(self, before, after, *aim):
        return self.gate(self.runs(before, current=False), self.runs(after, current=True), *aim)

    def gate(self, baseline, current, aim, rerun=0):
        """With `rerun`, the suspects have so many runs more."""
        found = hold(baseline, current, [], aim)
        doubts = suspects(found) if rerun else ()
        if doubts:
            only = {EQUIVALENT * int(key.benchmark[10:]) + int(key.place.column) for key in doubts}
            again = self.runs(rerun, current=True, only=only)
            found = hold(baseline, [*current, *again], [], aim)
        return found


def failed(gate):
    """The numbers of cells that are regressions."""
    return {
        EQUIVALENT * int(one.cell.benchmark[10:]) + int(one.cell.column)
        for one in gate.of("regression")
    }


def medians_of(runs):
    """Runs, the latest first, as the history gives their medians."""
    cells = {}
    for number, one in enumerate(runs, start=1):
        for own in one.cells:
            cells.setdefault(key_of(own), (own, {}))[1][number] = own.figure
    latest = runs[0]
    state = state_from(latest.machine, latest.facts)
    return EarlierMedians(len(runs), state, list(cells.values()))


AIM = Aim()
