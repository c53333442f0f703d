"""Compares the configurations of each accelerator, as blocks, JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from linkgauge.benchmarks.vm import Aspect
from linkgauge.judge.compare.configurations import ConfigurationComparison
from linkgauge.judge.compare.machine_state import Fact
from linkgauge.judge.compare.run_comparison import RunCell
from linkgauge.model.units import count_of, unit_of
from linkgauge.report import chart_specs
from linkgauge.report.blocks import (
    Block,
    ChartFigure,
    Column,
    Entry,
    Line,
    Prose,
    Span,
    Table,
    Tone,
    cut,
    line,
    plain,
)
from linkgauge.report.csv_text import csv_text
from linkgauge.report.files import json_document
from linkgauge.report.results import label, mark
from linkgauge.report.sections import OneRun, Section, SeveralRuns
from linkgauge.report.words.figures import TONES, said, signed, with_reach

_KINDS: dict[str, tuple[str, Tone]] = {
    "baseline": ("", ""),
    "better": (" {}", TONES["better"]),
    "worse": (" {}", TONES["worse"]),
    "noise": (" ≈ {}", "dim"),
    "not proven": (" ({})", "dim"),
}
"""`noise` is within the interval, `not proven` has none."""
_AT_LENGTH = {"within": "copy within a device"}
_REACH = plain("±: how far the 95% interval reaches, on its wider side")
_DIFFERENCES = line(
    "Differences from the first configuration of the same accelerator: ",
    Span("+N%", "strong"), " is proven, ", Span("≈ +N%", "dim"), " may be noise, ",
    Span("(+N%)", "dim"), " has too few runs to tell.",
)  # fmt: skip


def blocks(comparisons: Sequence[ConfigurationComparison]) -> Iterator[Block]:
    yield Prose([_head(one) for one in comparisons])
    yield _table(comparisons)
    yield from fact_tables(comparisons)


def _head(one: ConfigurationComparison) -> Line:
    sides = one.found.sides
    count = count_of(len(sides), "configuration")
    against = f", compared with {sides[0].name!r}" if len(sides) > 1 else ""
    said = f": {count}{against}"
    return line(Span(one.accelerator, "strong"), said, mark(one.found.simulated))


def _of_runs(several: SeveralRuns) -> Iterator[Block]:
    caption = plain("All configurations: click a column's head to sort")
    yield _table(several.comparisons, several.last)._replace(caption=caption)


def _table(
    comparisons: Sequence[ConfigurationComparison], last: Mapping[tuple[str, str], OneRun] = {}
) -> Table:
    heads = {
        aspect.name: Column(f"{label(aspect.name)} ({unit_of(cell.unit).shown})", True)
        for one in comparisons
        for aspect, cell in one.aspects.items()
    }
    rows = []
    for one in comparisons:
        cells = {aspect.name: cell for aspect, cell in one.aspects.items()}
        of = f"{one.accelerator}/" if len(comparisons) > 1 else ""
        for at, side in enumerate(one.found.sides):
            figures = [entry_of(cells.get(head), at) for head in heads]
            verdict = _verdict(last.get((one.accelerator, side.name)))
            first, runs = Entry(label(f"{of}{side.name}"), tone="strong"), len(side.runs)
            rows.append((first, Entry(str(runs), runs), verdict, *figures))
    columns = (Column("configuration"), Column("runs", True, 1), Column("last verdict"))
    is_compared = any(len(one.found.sides) > 1 for one in comparisons)
    below = [_REACH, *([_DIFFERENCES] if is_compared else [])] if heads else []
    return Table((), (*columns, *heads.values()), rows, sortable=True, lines=below)


def _verdict(one: OneRun | None) -> Entry:
    word = "" if one is None else one.outcome.word
    return Entry(word, tone="good" if word == "ok" else "bad" if word in ("low", "fail") else "dim")


def entry_of(cell: RunCell | None, at: int) -> Entry:
    side = cell.sides[at] if cell is not None else None
    if cell is None or side is None or side.figure is None:
        return Entry("-")
    form, tone = _KINDS[kind_of(cell, at)]
    text, ratio = with_reach(side.figure, side.low, side.high, cell.unit), cell.ratio(at)
    by = form.format(signed(ratio)) if ratio is not None else ""
    return Entry(f"{text}{by}", side.figure, tone if by else "")


def kind_of(cell: RunCell, at: int) -> str:
    """Returns `baseline` if side `at` is 0, else `better`, `worse`, `noise` or `not proven`."""
    if at == 0:
        return "baseline"
    one = cell.changes[at - 1]
    if one.change is None:
        return "not proven"
    return one.direction if one.proven else "noise"


SECTION = Section("configurations", "Configurations", 5, of_runs=_of_runs)


def fact_tables(comparisons: Sequence[ConfigurationComparison]) -> Iterator[Block]:
    for one in comparisons:
        labels = [label(side.name) for side in one.found.sides]
        where = label(one.accelerator) if len(comparisons) > 1 else ""
        if len(labels) > 1:
            yield fact_table(one.facts, labels, where)


def fact_table(facts: Sequence[Fact], names: Sequence[str], where: str = "") -> Block:
    """Returns a table of differing facts and their values by side. `where` is for the caption."""
    if not facts:
        text = f"{where}: " if where else ""
        return Prose([plain(f"{text}no difference of machine or settings is known", "dim")])
    rows = [(Entry(fact.name), Entry(cut(said(fact, names)))) for fact in facts]
    caption = f"what differs on {where}" if where else "what differs"
    return Table(plain(caption, "strong"), (Column(""), Column("value (side)")), rows)


FACTS = Section("facts", "What differs", 75, of_runs=lambda of: fact_tables(of.comparisons))


def _bars(several: SeveralRuns) -> Iterator[Block]:
    yield from (_chart(one, *of) for one in several.comparisons for of in one.aspects.items())


def _chart(one: ConfigurationComparison, aspect: Aspect, cell: RunCell) -> ChartFigure:
    unit, name = unit_of(cell.unit), label(aspect.name)
    labels = [label(side.name) for side in one.found.sides]
    rows: list[dict[str, object]] = []
    lines = []
    for at, (own, side) in enumerate(zip(labels, cell.sides, strict=True)):
        if side is None or side.figure is None:
            continue
        entry, kind, middle = entry_of(cell, at), kind_of(cell, at), side.figure
        ends = (side.low or middle, middle, side.high or middle)
        low, x, high = (float(f"{end / unit.scale:.6g}") for end in ends)
        says = f"{own}: {entry.text} ({unit.shown}, {kind})"
        rows.append({"series": own, "x": x, "low": low, "high": high, "kind": kind, "says": says})
        lines.append((Entry(own), entry, Entry(kind)))
    what = _AT_LENGTH.get(name, name)
    title = f"{what} on {label(one.accelerator)}, {cell.better} is better"
    heads = (Column("configuration"), Column(unit.shown, True), Column(f"against {labels[0]}"))
    table = Table(plain(label(cell.benchmark)), heads, lines)
    return ChartFigure(title, title, chart_specs.bars(f"{name} ({unit.shown})"), rows, table)


DIFFERENCES = Section("differences", "Differences", 25, of_runs=_bars)


COLUMNS = (
    "accelerator", "label", "figure", "benchmark", "median", "low", "high", "unit", "runs",
    "ratio", "ratio_low", "ratio_high", "simulated",
)  # fmt: skip


def configurations_json(comparisons: Sequence[ConfigurationComparison]) -> str:
    named = list(map(_named, comparisons))
    return json_document({"schema": "linkgauge.comparison/1", "comparisons": named})


def _named(one: ConfigurationComparison) -> dict[str, object]:
    return {
        "accelerator": one.accelerator,
        "configurations": [{"label": side.name, "runs": side.runs} for side in one.found.sides],
        "compared": [
            {
                "name": aspect.name, "of": aspect.of, "benchmark": cell.benchmark,
                "unit": cell.unit, "better": cell.better,
                "figures": [_json_figure(cell, at) for at in range(len(cell.sides))],
            }
            for aspect, cell in one.aspects.items()
        ],
        "facts": one.facts,
        "simulated": one.found.simulated,
    }  # fmt: skip


def _json_figure(cell: RunCell, at: int) -> dict[str, object] | None:
    side, ratio = cell.sides[at], cell.ratio(at)
    if side is None or side.figure is None:
        return None
    by = cell.changes[at - 1].change if at else None
    against = {"ratio": ratio, "low": by and by.low, "high": by and by.high, "p": by and by.holm}
    return {
        "median": side.figure, "low": side.low, "high": side.high, "runs": side.runs,
        "against": against if ratio is not None else None,
    }  # fmt: skip


def configurations_csv(comparisons: Sequence[ConfigurationComparison]) -> str:
    """Returns CSV with a line for each label and figure, in base units."""
    return csv_text((COLUMNS, *(row for one in comparisons for row in _csv_rows(one))))


def _csv_rows(one: ConfigurationComparison) -> Iterator[tuple[object, ...]]:
    for aspect, cell in one.aspects.items():
        for at, (name, side) in enumerate(zip(one.found.sides, cell.sides, strict=True)):
            if side is not None and side.figure is not None:
                by = cell.changes[at - 1].change if at else None
                yield (
                    one.accelerator, name.name, aspect.name, cell.benchmark,
                    side.figure, side.low, side.high, cell.unit, side.runs,
                    cell.ratio(at), by and by.low, by and by.high, one.found.simulated,
                )  # fmt: skip
