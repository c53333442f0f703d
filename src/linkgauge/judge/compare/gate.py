"""Compares runs with a baseline. The runs pass if no cell got worse, is missing or has a worse
status. A cell that only one side tried to measure is not compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from statistics import median
from typing import Any, Literal

import msgspec

from linkgauge.judge.waivers import Waiving
from linkgauge.model.cell_id import CellId
from linkgauge.model.documents.expected import Waiver
from linkgauge.model.printable import BriefRepr
from linkgauge.model.recorded import RECORDED
from linkgauge.model.stats.changes import Aim, RunChange, largest_loss, log_of_loss, loss
from linkgauge.model.stats.student import critical
from linkgauge.model.units import Better, count_of, percent

from .disturbance import Disturbance, undisturbed
from .likeness import Runs, as_recorded, of_one_size
from .run_comparison import (
    RANK,
    CellChange,
    RunCell,
    RunComparison,
    SideFigure,
    compare_runs,
)
from .side_tests import Key, Sides, key_of

SCHEMA: Literal["linkgauge.gate/2"] = "linkgauge.gate/2"
Verdict = Literal[
    "regression", "missing", "worse status", "inconclusive", "measure again", "too noisy",
    "far off", "not enough", "not compared", "waived", "ok",
]  # fmt: skip
FAILURES: tuple[Verdict, ...] = ("regression", "missing", "worse status")
_UNSEEN = 0.05
"""The probability that a large loss is missed, from which on a comparison is too noisy."""
UNDECIDED: tuple[Verdict, ...] = (
    "inconclusive", "measure again", "too noisy", "far off", "not enough", "not compared",
)  # fmt: skip
SUSPECT = 0.05
"""A cell is measured again if its loss has a one-sided p below this, unadjusted."""


class GateCell(msgspec.Struct, frozen=True):
    """A judged cell of the baseline.

    cell: The cell, and its figures on both sides.
    verdict: The gate's verdict. `regression`, `missing` and `worse status` fail. `inconclusive`:
      the machine's load differed. `far off`: a loss as large as differences between healthy runs.
      `measure again`: a larger loss that only one run, or half of them, shows. `too noisy`: a large
      loss may go unnoticed. `not enough`: too few runs to find the loss of `--detect`. `not
      compared`: one side did not try the cell. `waived`: it failed, and a waiver accepts it.
    loss: The fraction of the baseline's figure that is lost, negative for a gain; null if unknown.
    largest: The largest loss within the interval of the change, as a fraction; null if unknown.
    disturbance: The cause of an inconclusive verdict; null for any other verdict."""

    cell: RunCell
    verdict: Verdict
    loss: float | None = None
    largest: float | None = None
    disturbance: Disturbance | None = None

    @property
    def baseline(self) -> SideFigure:
        side = self.cell.sides[0]
        assert side is not None  # noqa: S101
        return side

    @property
    def current(self) -> SideFigure | None:
        return self.cell.sides[1]


class GateDocument(BriefRepr, msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of the gate on runs.

    schema: The kind of document, and its version.
    code: The exit code: 0 pass, 1 a failure, 3 inconclusive, 4 nothing could be compared.
    undetectable: A text that says how many cells may hide a large loss or are not compared (if most
      are not), and what to do; null if there is nothing to say.
    comparison: The baseline and the current runs, compared.
    cells: The cells of the baseline, judged.
    forced: Whether cells are judged although the machines, their settings or their load differ.
    again: How many cells were measured again, and how often.
    allows_noisy: Whether runs pass although large losses may go unnoticed.
    findings: The doctor's findings about what the current runs measured."""

    schema: Literal["linkgauge.gate/2"] = SCHEMA
    code: int
    undetectable: str | None
    comparison: RunComparison
    cells: tuple[GateCell, ...]
    forced: bool
    again: tuple[int, int]
    allows_noisy: bool
    findings: tuple[Any, ...] = ()

    def of(self, *verdicts: Verdict) -> tuple[GateCell, ...]:
        return tuple(cell for cell in self.cells if cell.verdict in verdicts)


def hold(
    baseline: Runs,
    current: Runs,
    history: Runs,
    aim: Aim,
    *,
    force: bool = False,
    allow_noisy: bool = False,
    again: tuple[int, int] = (0, 0),
    findings: tuple[Any, ...] = (),
    waivers: Sequence[Waiver] = (),
) -> GateDocument:
    """Returns the gate's verdict on runs. With `force`, cells are judged even if the load on the
    machine differed. With `allow_noisy`, runs pass even if large losses may go unnoticed. `again`
    is how many cells were measured again, and how often."""
    sized = of_one_size([*current, *baseline])  # which the current runs may measure again
    current, baseline = sized[: len(current)], sized[len(current) :]
    disturbed: dict[object, Disturbance] = {}
    if not force:
        baseline, current, disturbed = undisturbed(baseline, current)
    names = ["baseline", "current"]
    sides = [list(map(as_recorded, side)) for side in (baseline, current)]
    comparison = compare_runs(Sides(names, sides, history), aim)
    asked = _asked(baseline, current)
    cells = tuple(
        _judged(cell, disturbed.get(cell.key), aim, asked)
        for cell in comparison.cells
        if cell.sides[0] is not None
    )
    if waivers and current:
        waiving = Waiving(waivers, current[-1].machine.host.hostname, current[-1].started)
        cells = tuple(_waived(one, waiving) if one.verdict in FAILURES else one for one in cells)
    return GateDocument(
        code=_code(cells, allow_noisy=allow_noisy),
        undetectable=_undetectable(cells, aim, allow_noisy=allow_noisy),
        comparison=comparison,
        cells=cells,
        forced=force,
        again=again,
        allows_noisy=allow_noisy,
        findings=findings,
    )


def _waived(one: GateCell, waiving: Waiving) -> GateCell:
    figure = None if one.current is None else one.current.figure
    covered = waiving.covers(one.cell.id, figure, one.cell.unit)
    return msgspec.structs.replace(one, verdict="waived") if covered else one


def _code(cells: Sequence[GateCell], *, allow_noisy: bool) -> int:
    """Returns the exit code: 1 for a failure, 4 if nothing could be compared, 3 if the
    outcome is uncertain, else 0. `allow_noisy` accepts cells that are too noisy or not compared."""
    found = {cell.verdict for cell in cells}
    if not found.isdisjoint(FAILURES):
        return 1
    if all(cell.loss is None for cell in cells):
        return 4
    unsure = not found.isdisjoint(("inconclusive", "measure again"))
    return 3 if unsure or (not allow_noisy and any(_noisy_and_left(cells))) else 0


def _noisy_and_left(cells: Sequence[GateCell]) -> tuple[int, int]:
    counts = Counter(cell.verdict for cell in cells)
    left, compared = counts["not compared"], sum(cell.loss is not None for cell in cells)
    return counts["too noisy"], left if left > compared else 0


def _undetectable(cells: Sequence[GateCell], aim: Aim, *, allow_noisy: bool) -> str | None:
    noisy, left = _noisy_and_left(cells)
    size, every = percent(aim.exclude), count_of(len(cells))
    said, ways = list[str](), list[str]()
    if noisy:
        said.append(f"in {noisy} of {every}, even a loss of {size} may go undetected")
        ways.append(
            "measure each side several times (--rerun 2), measure while the machine is quieter"
        )
    if left:
        said.append(f"{left} of {every} are not compared")
        ways += ["measure these at the same sizes (--size)", "gate only some (--benchmark)"]
    if not said:
        return None
    found = "; ".join(said)
    if allow_noisy:
        return f"{found}, which --allow-noisy accepts"
    return f"{found}: {', '.join(ways)}, or accept that with --allow-noisy"


def _asked(baseline: Runs, current: Runs) -> set[Key]:
    """Returns the baseline's cells that current runs should have; none if a run has not ended."""
    if not all(run.ended for run in current):
        return set()
    every = [cell for run in current for cell in run.cells]
    tables = {cell.table for cell in every}
    devices = {device for cell in every for device in cell.devices}
    return {
        key_of(cell)
        for run in baseline
        for cell in run.cells
        if cell.table in tables and devices.issuperset(cell.devices)
    }


def _judged(
    cell: RunCell, disturbance: Disturbance | None, aim: Aim, asked: Collection[Key]
) -> GateCell:
    baseline, current = cell.sides
    if baseline is None or current is None:
        known = baseline is not None and baseline.figure is not None
        if known and cell.key not in asked:
            return GateCell(cell, "not compared")
        return GateCell(cell, "missing" if known else "ok")
    if baseline.untried is True or current.untried is True:
        return GateCell(cell, "not compared")
    if RANK.index(current.status) > RANK.index(baseline.status):
        return GateCell(cell, "worse status")
    (one,) = cell.changes
    if one.change is None:
        lacks = baseline.figure is not None and current.figure is not None
        return GateCell(cell, "too noisy" if lacks else "ok")
    lost, largest = loss(one.change.ratio, cell.better), largest_loss(one.change, cell.better)
    verdict = _verdict(cell, one, largest, aim)
    if disturbance is not None and verdict in ("regression", "measure again"):
        return GateCell(cell, "inconclusive", lost, largest, disturbance)
    return GateCell(cell, verdict, lost, largest)


def _verdict(cell: RunCell, one: CellChange, largest: float, aim: Aim) -> Verdict:
    """Returns the verdict on a cell with figures on both sides."""
    assert one.change is not None  # noqa: S101
    furthest = 0.0 if cell.path is None else RECORDED[cell.path].furthest
    lost = median(one.losses)
    of_rate = lost / (1 + lost) if cell.better == "lower" and lost > 0 else lost
    is_far_off = aim.least <= of_rate <= furthest
    if largest >= aim.least and one.direction == "worse":
        count = sum(each >= aim.least for each in one.losses)
        # If healthy runs can differ by as much, most runs must show the loss.
        if furthest < aim.least or count > max(1, len(one.losses) / 2):
            return "regression"
        return "far off" if is_far_off else "measure again"
    if _is_noisy(one.change, lost, aim, cell.better):
        return "far off" if is_far_off and furthest < aim.exclude else "too noisy"
    return "not enough" if one.direction == "unknown" else "ok"


def _is_noisy(change: RunChange, lost: float, aim: Aim, better: Better) -> bool:
    """Whether the true loss may be `aim.exclude` or more with a probability above 5 %."""
    reach = math.log(change.high / change.low) / 2
    reach *= critical(2 * _UNSEEN, change.degrees) / critical(_UNSEEN, change.degrees)
    return log_of_loss(lost, better) + reach >= log_of_loss(aim.exclude, "higher")


def suspects(gate: GateDocument) -> Collection[CellId]:
    """Returns the cells that may be worse, or of which too little is known."""
    return [one.cell.id for one in gate.cells if _is_suspect(one)]


def _is_suspect(one: GateCell) -> bool:
    if one.verdict in ("inconclusive", "measure again", "too noisy", "far off"):
        return True
    change = one.cell.changes[0].change
    if change is None or one.loss is None or one.loss <= 0:
        return False
    return change.p / 2 < SUSPECT and one.verdict not in ("missing", "worse status")
