"""Shows which kinds of figures become faster or slower if a simulated machine is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from statistics import median
from typing import NamedTuple

from linkgauge.backends.sim.description import parse_description
from linkgauge.benchmarks.catalog import groups
from linkgauge.judge.compare.likeness import CellFigure, figures_of
from linkgauge.model.documents.result import Run
from linkgauge.model.grouped import grouped
from linkgauge.model.units import LATENCY, count_of, format_figure, format_with_unit, unit_of
from linkgauge.report.blocks import Block, Column, Entry, Line, Prose, Span, Tone, line, plain
from linkgauge.report.results import SIMULATED, named, table

SAME = 0.01
SPREAD = 1.2
_TONES: dict[int, Tone] = {-1: "bad", 1: "good"}


class _Pair(NamedTuple):
    before: float
    after: float
    speed: float

    @property
    def way(self) -> int:
        return 0 if abs(self.speed - 1) <= SAME else 1 if self.speed > 1 else -1


def what_if_blocks(before: Run, after: Run) -> Iterator[Block]:
    """Shows a row for each kind of figures that got slower or faster. Names other kinds below."""
    known = {(one.id, one.unit): one for one in figures_of(before).cells if one.figure}
    now = {(one.id, one.unit): one for one in figures_of(after).cells if one.figure}
    both = [(known[key], one) for key, one in now.items() if key in known]
    given = _tells_latencies(after)
    if not given:
        both = [(first, one) for first, one in both if one.unit != LATENCY.symbol]
    kinds = grouped((_kind(one), _pair(first, one)) for first, one in both)
    rows, same = list[Sequence[str | Entry]](), list[tuple[str, str]]()
    for (what, unit), pairs in kinds.items():
        ways = grouped((one.way, one) for one in pairs)
        rows += [_row(what, unit, ways[way], len(pairs)) for way in (-1, 1) if way in ways]
        same += [(what, unit)] if ways.keys() == {0} else []
    differ = {what for what, _ in kinds.keys() - {*same}}
    names = [f"{what} ({unit_of(unit).shown})" if what in differ else what for what, unit in same]
    heads = ("what", Column("figures", True), Column("before", True), Column("after", True), "", "")
    caption = line(SIMULATED, Span(f" {named(after.machine)}", "strong"), ": before and after")
    found = table("", heads, rows or [("nothing that both have", "", "", "", "", "")])
    yield found._replace(caption=caption, lines=[*_others(names, known.keys(), now.keys())])
    if not given:
        yield Prose([plain("latencies are left out: those of this machine's links are not known")])


def _tells_latencies(run: Run) -> bool:
    simulation = run.settings.simulation
    kinds = parse_description(simulation.description).link_kinds if simulation else {}
    return all(kind.latency for kind in kinds.values() if kind.kind in ("pcie", "fabric"))


def _others(same: Sequence[str], before: Set[object], after: Set[object]) -> Iterator[Line]:
    if same:
        yield plain(f"unchanged: {', '.join(dict.fromkeys(same))}")
    counts = ((len(before - after), "gone"), (len(after - before), "new"))
    if any(count for count, _ in counts):
        given = (f"{count_of(count, 'figure')} {how}" for count, how in counts if count)
        yield plain(f"without a counterpart: {', '.join(given)}", "dim")


def _kind(one: CellFigure) -> tuple[str, str]:
    what = next((name for name, rows in groups().items()
                 if any(row.name == one.benchmark for row in rows)), one.benchmark)  # fmt: skip
    return what, one.unit


def _pair(before: CellFigure, after: CellFigure) -> _Pair:
    first, second = before.figure or 1.0, after.figure or 1.0
    return _Pair(first, second, second / first if after.better == "higher" else first / second)


def _row(what: str, unit: str, pairs: Sequence[_Pair], of: int) -> Sequence[str | Entry]:
    speeds = sorted(one.speed for one in pairs)
    differ = speeds[-1] > SPREAD * speeds[0]
    span = f"{_said(speeds[0])} to {_said(speeds[-1])}" if differ else ""
    return (
        what,
        str(of) if len(pairs) == of else f"{len(pairs)} of {of}",
        format_figure(median(one.before for one in pairs), unit),
        format_with_unit(median(one.after for one in pairs), unit),
        Entry(_said(median(speeds)), tone=_TONES[pairs[0].way]),
        Entry(span, tone="dim"),
    )


def _said(speed: float) -> str:
    """Formats a factor of speed: `12% slower` or `3.4 times as fast`."""
    word, times = ("fast", speed) if speed > 1 else ("slow", 1 / speed)
    if times > 1.95:
        return f"{times:.3g} times as {word}" if times > 10 else f"{times:.2g} times as {word}"
    return f"{abs(speed - 1):.0%} {word}er"
