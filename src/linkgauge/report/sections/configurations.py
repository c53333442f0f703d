"""Configurations side by side: a table of all, bars by accelerator, and in what they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from linkgauge.judge.configurations import Compared, Comparison, Difference
from linkgauge.model.stats.changes import changed_to
from linkgauge.model.units import unit_of
from linkgauge.report import charts
from linkgauge.report.blocks import (
    Block,
    Column,
    Entry,
    Figure,
    Prose,
    Span,
    Table,
    Tone,
    cut,
    plain,
)
from linkgauge.report.comparison_text import shown
from linkgauge.report.figures import finely_signed
from linkgauge.report.results import label
from linkgauge.report.verdicts import judged_of

from . import OneRun, Section, SeveralRuns

NOISE, UNPROVEN = "noise", "not proven"
"""A difference within its interval; one without an interval."""
MOST_FACT = 300


def _table(several: SeveralRuns) -> Iterator[Block]:
    """All configurations of all accelerators."""
    named: dict[str, Compared] = {}
    for comparison in several.comparisons:
        for compared in comparison.compared:
            named.setdefault(compared.name, compared)
    heads = (
        Column("accelerator"),
        Column("configuration"),
        Column("runs", True),
        Column("verdict of the last"),
        *(Column(f"{label(one.name)} ({unit_of(one.unit).shown})", True) for one in named.values()),
    )
    rows = [
        row for comparison in several.comparisons for row in _rows(comparison, list(named), several)
    ]
    caption = plain("All configurations: a click on a head sorts by it")
    yield Table(caption, heads, rows, sortable=True)
    yield Prose([
        (
            Span("±: the wider half of the 95% interval. "),
            Span("+1.2%", "strong"),
            Span(" differs from the first configuration of its accelerator; "),
            Span("≈ +0.3%", "dim"),
            Span(" is no more than noise."),
        )
    ])  # fmt: skip


def _rows(
    comparison: Comparison, names: Sequence[str], several: SeveralRuns
) -> Iterator[tuple[Entry, ...]]:
    by_name = {one.name: one for one in comparison.compared}
    for at, configuration in enumerate(comparison.configurations):
        last = several.last[comparison.accelerator, configuration.label]
        yield (
            Entry(label(comparison.accelerator)),
            Entry(label(configuration.label), tone="strong"),
            Entry(str(len(configuration.runs)), len(configuration.runs)),
            _verdict(last),
            *(_entry(by_name.get(name), at) for name in names),
        )


def _verdict(one: OneRun) -> Entry:
    code = one.outcome.code
    if code == 0 and not (one.outcome.verdict and judged_of(one.run).judged):
        return Entry("not judged", code, "dim")
    words: dict[int, tuple[str, Tone]] = {
        0: ("ok", "good"),
        1: ("failed", "bad"),
        3: ("errors", "bad"),
    }
    word, tone = words.get(code, ("nothing measured", "dim"))
    return Entry(word, code, tone)


def _entry(compared: Compared | None, at: int) -> Entry:
    figure = compared.figures[at] if compared is not None else None
    if compared is None or figure is None:
        return Entry("")
    return Entry(f"{shown(compared, figure)}{_told(figure.against)}", figure.median,
                 _tone(compared, figure.against))  # fmt: skip


def _told(against: Difference | None) -> str:
    if against is None:
        return ""
    text = finely_signed(against.ratio)
    if against.low is None:
        return f" ({text})"
    return f" {text}" if against.is_proven else f" ≈ {text}"


def _kind(compared: Compared, at: int, against: Difference | None) -> str:
    if at == 0:
        return "baseline"
    if against is None or against.low is None:
        return UNPROVEN
    if not against.is_proven:
        return NOISE
    return changed_to(against.ratio, compared.better)


def _tone(compared: Compared, against: Difference | None) -> Tone:
    if against is None:
        return ""
    tones: dict[str, Tone] = {NOISE: "dim", UNPROVEN: "dim", "better": "good", "worse": "bad"}
    return tones[_kind(compared, 1, against)]


def bars(several: SeveralRuns) -> Iterator[Block]:
    """The figures of each accelerator, one by one."""
    for comparison in several.comparisons:
        first = label(comparison.configurations[0].label)
        yield Prose([(Span(label(comparison.accelerator), "strong"), Span(f", against {first}"))])
        for compared in comparison.compared:
            yield _chart(comparison, compared)


def _chart(comparison: Comparison, compared: Compared) -> Figure:
    unit = unit_of(compared.unit)
    rows: list[dict[str, object]] = []
    lines = []
    for at, (own, figure) in enumerate(
        zip(comparison.configurations, compared.figures, strict=True)
    ):
        if figure is None:
            continue
        name, kind = label(own.label), _kind(compared, at, figure.against)
        says = f"{name}: {shown(compared, figure)} {unit.shown}{_told(figure.against)} ({kind})"
        ends = (figure.low or figure.median, figure.high or figure.median)
        low, high = (float(f"{end / unit.scale:.6g}") for end in ends)
        x = float(f"{figure.median / unit.scale:.6g}")
        rows.append({"series": name, "x": x, "low": low, "high": high, "kind": kind, "says": says})
        lines.append((Entry(name), _entry(compared, at), Entry(kind)))
    title = (
        f"{label(compared.name)} on {label(comparison.accelerator)}, {compared.better} is better"
    )
    heads = (Column("configuration"), Column(unit.shown, True), Column("against the first"))
    draw = partial(charts.bars, x=f"{label(compared.name)} ({unit.shown})")
    return Figure(title, title, draw, rows, Table(plain(label(compared.benchmark)), heads, lines))


def facts(several: SeveralRuns) -> Iterator[Block]:
    """A table for each accelerator."""
    for comparison in several.comparisons:
        labels = [label(one.label) for one in comparison.configurations]
        if not comparison.facts:
            text = "machines and settings are alike as far as they are known"
            yield Prose([plain(f"{label(comparison.accelerator)}: {text}", "dim")])
            continue
        rows = [
            (
                Entry(fact.name),
                *(Entry(cut(one or "unknown", MOST_FACT)) for one in fact.values),
            )
            for fact in comparison.facts
        ]
        heads = (Column("what differs"), *map(Column, labels))
        yield Table(plain(label(comparison.accelerator)), heads, rows)


SECTION = Section("configurations", "Configurations", 5, of_runs=_table)
