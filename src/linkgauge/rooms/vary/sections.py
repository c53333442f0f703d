"""Shows the effects of settings: the settings, a summary, and a table for each benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import log

from linkgauge.model.documents.variation import Compared, Setting, Variation, VariedCell
from linkgauge.model.grouped import grouped
from linkgauge.model.stats.changes import Direction
from linkgauge.model.stats.ranks import Change, least_rounds
from linkgauge.model.units import count_of, format_size, unit_of
from linkgauge.report.blocks import (
    Block,
    Column,
    Entry,
    Line,
    Prose,
    Span,
    Table,
    line,
    plain,
)
from linkgauge.report.csv_text import csv_text
from linkgauge.report.results import ends_of_sizes, figure, mark, without_empty
from linkgauge.report.words.figures import SAME, TONES, signed
from linkgauge.report.words.sentences import first_of

FINE = 0.002
"""An interval narrower than this is shown with another digit."""
VAGUE = 0.1
"""If an interval reaches further than this, a difference may exist although none was found."""
COLUMNS = (
    "benchmark", "backend", "size", "row", "column", "unit", "better", "setting", "values",
    "rounds", "median", "ratio", "ratio_low", "ratio_high", "p", "p_holm", "direction", "reason",
    "simulated",
)  # fmt: skip
_SAID: dict[Direction, str] = {"same": SAME, "unknown": "not compared"}


def blocks(variation: Variation) -> Iterator[Block]:
    yield _settings(variation)
    found = [_outcome(variation, number) for number in range(1, len(variation.settings))]
    yield Prose([*found, line(_promise(variation))])
    tables = grouped(((cell.benchmark, cell.backend), cell) for cell in variation.cells)
    yield from (_table(variation, cells) for cells in tables.values())


def _done_rounds(variation: Variation) -> int:
    ended = Counter(run.round for run in variation.runs if run.finished)
    return sum(count == len(variation.settings) for count in ended.values())


def _settings(variation: Variation) -> Table:
    rows = []
    for number, setting in enumerate(variation.settings):
        said = f"{setting} (the baseline)" if not number else str(setting)
        printed = next((run.prepared for run in variation.runs if run.setting == number), None)
        if printed:
            said += f"; --prepare printed: {printed.splitlines()[-1]}"
        rows.append((Entry(setting.name, tone="strong"), Entry(said)))
    rounds = count_of(_done_rounds(variation), "round")
    caption = line(
        f"{len(rows)} settings, {rounds} of one run each, in random order",
        Span("" if variation.finished else f" (ended before all {variation.rounds})", "warn"),
        mark(variation.simulated),
    )
    before = [] if variation.prepare is None else [plain(f"before each run: {variation.prepare}")]
    return Table(caption, (Column("setting"), Column("options")), rows, lines=before)


def _table(variation: Variation, cells: Sequence[VariedCell]) -> Table:
    base, *others = (setting.name for setting in variation.settings)
    sizes = sorted({cell.size for cell in cells})
    paths = {cell.place: number for number, cell in enumerate(cells)}
    cells = sorted(cells, key=lambda one: (paths[one.place], one.size))
    rows = [
        (
            Entry(str(cell.place), tone="name"),
            Entry(format_size(cell.size) if len(sizes) > 1 else "", cell.size),
            figure(cell.settings[0].median, cell.unit),
            Entry(name if len(others) > 1 else ""),
            figure(other.median, cell.unit),
            *_against((base, cell.settings[0]), (name, other)),
        )
        for cell in cells
        for name, other in zip(others, cell.settings[1:], strict=True)
    ]
    heads = (
        Column("cell"), Column("size", True), Column(base, True), Column("setting"),
        Column(others[0] if len(others) == 1 else "figure", True), Column("change", True),
        Column(f"{100 * (1 - variation.significance):.4g}% interval", True), Column("found"),
    )  # fmt: skip
    size = f"  {ends_of_sizes(sizes)}" if sizes[-1] else ""
    of = f"{size}  {unit_of(cells[0].unit).shown}, {cells[0].better} is better"
    caption = line(Span(cells[0].benchmark, "strong"), f"  {cells[0].backend}{of}")
    said = list(_by_size(cells, variation.settings)) if len(sizes) > 1 else ()
    return without_empty(Table(caption, heads, rows, lines=said))


def _against(
    first: tuple[str, Compared], second: tuple[str, Compared]
) -> tuple[Entry, Entry, Entry]:
    other = second[1]
    change, tone = other.change, TONES[other.direction]
    missing = [f"{name}: {one.reason}" for name, one in (first, second) if one.reason]
    if change is None:
        return Entry(""), Entry(""), Entry("; ".join(missing) or "no round has both", tone=tone)
    ends, is_same = (change.low, change.high), other.direction == "same"
    interval = f"[{', '.join(_percent(change, end) for end in ends if end)}]"
    rounds = [f"{change.rounds} rounds"] if change.rounds < len(other.figures) else []
    found = "" if is_same else other.direction if change.is_known else "too few rounds"
    return (
        Entry(SAME if is_same else _percent(change), change.ratio, tone),
        Entry(interval if change.is_known else ""),
        Entry("; ".join(filter(None, (found, *rounds, *missing))), tone=tone),
    )


def _percent(change: Change, ratio: float | None = None) -> str:
    narrow = change.low and change.high and change.high - change.low < FINE
    return signed(ratio or change.ratio, 2 if narrow else 1)


def _by_size(cells: Sequence[VariedCell], settings: Sequence[Setting]) -> Iterator[Line]:
    for number, setting in enumerate(settings[1:], 1):
        equivalent = grouped(
            (_spans(own, number), str(place))
            for place, own in groupby(cells, lambda one: one.place)
        )
        for found, paths in equivalent.items():
            every = len(equivalent) == 1 and len(paths) > 1
            on = f"all {len(paths)} paths" if every else first_of(paths)
            yield line(Span(setting.name, "strong"), " on ", Span(on, "name"), f": {found}")


def _spans(cells: Iterable[VariedCell], number: int) -> str:
    spans = groupby(cells, lambda one: one.settings[number].direction)
    return ", ".join(
        f"{_SAID.get(how, how)} at {ends_of_sizes(one.size for one in each)}" for how, each in spans
    )


def _outcome(variation: Variation, number: int) -> Line:
    known = [
        (cell, change)
        for cell in variation.cells
        if (change := cell.settings[number].change) is not None and change.is_known
    ]
    against = f"{variation.settings[number].name} against {variation.settings[0].name}: "
    if not known:
        return line(against, Span("nothing is compared", "warn"))
    differ = [one for one in known if one[1].is_proven]
    better = sum(cell.settings[number].direction == "better" for cell, _ in differ)
    said = f"of {count_of(len(known))}, {better} better and {len(differ) - better} worse"
    if differ:
        cell, most = max(differ, key=lambda one: abs(log(one[1].ratio)))
        sizes = {one.size for one in variation.cells if one.benchmark == cell.benchmark}
        at = f" at {format_size(cell.size)}" if len(sizes) > 1 else ""
        said += f"; the largest change: {_percent(most)} in {cell}{at}"
    same = (change for _, change in known if not change.is_proven)
    vague = max((abs(end - 1) for one in same for end in (one.low, one.high) if end), default=0.0)
    far = signed(1 + vague, 0).removeprefix("+")
    more = (
        f"; cells with ~ may hide up to {far}: raise --rounds, --max-time, or stop other programs"
    )
    return line(against, said, Span(more if vague > VAGUE else "", "warn"))


def _promise(variation: Variation) -> str:
    alpha, done = variation.significance, _done_rounds(variation)
    each = (one.change for cell in variation.cells for one in cell.settings)
    known = [change for change in each if change is not None and change.is_known]
    if not known and variation.finished is not None and done < variation.rounds:
        return "ended after one round: no cell has figures under A and another setting"
    if done < (least := least_rounds(alpha)):
        return f"finding a difference at {100 * alpha:.4g}% takes {least} rounds"
    count, asked = len(known), f"at {100 * alpha:.4g}% significance"
    said = f"{asked} for each cell, expect {count * alpha:.2g} false alarms in {count_of(count)}"
    adjusted = [change.holm for change in known if change.holm is not None]
    if len(adjusted) == count > 1:
        held = sum(p < alpha for p in adjusted)
        said += f"; {asked} over all cells together, {held} differ{'s' * (held == 1)}"
        if done < (least := least_rounds(alpha / count)):
            said += f" (fewer than {least} rounds cannot show any)"
    return said if known else ""


def variation_csv(variation: Variation) -> str:
    return csv_text((COLUMNS, *(row for cell in variation.cells for row in _rows(variation, cell))))


def _rows(variation: Variation, cell: VariedCell) -> Iterator[tuple[object, ...]]:
    for setting, one in zip(variation.settings, cell.settings, strict=True):
        change, rounds = one.change, sum(figure is not None for figure in one.figures)
        found = (change.ratio, change.low, change.high, change.p, change.holm) if change else ()
        yield (
            *cell.table, *cell.place, cell.unit, cell.better, setting.name, str(setting), rounds,
            one.median, *(found or [None] * 5), one.direction, one.reason, variation.simulated,
        )  # fmt: skip
