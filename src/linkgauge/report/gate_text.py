"""The gate's judgement: what failed first, then what is not known, last what it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import asdict
from rich.console import RenderableType
from rich.text import Text

from linkgauge.judge.disturbance import Disturbance
from linkgauge.judge.gate import FAILURES, Gate, GateCell, Verdict
from linkgauge.judge.run_comparison import RunComparison
from linkgauge.model.units import count_of, format_size, unit_of

from .csv_text import csv_text
from .fact_lines import fact_lines
from .figures import digits, percent
from .files import json_document
from .run_comparison_text import (
    basis_lines,
    changed_lines,
    lacking,
    p_value,
    power_lines,
    shown_loss,
)
from .run_text import simulated
from .wrapping import Hanging

SCHEMA: Literal["linkgauge.gate/1"] = "linkgauge.gate/1"
MOST = 20
"""Most cells of each kind that are shown; documents have all."""
_STYLES: dict[Verdict, str] = {
    "regression": "red", "missing": "red", "worse status": "red", "inconclusive": "yellow",
    "blind": "yellow", "not enough": "yellow", "ok": "green",
}  # fmt: skip
_CODES = {
    0: ("pass", "green"),
    1: ("fail", "red"),
    3: ("inconclusive", "yellow"),
    4: ("nothing could be compared", "yellow"),
}
COLUMNS = (
    "benchmark", "backend", "size", "row", "column", "verdict", "unit", "baseline", "current",
    "loss", "largest_loss", "p_holm", "detectable", "why",
)  # fmt: skip


def gate_lines(gate: Gate) -> Iterator[RenderableType]:
    """For people."""
    one = gate.comparison
    names = [side.name for side in one.sides]
    counts = [f"{side.name} ({len(side.runs)})" for side in one.sides]
    head = Text(f"runs: {counts[1]} against {counts[0]}")
    yield head.append("  ").append(simulated()) if one.simulated else head
    yield from fact_lines(one.differences, names)
    if gate.again[0]:
        times = "once" if gate.again[1] == 1 else f"{gate.again[1]} times"
        yield Text(f"{count_of(gate.again[0])} in doubt measured again, {times}")
    if len(one.changed) < len(gate.of("regression")):
        yield from changed_lines(one)
    yield Text()
    for verdict in (*FAILURES, "inconclusive", "blind"):
        found = gate.of(verdict)
        yield from (_line(cell) for cell in found[:MOST])
        if len(found) > MOST:
            yield Text(f"    and {len(found) - MOST} more: --json has all", "dim")
    known = [cell.cell.changes[0] for cell in gate.cells if cell.cell.changes[0].change]
    yield from (Hanging(text, 2) for text in power_lines(one, known))
    yield from (Hanging(text, 2) for text in basis_lines(one))
    if (sentence := unseen(gate)) is not None:
        yield Hanging(Text(sentence, "yellow"), 2)
    yield Hanging(_outcome(gate), 4)


def unseen(gate: Gate) -> str | None:
    """Which large losses may have happened unseen, and what to do, in one sentence."""
    number = len(gate.of("blind"))
    if not number:
        return None
    size = percent(gate.comparison.aim.exclude)
    found = f"a loss of {size} may be unseen in {number} of {count_of(len(gate.cells))}"
    if gate.allows_blind:
        return f"{found}, which --allow-blind accepts"
    return (
        f"{found}: measure each side several times (--rerun 2), measure while the machine is "
        "quieter, or accept it with --allow-blind"
    )


def _line(one: GateCell) -> Hanging:
    line = Text(f"{one.verdict}: ", _STYLES[one.verdict])
    size = f" {format_size(one.cell.size)}" if one.cell.size else ""
    return Hanging(line.append(f"{one.cell.name}{size}: {why(one)}", "default"), 4)


def why(one: GateCell) -> str:
    """What is wrong with a cell, or what is not known of it, in one line."""
    if one.verdict == "missing":
        return f"the current runs lack it; {_shown(one.baseline.figure, one)} in the baseline"
    if one.verdict == "worse status":
        status = one.current.status if one.current is not None else "missing"
        reason = one.current.reason if one.current is not None else None
        return f"{status}, was {one.baseline.status}" + (f": {reason}" if reason else "")
    if one.verdict == "inconclusive" and one.disturbance is not None:
        return f"{_lost(one)}; the machine was not the same: {disturbed(one.disturbance)}"
    if one.verdict == "blind":
        if one.largest is None:
            return "nothing tells how much runs vary: give several runs"
        return f"{_lost(one)}; it may have lost {shown_loss(one.largest)}"
    if one.verdict == "not enough":
        return f"{_lost(one)}; {lacking(one.cell.changes[0])}"
    return _lost(one)


def _lost(one: GateCell) -> str:
    """`5.1 % less: 55.40 → 52.60 GB/s (p 0.0002)`."""
    change = one.cell.changes[0].change
    if one.loss is None or change is None:
        return "no figure on both sides"
    higher = one.cell.better == "higher"
    word = ("less" if higher else "more") if one.loss > 0 else ("more" if higher else "less")
    current = one.current.figure if one.current is not None else None
    pair = f"{_plain(one.baseline.figure, one)} → {_shown(current, one)}"
    return f"{percent(abs(one.loss))} {word}: {pair} (p {p_value(change.holm)})"


def _plain(figure: float | None, one: GateCell) -> str:
    return "-" if figure is None else digits(figure / unit_of(one.cell.unit).scale)


def _shown(figure: float | None, one: GateCell) -> str:
    return f"{_plain(figure, one)} {unit_of(one.cell.unit).shown}"


def disturbed(one: Disturbance) -> str:
    """Who disturbed what."""
    if one.apart is not None:
        before, after = (f"{seconds * 1e9:.0f} ns" for seconds in one.apart)
        return f"its host ran virtual CPUs {after} apart, {before} in the baseline"
    number = "" if one.pid is None else f" (pid {one.pid})"
    if one.device is not None:
        return f"another process{number} used {one.device} in one of them"
    who = f"{one.process}{number}" if one.process else "a process that this one cannot see"
    return f"{who} and others kept {one.current:.1f} CPUs busy, {one.baseline:.1f} in the baseline"


def _outcome(gate: Gate) -> Text:
    word, style = _CODES[gate.code]
    aim = gate.comparison.aim
    counts = {verdict: len(gate.of(verdict)) for verdict in _STYLES}
    said = [f"{number} {verdict}" for verdict, number in counts.items() if number]
    rule = f"fails at a loss of {percent(aim.least)} with p < {aim.significance:g}"
    line = Text.assemble("gate: ", (word, f"bold {style}"), f"  {', '.join(said) or 'no cell'}")
    return line.append(f"; {rule}{', forced' if gate.forced else ''}", "dim")


class GateDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Whether runs may pass.

    schema: The kind of document, and its version.
    code: The exit code: 0 pass, 1 a failure, 3 inconclusive, 4 nothing could be compared.
    unseen: Which large losses may have happened unseen, and what to do; null if none.
    comparison: The baseline and the current runs, compared.
    cells: The cells of the baseline, judged.
    forced: Whether they are judged although the machines, their settings or their load differ.
    again: How many cells were measured again, and how often.
    allows_blind: Whether it passes although large losses may have happened unseen.
    """

    schema: Literal["linkgauge.gate/1"] = SCHEMA
    code: int
    unseen: str | None
    comparison: RunComparison
    cells: tuple[GateCell, ...]
    forced: bool
    again: tuple[int, int]
    allows_blind: bool


def gate_document(gate: Gate) -> str:
    """The document, in the unit of data."""
    return json_document(GateDocument(code=gate.code, unseen=unseen(gate), **asdict(gate)))


def gate_csv(gate: Gate) -> str:
    """A line for each cell of the baseline."""
    return csv_text((COLUMNS, *(_fields(cell) for cell in gate.cells)))


def _fields(one: GateCell) -> Sequence[object]:
    cell, change = one.cell, one.cell.changes[0]
    current = one.current.figure if one.current is not None else None
    return (
        *cell.sheet, cell.row, cell.column, one.verdict, cell.unit,
        one.baseline.figure, current, one.loss, one.largest,
        change.change.holm if change.change else None,
        change.needed.detectable if change.needed else None,
        "" if one.verdict == "ok" else why(one),
    )  # fmt: skip
