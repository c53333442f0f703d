"""Runs compared: what changed, what differs besides, and what the comparison can tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Literal

import msgspec
from rich.console import RenderableType
from rich.text import Text

from linkgauge.judge.earlier import Since
from linkgauge.judge.run_comparison import CellChange, RunCell, RunComparison, SideFigure
from linkgauge.judge.what_changed import Changed
from linkgauge.model.cell_id import SheetId
from linkgauge.model.units import count_of, format_size, unit_of

from .csv_text import csv_text
from .fact_lines import fact_lines, moved
from .figures import percent, signed, with_reach
from .files import json_document
from .run_text import simulated
from .wrapping import Hanging

SCHEMA = "linkgauge.runs-compared/1"
NOISE = "~"
FIGURE, CHANGE, SLOW = 17, 9, 10
MOST_FACTS = 3
FEW = 16
"""Cells that are shown without being asked for."""
_LEAST_P = 1e-99
_SIGNIFICANT = 0.01
"""Of changes of the slow side."""
_STYLES = {"better": "green", "worse": "red", "same": "dim", "unknown": "yellow"}
COLUMNS = (
    "benchmark", "backend", "size", "row", "column", "side", "unit", "better", "status", "runs",
    "figure", "low", "high", "slow_p95", "slow_p99", "ratio", "ratio_low", "ratio_high", "p",
    "p_holm", "direction", "basis", "deviation", "detectable", "more_of_first", "more", "p_ranks",
)  # fmt: skip


def run_comparison_lines(one: RunComparison) -> Iterator[RenderableType]:
    """What changed, in what sides differ besides, a table of cells if they are few, and a summary
    for each side."""
    return _lines(one, whole=len(one.cells) <= FEW)


def every_cell_lines(one: RunComparison) -> Iterator[RenderableType]:
    """The same with all cells."""
    return _lines(one, whole=True)


def _lines(one: RunComparison, *, whole: bool) -> Iterator[RenderableType]:
    yield _head(one)
    yield from changed_lines(one)
    yield from fact_lines(one.differences, [side.name for side in one.sides])
    sheets: dict[tuple[SheetId, str], list[RunCell]] = {}
    for cell in one.cells if whole else ():
        sheets.setdefault((cell.sheet, cell.unit), []).append(cell)
    for cells in sheets.values():
        yield Text()
        yield from _table(one, cells)
    yield Text()
    for number in range(1, len(one.sides)):
        yield from _summary(one, number)
    yield from (Hanging(line, 2) for line in basis_lines(one))
    if not whole:
        yield Text(f"all {count_of(len(one.cells))}: --all", "dim")


def changed_lines(one: RunComparison) -> Iterator[RenderableType]:
    """A line for each group of cells that changed alike, and the number of those left over."""
    for number, side in enumerate(one.sides[1:]):
        own = [group for group in one.changed if group.side == side.name]
        if not own:
            continue
        yield Text("what changed" + (f": {side.name}" if len(one.sides) > 2 else ""), "bold")
        for group in own:
            line = Text.assemble("  ", (f"{group.direction}: ", _STYLES[group.direction]))
            yield Hanging(line.append(said_of(group), "default"), 4)
        changed = sum(cell.changes[number].proven is not None for cell in one.cells)
        left = changed - sum(group.cells for group in own)
        if left:
            yield Text(f"  and {count_of(left)} more", "dim")


def said_of(group: Changed) -> str:
    """`-17.1% (-16.9% to -18.4%) in all 28 cells with sim:0`."""
    least, most = signed(group.least), signed(group.most)
    ends = f" ({least} to {most})" if least != most else ""
    of, shared = group.of, group.shared
    count = f"all {of} cells" if group.cells == of > 1 else f"{group.cells} of {of} cells"
    words = [count] if of > 1 else []
    if shared.benchmark is not None:
        words.append(f"{'of ' if of > 1 else ''}{shared.benchmark}")
    if shared.is_one_place:
        words.append(f"({shared.row}, {shared.column})")
    elif shared.row is not None:
        words.append(f"in row {shared.row}")
    elif shared.column is not None:
        words.append(f"in column {shared.column}")
    words += [f"with {shared.device}"] if shared.device is not None else []
    words += [f"at {format_size(shared.size)}"] if shared.size else []
    return f"{signed(group.ratio)}{ends} in {' '.join(words)}"


def since_line(one: Since) -> str:
    """`against 12 earlier runs: worse: -4.0% in all 28 cells with cuda:3; driver 570 → 580`."""
    said = [f"{one.largest.direction}: {said_of(one.largest)}"] if one.largest else []
    said += [f"{count_of(one.more)} more changed"] if one.more else []
    said += [f"no change is proven in {count_of(one.cells)}"] if not said else []
    facts = [f"{fact.name} {moved(fact)}" for fact in one.facts[:MOST_FACTS]]
    left = len(one.facts) - len(facts)
    facts += [f"{left} more facts of the machine differ"] if left else []
    return f"against {_runs(one.runs, 'earlier run')}: {'; '.join((*said, *facts))}"


def _head(one: RunComparison) -> Text:
    names = [f"{side.name} ({_runs(len(side.runs))})" for side in one.sides]
    line = Text.assemble(", ".join(names[1:]), " against ", (names[0], "bold"))
    return line.append("  ").append(simulated()) if one.simulated else line


def _runs(count: int, what: str = "run") -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


def _table(one: RunComparison, cells: Sequence[RunCell]) -> Iterator[Text]:
    first = cells[0]
    size = f"  {format_size(first.size)}" if first.size else ""
    better = f"  {unit_of(first.unit).shown}, {first.better} is better"
    yield Text.assemble((first.benchmark, "bold"), f"  {first.backend}{size}{better}")
    names = [_short(side.name) for side in one.sides]
    width = max(len(_place(cell)) for cell in cells)
    heads = (
        f"{names[0]:>{FIGURE}}{names[1] if len(names) == 2 else '':>{FIGURE}}{'change':>{CHANGE}}"
    )
    yield Text(f"  {'':<{width}}{heads}  {'95% interval':<18}{'slow p95':>{SLOW}}"
               f"{'slow p99':>{SLOW}}", "cyan")  # fmt: skip
    for cell in cells:
        begin = Text(f"  {_place(cell):<{width}}", "cyan").append(_figure(cell, 0), "default")
        for number, change in enumerate(cell.changes, start=1):
            name = f"  {names[number]}" if len(names) > 2 else ""
            line = begin.append(_figure(cell, number), "default")
            yield line.append_text(_change(cell, number, change)).append(name, "dim")
            begin = Text(" " * (2 + width + FIGURE))


def _place(cell: RunCell) -> str:
    return f"{cell.row}, {cell.column}" + (f" #{cell.repeat + 1}" if cell.repeat else "")


def _short(name: str) -> str:
    return name if len(name) < FIGURE else f"…{name[-(FIGURE - 3) :]}"


def _figure(cell: RunCell, number: int) -> str:
    """`55.40 ±0.5%`: the wider half of the interval."""
    return f"{figure(cell.sides[number], cell.unit):>{FIGURE}}"


def figure(side: SideFigure | None, unit: str) -> str:
    """A side's figure with its interval, or why there is none."""
    if side is None:
        return "-"
    if side.figure is None:
        return side.status
    return with_reach(side.figure, side.low, side.high, unit)


def _change(cell: RunCell, number: int, one: CellChange) -> Text:
    style = _STYLES[one.direction]
    if one.change is None:
        return Text(f"   {_why_not(cell, number)}", "yellow")
    line = Text(f"{changed(one):>{CHANGE}}", style)
    ends = f"[{signed(one.change.low)}, {signed(one.change.high)}]"
    line.append(f"  {ends:<18}", "default")
    for name in ("slow_p95", "slow_p99"):
        line.append(f"{_slow(cell, number, name, one):>{SLOW}}", "dim")
    if one.direction in ("better", "worse"):
        line.append(f"  {one.direction} (p {p_value(one.change.holm)})", style)
    elif one.direction == "unknown":
        line.append(f"  {lacking(one)}", style)
    return line


def changed(one: CellChange) -> str:
    """The change in percent, or `~` where the difference may be noise."""
    if one.change is None or one.direction in ("same", "unknown"):
        return NOISE
    return signed(one.change.ratio)


def _slow(cell: RunCell, number: int, name: Literal["slow_p95", "slow_p99"], of: CellChange) -> str:
    """In parentheses where nothing tells how much it varies."""
    one = of.slow_p95 if name == "slow_p95" else of.slow_p99
    if one is not None:
        return signed(one.ratio) if one.holm < _SIGNIFICANT else NOISE
    first, other = (
        getattr(side, name) if side is not None else None
        for side in (cell.sides[0], cell.sides[number])
    )
    return f"({signed(other / first)})" if first and other else "-"


def p_value(p: float) -> str:
    """0.003; 2e-05; below what floating-point numbers tell, < 1e-99."""
    if p < _LEAST_P:
        return f"< {_LEAST_P:.0e}"
    return f"{p:.2g}" if p >= 1e-3 else f"{p:.0e}"


def _why_not(cell: RunCell, number: int) -> str:
    sides = (cell.sides[0], cell.sides[number])
    if all(side is not None and side.figure is not None for side in sides):
        return "nothing tells how much runs vary"
    for side in sides:
        if side is None:
            return "there is no such cell"
        if side.figure is None:
            return f"{side.status}: {side.reason}" if side.reason else side.status
    return ""


def lacking(one: CellChange) -> str:
    """What it takes to tell."""
    if one.needed is None:
        return ""
    missed = f"may miss a loss below {shown_loss(one.needed.detectable)}"
    return f"{more_runs(one.needed.more)}; {missed}"


def shown_loss(fraction: float) -> str:
    """In percent; of a time, a loss has no end."""
    return percent(fraction) if fraction < 10 else "over 1000%"


def more_runs(more: tuple[int, int] | None) -> str:
    """`not enough runs: 3 more`."""
    if more is None:
        return "too noisy for any number of runs"
    first, other = more
    if not first:
        return f"not enough runs: {other} more"
    return f"not enough runs: {first} more of the first side, {other} of the other"


def _summary(one: RunComparison, number: int) -> Iterator[RenderableType]:
    side, base = one.sides[number].name, one.sides[0].name
    changes = [cell.changes[number - 1] for cell in one.cells]
    known = [change for change in changes if change.change is not None]
    counts = Counter(change.direction for change in known)
    line = Text(f"{side} against {base}: ")
    if not known:
        yield line.append("nothing could be compared", "yellow")
        return
    line.append(f"{counts['worse']} worse", "red" if counts["worse"] else "default")
    line.append(f", {counts['better']} better", "green" if counts["better"] else "default")
    line.append(f", {counts['same']} {NOISE}, {counts['unknown']} not known")
    left = len(changes) - len(known)
    yield line.append(f"; {count_of(left)} without a figure on both sides" if left else "")
    yield from (Hanging(text, 2) for text in power_lines(one, known))


def power_lines(one: RunComparison, known: Sequence[CellChange]) -> Iterator[Text]:
    """Which losses would be found, and how many runs are lacking."""
    found = [change.needed for change in known if change.needed is not None]
    if not found:
        return
    losses = [each.detectable for each in found]
    yield Text(
        f"  a loss is found with 90 % if it is {shown_loss(median(losses))} or more in half of the "
        f"cells, {shown_loss(max(losses))} in all"
    )
    short = [each.more for each in found if each.more != (0, 0)]
    if not short:
        return
    able = [more for more in short if more is not None]
    aim = f"a loss of {percent(one.aim.detect)}"
    text = Text(f"  not enough runs to find {aim} in {count_of(len(short))}", "yellow")
    if able:
        middle = sorted(able, key=sum)[len(able) // 2]
        most = max(able, key=sum)
        text.append(f": {_more(middle)} for half of them, {_more(most)} for most noisy ones")
    if len(able) < len(short):
        text.append(f"; {len(short) - len(able)} are too noisy for any number")
    yield text


def _more(more: tuple[int, int]) -> str:
    first, other = more
    return f"{other} more" if not first else f"{first} more of the first side and {other}"


def basis_lines(one: RunComparison) -> Iterator[Text]:
    """What changes were judged by."""
    bases = Counter(
        change.change.basis for cell in one.cells for change in cell.changes if change.change
    )
    history = f" and of {one.history} more in the history" if one.history else ""
    if bases["runs"]:
        yield Text(f"judged by the variation between these runs{history}", "dim")
    if bases["within"]:
        yield Text(
            f"{count_of(bases['within'])} with one run on a side, and too few others: judged by "
            "the runs' own intervals, which do not know all that varies between runs",
            "yellow",
        )


def run_comparison_document(one: RunComparison) -> str:
    """The document, in the unit of data."""
    return json_document({"schema": SCHEMA, **msgspec.to_builtins(one)})


def run_comparison_csv(one: RunComparison) -> str:
    """A line for each cell and side."""
    return csv_text((COLUMNS, *(row for cell in one.cells for row in _rows(one, cell))))


def _rows(one: RunComparison, cell: RunCell) -> Iterator[tuple[object, ...]]:
    changes = (None, *cell.changes)
    for side, own, change in zip(one.sides, cell.sides, changes, strict=True):
        if own is None:
            continue
        head = (*cell.sheet, cell.row, cell.column, side.name, cell.unit, cell.better)
        figures = (own.status, own.runs, own.figure, own.low, own.high, own.slow_p95, own.slow_p99)
        yield (*head, *figures, *_fields(change))


def _fields(one: CellChange | None) -> tuple[object, ...]:
    if one is None or one.change is None or one.needed is None:
        return (None,) * 12
    change, more = one.change, one.needed.more or (None, None)
    return (
        change.ratio, change.low, change.high, change.p, change.holm, one.direction, change.basis,
        change.deviation, one.needed.detectable, *more, one.rank_sum,
    )  # fmt: skip
