"""What settings change, as text: the settings, a table of differences, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.text import Text

from linkgauge.model.stats.changes import Direction
from linkgauge.model.stats.ranks import Change, least_rounds
from linkgauge.model.units import format_size, unit_of
from linkgauge.model.variation import Compared, Setting, Variation, VariedCell

from .csv_text import csv_text
from .matrix import shown
from .run_text import simulated
from .variation_sizes import size_lines

FIGURE, CHANGE, INTERVAL = 9, 8, 18
"""Widths of columns, so that a line of usual labels has 80 characters at most."""
SIZE = 9
"""Width of the column of sizes, where there are several."""
FINE = 0.002
"""Of an interval that is narrower than this, another digit is shown."""
VAGUE = 0.1
"""Of an interval that reaches further, no difference found does not mean that there is none."""
COLUMNS = (
    "benchmark", "backend", "size", "row", "column", "unit", "better", "setting", "values",
    "rounds", "median", "ratio", "ratio_low", "ratio_high", "p", "p_holm", "direction", "reason",
    "simulated",
)  # fmt: skip
QUIET = "raise --rounds or --max-time, or quiet the machine"
_STYLES: dict[Direction, str] = {"better": "green", "worse": "red", "same": "dim", "unknown": "dim"}


def variation_lines(variation: Variation) -> Iterator[Text]:
    """All that is to be said of it."""
    yield _head(variation)
    yield from _settings(variation)
    yield Text()
    blocks: dict[tuple[str, str], list[VariedCell]] = {}
    for cell in variation.cells:
        blocks.setdefault((cell.benchmark, cell.backend), []).append(cell)
    width = max((len(_place(cell)) for cell in variation.cells), default=0)
    for cells in blocks.values():
        yield from _block(variation, cells, width)
        yield Text()
    for setting in variation.settings[1:]:
        yield from _outcome(variation, setting)
    yield from _promise(variation)


def _block(variation: Variation, cells: Sequence[VariedCell], width: int) -> Iterator[Text]:
    """A benchmark's table; of several sizes, with the sizes of each path below each other."""
    named = [setting.name for setting in variation.settings]
    several = len({cell.size for cell in cells}) > 1
    rows = list(_by_path(cells, width) if several else _by_place(cells, width))
    yield _heading(cells)
    yield _columns(len(rows[0][0]), named[0], variation.significance)
    for label, cell in rows:
        yield from _cell_lines(cell, label, named)
    if several:
        yield from size_lines(cells, variation.settings)
    for _, cell in rows:
        yield from _missing_lines(cell, named, _at(cell, several=several))


def _by_place(cells: Sequence[VariedCell], width: int) -> Iterator[tuple[str, VariedCell]]:
    """Each cell with the label of its line."""
    for cell in cells:
        yield f"{_place(cell):<{width}}", cell


def _by_path(cells: Sequence[VariedCell], width: int) -> Iterator[tuple[str, VariedCell]]:
    """The same, by path and size; a path is named on its first line."""
    for path in dict.fromkeys(map(_place, cells)):
        label = path
        for cell in sorted((c for c in cells if _place(c) == path), key=lambda c: c.size):
            yield f"{label:<{width}}{format_size(cell.size):>{SIZE}}", cell
            label = ""


def done_rounds(variation: Variation) -> int:
    """The rounds in which every setting was measured."""
    ended = [run.round for run in variation.runs if run.finished]
    return sum(ended.count(number) == len(variation.settings) for number in set(ended))


def _head(variation: Variation) -> Text:
    done = done_rounds(variation)
    rounds = "1 round" if done == 1 else f"{done} rounds"
    line = Text(f"{len(variation.settings)} settings, {rounds} of a run each, in random order")
    if variation.finished is None:
        line.append(f" (ended before all {variation.rounds})", "yellow")
    return line.append("  ").append(simulated()) if variation.simulated else line


def _settings(variation: Variation) -> Iterator[Text]:
    """Each with its letter, and what the command before its first run printed last."""
    if variation.prepare is not None:
        yield Text(f"before each run: {variation.prepare}")
    for number, setting in enumerate(variation.settings):
        line = Text.assemble("  ", (setting.name, "bold"), f"  {setting}")
        if number == 0:
            line.append("  (the baseline)", "dim")
        printed = next((run.prepared for run in variation.runs if run.setting == number), None)
        if printed:
            line.append(f"  prepared: {printed.splitlines()[-1]}", "dim")
        yield line


def _heading(cells: Sequence[VariedCell]) -> Text:
    unit = unit_of(cells[0].unit)
    sizes = sorted({cell.size for cell in cells})
    ends = " to ".join(map(format_size, dict.fromkeys((sizes[0], sizes[-1]))))
    size = f"  {ends}" if sizes[-1] else ""
    better = f"  {unit.shown}, {cells[0].better} is better"
    return Text.assemble((cells[0].benchmark, "bold"), f"  {cells[0].backend}{size}{better}")


def _columns(width: int, base: str, significance: float) -> Text:
    interval = f"{100 * (1 - significance):.4g}% interval"
    figures = f"{base:>{FIGURE}}{'':>{FIGURE + 3}}"
    return Text(f"  {'':<{width}}{figures}{'change':>{CHANGE}}  {interval}", "cyan")


def _place(cell: VariedCell) -> str:
    return f"{cell.row}, {cell.column}"


def _at(cell: VariedCell, *, several: bool) -> str:
    """Its place, with the size where there are `several`."""
    return f"({_place(cell)})" + (f" at {format_size(cell.size)}" if several else "")


def _cell_lines(cell: VariedCell, label: str, named: Sequence[str]) -> Iterator[Text]:
    """A line for each setting but the first, whose figure begins them."""
    first, *others = cell.settings
    begin = Text(f"  {label}", "cyan").append(_figure(cell, first), "default")
    if all(one.median is None for one in cell.settings):
        yield begin.append(f"   {first.reason}", "yellow")
        return
    for name, other in zip(named[1:], others, strict=True):
        yield begin.append(f"  {name}", "default").append_text(_against(cell, first, other))
        begin = Text(" " * (2 + len(label) + FIGURE))


def _missing_lines(cell: VariedCell, named: Sequence[str], at: str) -> Iterator[Text]:
    """Where some rounds lack a figure, and why."""
    for name, one in zip(named, cell.settings, strict=True):
        without = one.figures.count(None)
        if one.reason is not None and without < len(one.figures):
            rounds = "1 round has" if without == 1 else f"{without} rounds have"
            yield Text(f"note: {name} {at}: {rounds} no figure: {one.reason}", "yellow")


def _figure(cell: VariedCell, one: Compared) -> str:
    text = "-" if one.median is None else shown(one.median, cell.unit)
    return f"{text:>{FIGURE}}"


def _against(cell: VariedCell, first: Compared, other: Compared) -> Text:
    line = Text(_figure(cell, other), "default")
    if other.change is None:
        return line.append(f"   {other.reason or first.reason or 'no round has both'}", "yellow")
    style, changed = _STYLES[other.direction], other.change
    text = "~" if other.direction == "same" else _percent(changed.ratio, changed)
    line.append(f"{text:>{CHANGE}}", style)
    if not changed.is_known:
        return line.append(f"  too few rounds ({changed.rounds})", "yellow")
    ends = ", ".join(_percent(end, changed) for end in (changed.low, changed.high) if end)
    line.append(f"  {f'[{ends}]':<{INTERVAL}}")
    if other.direction != "same":
        line.append(f" {other.direction}", style)
    if changed.rounds < len(other.figures):
        line.append(f" ({changed.rounds} rounds)", "dim")
    line.rstrip()
    return line


def _percent(ratio: float, changed: Change) -> str:
    narrow = changed.low and changed.high and changed.high - changed.low < FINE
    return f"{100 * (ratio - 1):+.{2 if narrow else 1}f}%"


def _outcome(variation: Variation, setting: Setting) -> Iterator[Text]:
    """How many cells differ under this setting, and of several where most."""
    number = variation.settings.index(setting)
    known = [
        (cell, cell.settings[number])
        for cell in variation.cells
        if cell.settings[number].direction != "unknown"
    ]
    counts = Counter(one.direction for _, one in known)
    line = Text(f"{setting.name} against {variation.settings[0].name}: ")
    if not known:
        reasons = {cell.settings[number].reason for cell in variation.cells} - {None}
        why = f": {reasons.pop()}" if len(reasons) == 1 else ""
        yield line.append(f"nothing compared{why}", "yellow")
        return
    differ = counts["better"] + counts["worse"]
    line.append(f"{differ} of {len(known)} differ")
    if differ:
        line.append(f": {counts['better']} better, {counts['worse']} worse")
    yield line
    cell, most = max(known, key=lambda pair: _size(pair[1]))
    if differ > 1 and most.change is not None:
        percent = _percent(most.change.ratio, most.change)
        own = (cell.benchmark, cell.backend)
        sizes = {c.size for c in variation.cells if (c.benchmark, c.backend) == own}
        yield Text(f"  most: {percent} {cell.benchmark} {_at(cell, several=len(sizes) > 1)}")
    vague = max((_reach(one) for _, one in known if one.direction == "same"), default=0.0)
    if vague > VAGUE:
        yield Text(f"  ~ may be up to {vague:.0%}: {QUIET}", "yellow")


def _reach(one: Compared) -> float:
    """How far its interval reaches from no change."""
    if one.change is None or one.change.low is None or one.change.high is None:
        return 0.0
    return max(1 - one.change.low, one.change.high - 1)


def _size(one: Compared) -> float:
    """How large a proven change is, as a factor; 0 of others."""
    if one.change is None or one.direction not in ("better", "worse"):
        return 0.0
    return max(one.change.ratio, 1 / one.change.ratio)


def _promise(variation: Variation) -> Iterator[Text]:
    """What the comparisons guarantee."""
    alpha, done = variation.significance, done_rounds(variation)
    count = sum(one.direction != "unknown" for c in variation.cells for one in c.settings[1:])
    if not count and variation.finished is not None and done < variation.rounds:
        yield Text("ended after one round: no cell has figures under A and another setting")
    elif done < (least := least_rounds(alpha)):
        yield Text(f"finding a difference at {100 * alpha:.4g}% takes {least} rounds")
    elif count:
        chance = f"chance alone makes {count * alpha:.2g} of {count} differ, on average"
        yield Text(f"at {100 * alpha:.4g}% each, {chance}{_together(variation, count)}")


def _together(variation: Variation, count: int) -> str:
    """How many differ if no false difference is to be among all."""
    alpha = variation.significance
    known = [one.change for cell in variation.cells for one in cell.settings if one.change]
    if count < 2 or any(one.holm is None for one in known):
        return ""
    held = sum(one.holm is not None and one.holm < alpha for one in known)
    least = least_rounds(alpha / count)
    takes = f" (that takes {least} rounds)" if done_rounds(variation) < least else ""
    return f"; at {100 * alpha:.4g}% for all {count} at once, {held} differ{takes}"


def variation_csv(variation: Variation) -> str:
    """A line for each cell and setting, in the unit of data."""
    return csv_text((COLUMNS, *(row for cell in variation.cells for row in _rows(variation, cell))))


def _rows(variation: Variation, cell: VariedCell) -> Iterator[tuple[object, ...]]:
    for setting, one in zip(variation.settings, cell.settings, strict=True):
        change, figures = one.change, sum(figure is not None for figure in one.figures)
        found = (change.ratio, change.low, change.high, change.p, change.holm) if change else ()
        yield (
            *cell.sheet, cell.row, cell.column, cell.unit, cell.better, setting.name, str(setting),
            figures, one.median,
            *(found or [None] * 5),
            one.direction, one.reason, variation.simulated,
        )  # fmt: skip
