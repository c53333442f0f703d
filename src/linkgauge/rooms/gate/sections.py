"""Shows comparisons of runs, verdicts of the gate, and baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from linkgauge.judge.compare.baseline import Baseline
from linkgauge.judge.compare.gate import FAILURES, UNDECIDED, GateDocument, Verdict
from linkgauge.judge.compare.run_comparison import CellChange, RunCell, RunComparison, SideFigure
from linkgauge.model.grouped import grouped
from linkgauge.model.stats.changes import Direction, RunChange
from linkgauge.model.units import Better, count_of, format_size, percent, unit_of
from linkgauge.report.blocks import (
    Block,
    Column,
    Entry,
    Line,
    Problem,
    Prose,
    Span,
    Table,
    Tile,
    Tiles,
    Tone,
    line,
    plain,
)
from linkgauge.report.results import SIMULATED_TILE, ends_of_sizes, mark
from linkgauge.report.sections.configurations import fact_table
from linkgauge.report.words.figures import SAME, TONES, said_of, signed, with_reach
from linkgauge.report.words.run_notes import ANEW

from .words import lacking, more_runs, p_value, why

FEW = 16
"""The most cells that are shown by default."""
MOST_JUDGED, MOST_LACKING, MOST_OUTLIERS = 20, 3, 10
"""The most cells with each verdict that a terminal shows, the most cells that lack runs, and the
most cells of an outlier."""
_HALF = 0.5
"""From this loss on, a comparison that may miss it says nothing of a cell."""
SHORT = 12
"""The characters of a side's name if there is little space."""
_WAYS: dict[Direction, str] = {"same": "unchanged", "unknown": "undecided"}
_SAID: dict[Verdict, str] = {"not enough": "with too few runs to judge"}
_CODES: dict[int, tuple[str, Tone]] = {
    0: ("pass", "good"),
    1: ("fail", "bad"),
    3: ("inconclusive", "warn"),
    4: ("nothing could be compared", "warn"),
}


def few_cells(one: RunComparison) -> Iterator[Block]:
    is_whole = len(one.cells) <= FEW
    yield from _compared(one, one.cells if is_whole else ())
    if not is_whole:
        yield Prose([plain(f"all {count_of(len(one.cells))}: --all", "dim")])


def every_cell(one: RunComparison) -> Iterator[Block]:
    return _compared(one, one.cells)


def _compared(one: RunComparison, cells: Sequence[RunCell]) -> Iterator[Block]:
    others = range(1, len(one.sides))
    for number in others:
        yield _outcome(one, number)
        yield Prose([*_changed(one, number), *_power(one, number)])
    yield Prose([*_basis(one)])
    yield fact_table(one.differences, [side.name for side in one.sides])
    tables = grouped(((cell.table, cell.unit), cell) for cell in cells)
    yield from (_table(one, own, number) for own in tables.values() for number in others)


def _outcome(one: RunComparison, number: int) -> Tiles:
    changes = [cell.changes[number - 1] for cell in one.cells]
    counts = Counter(change.direction for change in changes if change.change is not None)
    tiles = [
        Tile(str(counts[way]), _WAYS.get(way, way), tone if counts[way] else "")
        for way, tone in TONES.items()
    ]
    noun = "cell" if tiles[0].number == "1" else "cells"
    tiles[0] = tiles[0]._replace(name=f"{noun} {tiles[0].name}")
    if left := len(changes) - counts.total():
        tiles.append(Tile(count_of(left), "that lack a figure on a side"))
    if not counts:
        tiles = [Tile("nothing", "could be judged", "warn")]
    tiles += [SIMULATED_TILE] if one.simulated else []
    return Tiles(tiles, _sides(one, number))


def _sides(one: RunComparison, number: int) -> str:
    of = (one.sides[number], one.sides[0])
    return " against ".join(f"{side.name} ({count_of(len(side.runs), 'run')})" for side in of)


def _changed(one: RunComparison, number: int) -> Iterator[Line]:
    own = [group for group in one.changed if group.side == one.sides[number].name]
    for group in own:
        yield line(Span(group.direction, TONES[group.direction]), f": {said_of(group)}")
    changed = sum(cell.changes[number - 1].proven is not None for cell in one.cells)
    if left := changed - sum(group.cells for group in own):
        yield plain(f"and {count_of(left)} more", "dim")


def _power(one: RunComparison, number: int) -> Iterator[Line]:
    found = [need for cell in one.cells if (need := cell.changes[number - 1].needed) is not None]
    losses = [each.detectable for each in found]
    clear = [each for each in losses if each < _HALF]
    vague = len(losses) - len(clear)
    if clear:
        half, all_of_them = percent(median(clear)), percent(max(clear))
        where = "any cell" if len(clear) == len(one.cells) else f"any of {count_of(len(clear))}"
        seen = f"sensitivity: with 90% probability, a loss of {all_of_them} in {where} would show"
        yield plain(seen if half == all_of_them else f"{seen}, one of {half} in half of them")
    if vague:
        cells = f"{vague} of {count_of(len(losses))}" if clear else count_of(vague)
        yield plain(f"in {cells}, runs vary too much to find a loss of half", "warn")
    short = [each.more for each in found if each.more != (0, 0)]
    able = sorted((more for more in short if more is not None), key=sum)
    said = list[str]()
    if able:
        half, most = more_runs(able[len(able) // 2]), more_runs(able[-1])
        said = [f"{count_of(len(able))} need more runs: half of them {half}, the noisiest {most}"]
    if hopeless := len(short) - len(able):
        said.append(f"{count_of(hopeless)} vary too much for any number of runs")
    if short:
        yield plain(f"to find a loss of {percent(one.aim.detect)}, {'; '.join(said)}", "warn")


def _basis(one: RunComparison) -> Iterator[Line]:
    bases = Counter(c.change.basis for cell in one.cells for c in cell.changes if c.change)
    history = f" and of {one.history} more in the history" if one.history else ""
    if bases["runs"]:
        yield plain(f"judged by the variation between these runs{history}", "dim")
    if single := bases["within"]:
        few = (
            f"{count_of(single)} have a single run on a side: how much runs vary is only estimated"
        )
        yield plain(f"{few}; more runs would show it", "warn")
    if one.anew:
        yield plain(f"ranges of {count_of(one.anew, 'run')} are {ANEW}", "dim")


def _table(one: RunComparison, cells: Sequence[RunCell], number: int) -> Table:
    first = cells[0]
    sizes = ends_of_sizes(cell.bytes for cell in cells)
    size = f"  {sizes}" if sizes else ""
    better = f"{unit_of(first.unit).shown}, {first.better} is better"
    heads = [
        Column("cell"),
        *(_head(one.sides[at].name) for at in (0, number)),
        *map(_head, ("change", "95% interval", "slowest 5%", "slowest 1%")),
        Column(""),
    ]
    caption = line(Span(first.benchmark, "strong"), f"  {first.backend}{size}  {better}")
    return Table(caption, heads, [tuple(_row(one, cell, number)) for cell in cells])


def _head(name: str) -> Column:
    return Column(name, True, short=name if len(name) <= SHORT else f"…{name[1 - SHORT :]}")


def _row(one: RunComparison, cell: RunCell, number: int) -> Iterator[Entry]:
    change, sides = cell.changes[number - 1], (cell.sides[0], cell.sides[number])
    known, tone = change.change, TONES[change.direction]
    found = {"figure": known, "slow_p95": change.slow_p95, "slow_p99": change.slow_p99}
    moved = [_moved(sides, *named, one.aim.significance) for named in found.items()]
    repeat = f" #{cell.repeat + 1}" if cell.repeat else ""
    yield Entry(f"{cell.row}, {cell.column}{repeat}", tone="name")
    yield from (Entry(_figure(side, cell.unit)) for side in sides)
    yield Entry(moved[0], tone=tone)
    yield Entry(f"[{signed(known.low)}, {signed(known.high)}]" if known else "")
    yield from (Entry(text, tone="dim") for text in moved[1:])
    yield Entry(_said(change, sides, cell.better), tone=tone)


def _figure(side: SideFigure | None, unit: str) -> str:
    if side is None or side.figure is None:
        return "-" if side is None else side.status
    return with_reach(side.figure, side.low, side.high, unit)


_Sides = Sequence[SideFigure | None]


def _moved(sides: _Sides, name: str, found: RunChange | None, significance: float) -> str:
    """Formats a change: `~` if it may be noise, `(+2.0%)` if the variation is unknown."""
    if found is not None:
        return signed(found.ratio) if found.holm < significance else SAME
    first, other = (getattr(side, name, None) for side in sides)
    return f"({signed(other / first)})" if first and other else ""


def _said(one: CellChange, sides: _Sides, better: Better) -> str:
    if one.change is None:
        without = [side for side in sides if side is None or side.figure is None]
        if not without:
            return "one run on each side does not show how much runs vary"
        if without[0] is not None:
            return without[0].reason or ""
        return f"{'one side has' if any(sides) else 'the sides have'} no such cell"
    if one.direction == "unknown":
        return lacking(one, better)
    return f"{one.direction} (p {p_value(one.change.holm)})" if one.proven else ""


def gate(one: GateDocument) -> Iterator[Block]:
    word, tone = _CODES[one.code]
    verdicts: tuple[Verdict, ...] = (*FAILURES, *UNDECIDED, "waived", "ok")
    found = [_counted(each, len(cells)) for each in verdicts if (cells := one.of(each))]
    said = plain(", ".join(found) or "no cell")
    yield Problem(word, tone, "", said, tuple(_behind(one)), first=True)
    yield fact_table(one.comparison.differences, [side.name for side in one.comparison.sides])
    for verdict in verdicts[:-1]:
        rows = [
            (Entry(each.cell.name), Entry(format_size(each.cell.bytes) if each.cell.bytes else ""),
             Entry(why(each)))
            for each in one.of(verdict)
        ]  # fmt: skip
        heads = (Column(""), Column("size", True), Column("why"))
        few, tone = (MOST_JUDGED, "bad") if verdict in FAILURES else (MOST_LACKING, "warn")
        if rows:
            yield Table(plain(_SAID.get(verdict, verdict), tone), heads, rows, few=few)
    yield Prose([*_power(one.comparison, 1), *_basis(one.comparison)])


def _counted(verdict: Verdict, cells: int) -> str:
    several = "s" if verdict == "regression" and cells > 1 else ""
    return f"{cells} {_SAID.get(verdict, verdict)}{several}"


def _behind(one: GateDocument) -> Iterator[tuple[str, Line]]:
    found, aim = one.comparison, one.comparison.aim
    yield "runs", line(_sides(found, 1), mark(found.simulated))
    rule = f"fails if any cell loses {percent(aim.least)} or more (p < {aim.significance:g})"
    yield "rule", plain(f"{rule}; compared because of --force" if one.forced else rule)
    cells, times = one.again
    if cells:
        yield "again", plain(f"{count_of(cells)} in doubt measured {count_of(times, 'time')} more")
    if len(found.changed) < len(one.of("regression")):
        yield from (("changed", each) for each in _changed(found, 1))
    if one.undetectable is not None:
        yield "misses", plain(one.undetectable, "warn")


def baseline(one: Baseline) -> Iterator[Block]:
    hosts = {run.machine.host.hostname for run in one.runs}
    several = f" on {len(hosts)} machines" if len(hosts) > 1 else ""
    runs, cells = count_of(len(one.runs), "run"), count_of(len(one.cells))
    said = [plain(f"baseline of {runs}{several}, {cells}")]
    known = sorted((c.deviation, c.name) for c in one.cells if c.deviation is not None)
    if known:
        (middle, _), (most, name) = known[len(known) // 2], known[-1]
        varies = f"runs vary by {percent(middle)} in the median cell"
        said.append(plain(f"{varies}, most in {name}: {percent(most)}"))
    else:
        said.append(plain("one run does not show how much runs vary: give several", "warn"))
    for outlier, number in one.outliers.items():
        own = [cell.name for cell in one.cells if outlier in cell.outliers]
        listed = ", ".join(own[:MOST_OUTLIERS]) + (" …" if len(own) > MOST_OUTLIERS else "")
        said.append(plain(f"outlier: run {outlier}, in {count_of(number)}: {listed}", "warn"))
    yield Prose(said)
