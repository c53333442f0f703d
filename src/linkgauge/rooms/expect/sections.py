"""Shows what a machine should reach, with the arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.model.documents.scaling import BusbwBound
from linkgauge.model.grouped import grouped, tabled
from linkgauge.model.units import BANDWIDTH, count_of, unit_of
from linkgauge.report.blocks import Block, Column, Entry, Prose, Span, line, plain
from linkgauge.report.results import figure, folded, table

from .expecting import ExpectedBusbw, ExpectedFigure, ExpectedMachine


def blocks(expected: ExpectedMachine) -> Iterator[Block]:
    there = ", ".join(f"{count} x {model}" for model, count in expected.devices.items())
    what = expected.name or "this machine"
    devices = "" if there == what else f" ({there or 'no accelerator'})"
    title = f"What {what}{devices} should reach"
    yield Prose([line(Span(title, "strong"), ", by arithmetic: nothing was measured")])
    groups = grouped((_shown(one), one) for one in expected.figures)
    heads = (Column("reach", True), Column("limit", True), "unit", "benchmarks, arithmetic")
    yield table("", heads, (row for shown, some in groups.items() for row in _rows(shown, some)))
    yield from _by_count(expected)
    unknown = grouped((because, name) for name, because in expected.without.items())
    reasons = ((why.removeprefix("unknown: "), folded(names)) for why, names in unknown.items())
    yield Prose([plain(f"no expected figure ({why}): {', '.join(of)}") for why, of in reasons])


def _shown(one: ExpectedFigure) -> tuple[str, str, str, str]:
    reach, limit = (figure(rate, one.unit).text for rate in (one.achievable, one.theoretical))
    return reach, limit, unit_of(one.unit).shown, one.because


def _rows(shown: Sequence[str], some: Sequence[ExpectedFigure]) -> Iterator[Sequence[Entry]]:
    *figures, because = shown
    names = folded(one.benchmark for one in some if one.cells == one.of)
    of_some = (one for one in some if one.cells < one.of)
    names += [f"{one.benchmark} ({one.cells} of {one.of}: {one.first} …)" for one in of_some]
    yield (*map(Entry, figures), Entry(", ".join(names), tone="strong"))
    yield (*(Entry("") for _ in figures), Entry(because, tone="dim"))


def _by_count(expected: ExpectedMachine) -> Iterator[Block]:
    counts = sorted({(one.hosts, one.devices) for one in expected.collectives})
    bounds = tabled((o.collective, (o.hosts, o.devices), o.bound) for o in expected.collectives)
    equivalent = grouped(
        (tuple(_busbw(some.get(count)) for count in counts), name) for name, some in bounds.items()
    )
    if counts:
        heads = [Column(_counted(*count), True) for count in counts]
        rows = [(*figures, ", ".join(names)) for figures, names in equivalent.items()]
        ways = grouped((_way(one.bound), one.bound) for one in expected.collectives)
        lines = [plain(some[0].because, "dim") for some in ways.values()]
        shown = table("", (*heads, "busbw of large calls (GB/s)"), rows)
        yield shown._replace(lines=lines)
        yield Prose([plain(_published(one)) for one in expected.collectives if one.published])


def _counted(hosts: int, devices: int) -> str:
    each = devices // hosts
    return f"{hosts} hosts x {each}" if hosts > 1 else count_of(devices, "device")


def _published(one: ExpectedBusbw) -> str:
    largest = ((*[*each.reached.items()][-1], each) for each in one.published)
    said = (f"{rate:g} GB/s at {size} by {each.algorithm} ({each.source})"
            for size, rate, each in largest)  # fmt: skip
    return f"published: {one.collective}, {_counted(one.hosts, one.devices)}: {'; '.join(said)}"


def _busbw(bound: BusbwBound | None) -> str:
    if bound is None or bound.figure is None:
        return ""
    is_limit = bound.achievable is None
    return f"{'<' if is_limit else ''}{figure(bound.figure, BANDWIDTH.symbol).text}"


def _way(bound: BusbwBound) -> str:
    return bound.because.partition(": ")[2] or bound.because
