"""The state of a soak, a run that repeats its plan. Its size does not grow over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from datetime import datetime, timedelta
from heapq import heappush, heappushpop, nsmallest

from msgspec.structs import replace

from linkgauge.engine.enough import class_of
from linkgauge.engine.measuring.merging import merge
from linkgauge.model.cell_id import cell_id
from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable, Run
from linkgauge.model.documents.soak import (
    SLICES,
    CellCourse,
    DeviceCourse,
    FailedRepetition,
    Moment,
    SlowMoment,
    Soak,
    SoakEnd,
    Soaking,
    Throttling,
)
from linkgauge.model.hardware.inventory import Reading
from linkgauge.model.joining import joined
from linkgauge.model.stats.sketch import Sketch
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Place

from .journal import Closed, Logged, MeasuredRepetition, Opened, Record, Resumed, assemble

KEPT = 16
"""The most repetitions of a cell whose samples the run keeps, evenly over the time. At least half
as many are kept."""
WORST = 10
"""The number of slowest samples that are listed. As many are remembered for each cell."""
WORST_OF_CELL = 3
MOST_FAILED = 100
MOST_REASONS = 32
"""The most reasons of throttling that are kept for a device."""


class SoakState:
    """The state of a soak. `at` is the seconds measured so far, `round` the number of the current
    round from 0, and `passed` the number of cells in earlier rounds."""

    def __init__(self, opened: Opened) -> None:
        soak = opened.settings.soak
        self.opened = opened
        self.asked = soak if soak is not None else Soaking(0.0)
        self.at = 0.0
        self.round = 0
        self.is_complete = False
        self.stopped: SoakEnd | None = None
        self.reason: str | None = None
        self.failed: list[FailedRepetition] = []
        self._control: list[Record] = [opened]
        self._since = opened.started, 0.0
        """The time of day when the run began or resumed, and the value of `at` then."""
        self._slice = self.asked.seconds / SLICES
        plan = opened.plan
        self._cells = [
            {cell.place: _RepeatedCell(table, cell) for cell in table.cells} for table in plan
        ]
        self._count = sum(len(table.cells) for table in plan)
        self._due = self._all()
        if not self._due:
            self.stopped, self.reason = "nothing", "the plan has no cell that can be measured"
        self._able = 0
        self._devices: dict[str, _Device] = {}
        self._more = 0

    def _all(self) -> dict[tuple[int, Place], None]:
        """Returns a round's cells. Cells that the plan skips are only in the first round."""
        return {
            (number, cell.place): None
            for number, table in enumerate(self.opened.plan)
            for cell in table.cells
            if cell.reason is None or not self.round
        }

    @property
    def passed(self) -> int:
        return self.round * self._count

    @property
    def is_over(self) -> bool:
        return self.stopped is not None

    def left(self) -> tuple[tuple[PlannedCell, ...], ...]:
        return tuple(
            tuple(cell for cell in table.cells if (number, cell.place) in self._due)
            for number, table in enumerate(self.opened.plan)
        )

    def count_left(self) -> int:
        done = sum(cell.repetitions for cells in self._cells for cell in cells.values())
        if not done or not self.at:
            return self._count
        return max(1, round(done * (self.asked.seconds - self.at) / self.at))

    def add(self, record: Record) -> None:
        if isinstance(record, MeasuredRepetition):
            self._repeated(record)
            return
        self.is_complete |= isinstance(record, Closed)
        if isinstance(record, Resumed):
            self._since = record.started, self.at
        last = self._control[-1]
        if isinstance(record, Logged) and isinstance(last, Logged):
            self._control[-1] = Logged(joined((last.log, record.log)))
        elif not isinstance(record, Opened):
            self._control.append(record)

    def _repeated(self, record: MeasuredRepetition) -> None:
        cell = record.cell
        self.at = self.at if record.at is None else record.at
        moment = self._moment()
        place = min(SLICES - 1, int(self.at / self._slice)) if self._slice else 0
        self._cells[record.table][cell.place].add(cell, moment, place)
        if cell.status in ("fail", "error", "timeout"):
            self._keep_failed(record.table, cell, moment)
        self._able += cell.status != "skip"
        for reading in cell.readings:
            self._devices.setdefault(reading.memory, _Device()).add(reading, moment, place)
            self._check(reading)
        self._due.pop((record.table, cell.place), None)
        if not self._due:
            self._end_round()
        if self.stopped is None and self.at >= self.asked.seconds:
            self.stopped = "time"

    def _end_round(self) -> None:
        if not self._able and self.stopped is None:
            self.stopped, self.reason = "nothing", "every cell is skipped"
        self.round += 1
        self._able = 0
        self._due = self._all()

    def _check(self, reading: Reading) -> None:
        most, found = self.asked.max_temperature, reading.temperature_max
        if most is not None and found is not None and found >= most and self.stopped is None:
            self.stopped = "temperature"
            self.reason = f"{reading.memory} reached {found:g} °C, the limit is {most:g} °C"

    def _keep_failed(self, table: int, cell: CellResult, moment: Moment) -> None:
        if len(self.failed) >= MOST_FAILED:
            self._more += 1
            return
        name, status = self._cells[table][cell.place].name, cell.status
        if status == "fail" or status == "error" or status == "timeout":
            self.failed.append(FailedRepetition(moment, name, status, cell.reason))

    def _moment(self) -> Moment:
        started, at = self._since
        try:
            time = datetime.fromisoformat(started) + timedelta(seconds=self.at - at)
            text = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        except ValueError:  # a file that knows no time
            text = started
        return Moment(round(self.at, 3), text, self.round + 1)

    def run(self) -> Run:
        return replace(assemble(self._control, self._merged().__getitem__), soak=self._soak())

    def _merged(self) -> list[list[CellResult]]:
        """Merges kept repetitions of each table's cells. Equivalent cells share their variance."""
        equivalent: defaultdict[Hashable, list[tuple[int, _RepeatedCell]]] = defaultdict(list)
        for number, (table, cells) in enumerate(zip(self.opened.plan, self._cells, strict=True)):
            for planned in table.cells:
                if cells[planned.place].kept:
                    equivalent[class_of(table, planned)].append((number, cells[planned.place]))
        settings = replace(self.opened.settings, precision=0.0)
        merged: dict[tuple[int, Place], CellResult] = {}
        for group in equivalent.values():
            found = merge([cell.kept for _, cell in group], settings)
            for (number, cell), one in zip(group, found, strict=True):
                merged[number, cell.place] = one
        return [
            [merged[number, place] for place, cell in cells.items() if cell.kept]
            for number, cells in enumerate(self._cells)
        ]

    def _soak(self) -> Soak:
        every = [cell for cells in self._cells for cell in cells.values() if cell.measured]
        slow = [moment for cell in every for moment in cell.slowest()]
        return Soak(
            asked=self.asked,
            lasted=round(self.at, 3),
            rounds=self.round,
            repetitions=sum(cell.measured for cell in every),
            checked=sum(cell.checked for cell in every),
            compared=sum(cell.compared for cell in every),
            stopped=self.stopped,
            reason=self.reason,
            slice=self._slice,
            cells=tuple(cell.course() for cell in every),
            worst=tuple(nsmallest(WORST, slow, key=lambda one: one.share)),
            failed=tuple(self.failed),
            more=self._more,
            devices=tuple(device.course(name) for name, device in self._devices.items()),
        )


class _RepeatedCell:
    """A cell over all rounds. `kept` has its first failure and every n-th repetition."""

    def __init__(self, table: PlannedTable, cell: PlannedCell) -> None:
        self.name = cell_id(table, cell)
        self.place = cell.place
        self.kept: list[CellResult] = []
        self.repetitions = self.measured = self.checked = self.compared = 0
        self._table = table
        self._numbers: list[int] = []
        self._step = 1
        self._bad: int | None = None
        self._failed = 0
        self._sketch = Sketch()
        self._slowest: list[tuple[float, int, Moment, float]] = []
        self._sums = [[0.0, 0] for _ in range(SLICES)]

    def add(self, cell: CellResult, moment: Moment, place: int) -> None:
        number = self.repetitions
        self.repetitions += 1
        self._keep(number, cell)
        if cell.status == "skip":
            return
        self.measured += 1
        self._failed += cell.status != "pass"
        if cell.verified is not None:
            self.checked += 1
            self.compared += sum(one.bytes_moved(self._table.size) for one in cell.transfers)
        if not cell.samples:
            return
        self._sketch.add(cell.samples)
        summary = summarize(cell.samples, self._table.better)
        if summary is not None:
            self._sums[place][0] += summary.median
            self._sums[place][1] += 1
        slowest = min(cell.samples) if self._is_rate else max(cell.samples)
        # Of the heap the first is the least slow: it makes room.
        entry = (-slowest if self._is_rate else slowest, number, moment, slowest)
        if len(self._slowest) < WORST_OF_CELL:
            heappush(self._slowest, entry)
        else:
            heappushpop(self._slowest, entry)

    @property
    def _is_rate(self) -> bool:
        return self._table.better == "higher"

    def _keep(self, number: int, cell: CellResult) -> None:
        is_first_bad = self._bad is None and cell.status not in ("pass", "skip")
        if is_first_bad:
            self._bad = number
        if number % self._step and not is_first_bad:
            return
        self.kept.append(cell)
        self._numbers.append(number)
        if len(self.kept) > KEPT:
            self._step *= 2
            stay = [
                n for n, own in enumerate(self._numbers) if not own % self._step or own == self._bad
            ]
            self.kept[:] = [self.kept[n] for n in stay]
            self._numbers[:] = [self._numbers[n] for n in stay]

    def slowest(self) -> Iterator[SlowMoment]:
        median = self._sketch.quantile(0.5)
        for _, _, moment, figure in self._slowest:
            if median and figure > 0:
                share = figure / median if self._is_rate else median / figure
                yield SlowMoment(moment, self.name, self._table.unit, figure, share)

    def course(self) -> CellCourse:
        sketch = self._sketch

        def slow(share: float) -> float | None:
            if sketch.count * (1 - share) < 1:  # too few to say
                return None
            return sketch.quantile(1 - share if self._is_rate else share)

        return CellCourse(
            cell=self.name,
            unit=self._table.unit,
            better=self._table.better,
            repetitions=self.measured,
            samples=sketch.count,
            checked=self.checked,
            failed=self._failed,
            median=sketch.quantile(0.5),
            slow_p95=slow(0.95),
            slow_p99=slow(0.99),
            slow_p999=slow(0.999),
            worst=(sketch.least if self._is_rate else sketch.most) if sketch.count else None,
            means=tuple(total / count if count else None for total, count in self._sums),
        )


class _Device:
    def __init__(self) -> None:
        self._repetitions = 0
        self._hottest: list[float | None] = [None] * SLICES
        self._power: list[float | None] = [None] * SLICES
        self._clock: list[float | None] = [None] * SLICES
        self._throttled: dict[str, Throttling] = {}
        self._replays: int | None = None

    def add(self, reading: Reading, moment: Moment, place: int) -> None:
        self._repetitions += 1
        _take(self._hottest, place, reading.temperature_max, most=True)
        _take(self._power, place, reading.power_max, most=True)
        _take(self._clock, place, reading.clock_min, most=False)
        if reading.pcie_replays is not None:
            self._replays = (self._replays or 0) + reading.pcie_replays
        for why in reading.throttled:
            known = self._throttled.get(why)
            if known is not None:
                self._throttled[why] = replace(known, repetitions=known.repetitions + 1)
            elif len(self._throttled) < MOST_REASONS:
                self._throttled[why] = Throttling(why, 1, moment)

    def course(self, memory: str) -> DeviceCourse:
        return DeviceCourse(
            memory=memory,
            repetitions=self._repetitions,
            temperature=tuple(self._hottest),
            power=tuple(self._power),
            clock=tuple(self._clock),
            throttled=tuple(self._throttled.values()),
            replays=self._replays,
        )


def _take(found: list[float | None], place: int, value: float | None, *, most: bool) -> None:
    known = found[place]
    if value is not None:
        found[place] = value if known is None else (max if most else min)(known, value)
