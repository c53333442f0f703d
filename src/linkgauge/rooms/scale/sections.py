"""Shows the scaling of a collective, its knee, and pairs of devices that were measured alone."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.benchmarks.collectives import row_of
from linkgauge.model.documents.scaling import Count, Scaling
from linkgauge.model.grouped import grouped
from linkgauge.model.names import and_all
from linkgauge.model.units import BANDWIDTH, format_size
from linkgauge.report import chart_specs
from linkgauge.report.blocks import (
    TONES,
    Block,
    ChartFigure,
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
from linkgauge.report.curves import pivot
from linkgauge.report.results import figure, mark
from linkgauge.report.words.size_lines import line_lines

from .scaling import FALLEN

BAR = 20
MOST_PROBLEMS = 8
MOST_PAIRS = 16
"""With more, a terminal shows only the slow ones."""
COLUMNS = ("gpus", "size", "seconds", "algbw", "busbw", "expected", "unit", "simulated")


def blocks(scaling: Scaling) -> Iterator[Block]:
    yield _counts(scaling)
    if scaling.pairs:
        yield _pairs(scaling)
    if rows := list(_rows(scaling)):
        knee = scaling.knee
        marks = [{"x": knee.gpus, "says": f"knee at {knee.gpus}"}] if knee else []
        title = f"{scaling.collective.collective}: bus bandwidth by number of {scaling.member}s"
        table = pivot("bus bandwidth (GB/s)", f"{scaling.member}s", rows)
        yield ChartFigure(title, title, chart_specs.scaling(marks), rows, table)
    problems = scaling.problems[:MOST_PROBLEMS]
    yield Prose([plain(one, "warn" if one.startswith("skip") else "bad") for one in problems])
    if len(problems) < len(scaling.problems):
        yield Prose([plain(f"and {len(scaling.problems) - len(problems)} more that did not pass")])


def _counts(scaling: Scaling) -> Table:
    work, members = scaling.collective, f"{scaling.member}s"
    sizes = [point.size for count in scaling.counts for point in count.points]
    ends = dict.fromkeys((min(sizes), max(sizes))) if sizes else ()
    of = f"  {scaling.backend}  {row_of(work)}  {' to '.join(map(format_size, ends))}"
    caption = line(
        Span(work.collective, "strong"),
        f"{of}  GB/s of each {scaling.member}",
        Span("" if scaling.finished else "  (interrupted)", "warn"),
        mark(scaling.simulated),
    )
    heads = (
        Column(members, True), Column("algbw", True), Column("busbw", True),
        Column("expected", True), Column("shortest µs", True), Column("verdict"),
        Column("of expected"),
    )  # fmt: skip
    lines = list(_said(scaling)) if scaling.counts else []
    return Table(caption, heads, list(map(_row, scaling.counts)), lines=lines)


def _row(count: Count) -> tuple[Entry, ...]:
    bound, share = count.expected, count.efficiency
    at_most = "" if bound.achievable or not bound.theoretical else "<"
    expected = figure(bound.figure, BANDWIDTH.symbol)
    bar = "" if share is None else f"{share:>4.0%} {'█' * round(min(share, 1.5) * BAR)}"
    floor = (count.floor or 0) * 1e6
    return (
        Entry(str(count.gpus), count.gpus),
        figure(max(point.algbw for point in count.points), BANDWIDTH.symbol),
        figure(count.plateau, BANDWIDTH.symbol),
        expected._replace(text=at_most + expected.text),
        Entry(f"{floor:.2f}", floor),
        Entry(count.verdict if count.gpus > 1 else "", tone=TONES[count.verdict]),
        Entry(bar, share, "name"),
    )


def _said(scaling: Scaling) -> Iterator[Line]:
    yield _knee(scaling)
    if scaling.below:
        counts = ", ".join(map(str, scaling.below))
        yield line(Span("below what is expected", "warn"), f": {counts} {scaling.member}s")
    several = (count for count in scaling.counts if count.gpus > 1)
    by_reason = grouped((count.expected.because, str(count.gpus)) for count in several)
    for reason, numbers in by_reason.items():
        yield plain(f"expected of {and_all(numbers)} {scaling.member}s: {reason}", "dim")
    yield from line_lines([one.line for one in scaling.counts if one.line])


def _knee(scaling: Scaling) -> Line:
    several = [count.gpus for count in scaling.counts if count.plateau is not None]
    knee, members = scaling.knee, f"{scaling.member}s"
    if not several:
        return plain(f"one {scaling.member} uses no link: only its time and algbw mean anything")
    if knee is None:
        least = f"busbw never falls below {FALLEN:.0%} of its best"
        return plain(f"no knee: up to {several[-1]} {members}, {least}")
    why = knee.because or "the machine's topology does not explain it"
    reached = f" at {knee.gpus} {members}: {knee.left:.0%} of the busbw of {knee.best} {members}"
    return line(Span("knee", "warn"), f"{reached}; cause: {why}")


def _pairs(scaling: Scaling) -> Table:
    rows = [
        (
            Entry(one.pair),
            figure(one.rate, BANDWIDTH.symbol),
            figure(one.expected, BANDWIDTH.symbol),
            Entry("slow link" if one.slow else "", tone="bad"),
        )
        for one in sorted(scaling.pairs, key=lambda one: not one.slow)
    ]
    heads = (Column("alone"), Column("GB/s", True), Column("expected", True), Column("found"))
    slow = sum(one.slow for one in scaling.pairs)
    fine = plain("each pair alone is as fast as expected, but not all together")
    return Table(
        plain(f"{len(rows)} pairs of devices, each measured alone"), heads, rows, sortable=True,
        lines=[] if slow else [fine], few=max(slow, MOST_PAIRS),
    )  # fmt: skip


def _rows(scaling: Scaling) -> Iterator[dict[str, object]]:
    for count in scaling.counts:
        expected = count.expected.achievable
        for name, value in (("measured", count.plateau), ("expected", expected)):
            if value is not None:
                rate = float(f"{value / BANDWIDTH.scale:.5g}")
                says = f"{count.gpus} {scaling.member}s, {name}: {rate:.4g} {BANDWIDTH.shown}"
                yield {"x": count.gpus, "y": rate, "series": name, "says": says}


def scale_csv(scaling: Scaling) -> str:
    rows = (
        (count.gpus, at.size, at.seconds, at.algbw, at.busbw, count.expected.achievable,
         BANDWIDTH.symbol, scaling.simulated)
        for count in scaling.counts
        for at in count.points
    )  # fmt: skip
    return csv_text((COLUMNS, *rows))
