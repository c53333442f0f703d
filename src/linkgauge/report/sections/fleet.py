"""Shows nodes that should be equivalent, one in each row. Nodes that differ come first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from msgspec.structs import asdict

from linkgauge.judge.compare.fleet import LEAST, SCHEMA, Distance, Fleet, FleetColumn, Kind, Node
from linkgauge.model.units import count_of, format_size, unit_of
from linkgauge.report.blocks import (
    TONES,
    Block,
    Column,
    Entry,
    Line,
    Prose,
    Span,
    Table,
    cut,
    line,
    plain,
)
from linkgauge.report.csv_text import csv_text
from linkgauge.report.files import json_document
from linkgauge.report.results import label, mark
from linkgauge.report.words.figures import digits, signed

_FEW, _MOST = 12, 40
"""The rows of a terminal: of so few nodes all are shown, of more those that something is said of,
up to the most."""
_CAUSE = 70
_SHORT: Mapping[Kind, str] = {
    "between devices": "D2D", "copies with the host": "with host", "collectives": "coll.",
    "latencies": "latency", "within a device": "within", "host": "host", "work": "work",
}  # fmt: skip


def fleet_blocks(fleets: Sequence[Fleet]) -> Iterator[Block]:
    for fleet in fleets:
        yield Prose([_head(fleet)])
        yield _table(fleet)


def _head(fleet: Fleet) -> Line:
    nodes, odd = len(fleet.nodes), fleet.odd
    others = nodes - odd - fleet.equivalent
    said = Span(f", {odd} odd" if odd else ", none odd", "bad" if odd else "good")
    if nodes < LEAST:
        said = Span(f", too few to say which is odd (from {LEAST} on)", "dim")
    own = Span(f", {others} with findings of their own" if others else "", "warn")
    count = f": {count_of(nodes, 'node')}, {fleet.equivalent} alike"
    return line(Span(label(fleet.name), "strong"), count, said, own, mark(fleet.simulated))


def _table(fleet: Fleet) -> Table:
    columns = (
        Column("node"), Column("verdict"), Column("unlike the others"),
        *(Column(f"{one.kind} ({unit_of(one.unit).shown})", True, 1 + at, _SHORT[one.kind])
          for at, one in enumerate(fleet.columns)),
        Column("first finding of its run"),
    )  # fmt: skip
    usual = (
        Entry("usual", tone="strong"), Entry(""), Entry(""),
        *(Entry(_shown(one.usual, one), one.usual) for one in fleet.columns), Entry(""),
    )  # fmt: skip
    rows = [usual, *(_row(node, fleet.columns) for node in fleet.nodes)]
    some = sum(not node.is_equivalent for node in fleet.nodes)
    few = 1 + (len(fleet.nodes) if len(fleet.nodes) <= _FEW else min(some, _MOST))
    tables = ", ".join(map(_table_of, fleet.columns))
    below = plain(f"figures are each node's worst of {tables}; usual: their median", "dim")
    return Table(
        (), columns, rows, sortable=True, lines=[below] if fleet.columns else [], few=few,
        rest="report and --json have all",
    )  # fmt: skip


def _table_of(column: FleetColumn) -> str:
    size = f" {format_size(column.size)}" if column.size > 1 else ""
    return f"{column.benchmark}{size}"


def _row(node: Node, columns: Sequence[FleetColumn]) -> tuple[Entry, ...]:
    figures = zip(node.figures, columns, strict=True)
    return (
        Entry(label(node.name), tone="strong"),
        Entry(node.verdict, tone=TONES.get(node.verdict, "warn")),
        Entry(unlike(node), tone="bad" if node.is_odd else ""),
        *(_entry(figure, column, node) for figure, column in figures),
        Entry(cut(node.cause, _CAUSE)),
    )


def _entry(figure: float | None, column: FleetColumn, node: Node) -> Entry:
    if figure is None:
        return Entry("-")
    by = "" if node.is_equivalent else f" {signed(figure / column.usual)}"
    is_apart = node.is_odd and node.farthest is not None and node.farthest.kind == column.kind
    return Entry(f"{_shown(figure, column)}{by}", figure, "bad" if is_apart else "")


def _shown(figure: float, column: FleetColumn) -> str:
    return digits(figure / unit_of(column.unit).scale)


def unlike(node: Node) -> str:
    """Formats how a node differs: `sim:5, between devices: -10.0%`, or returns an empty text."""
    lacks = f"{count_of(node.missing, 'figure')} missing" if node.missing else ""
    of = node.farthest
    return "; ".join(filter(None, (_distance(of) if of is not None and of.is_odd else "", lacks)))


def _distance(of: Distance) -> str:
    slow = ", slowest 1%" if of.statistic == "slow_p99" else ""
    return f"{f'{of.part}, ' if of.part else ''}{of.kind}{slow}: {signed(of.ratio)}"


def fleet_json(fleets: Sequence[Fleet]) -> str:
    return json_document({"schema": SCHEMA, "fleets": [_document(one) for one in fleets]})


def _document(fleet: Fleet) -> dict[str, object]:
    counts = {"alike": fleet.equivalent, "odd": fleet.odd}
    nodes = [{"is_odd": node.is_odd, "is_alike": node.is_equivalent, **asdict(node)}
             for node in fleet.nodes]  # fmt: skip
    return {"name": fleet.name, "simulated": fleet.simulated, **counts,
            "columns": fleet.columns, "nodes": nodes}  # fmt: skip


_DISTANCE = ("kind", "statistic", "part", "ratio", "times", "p")
_OF_NODE = ("name", "host", "label", "started", "verdict", "exit_code", "missing")


def fleet_csv(fleets: Sequence[Fleet]) -> str:
    """Returns CSV with a line for each node and column, in base units."""
    of_column = ("kind", "benchmark", "size", "unit", "better", "usual")
    farthest = (f"farthest_{name}" for name in _DISTANCE)
    heads = ("fleet", *_OF_NODE, "odd", *farthest, "cause", *of_column)
    rows = (
        (
            fleet.name, *attrgetter(*_OF_NODE)(node), int(node.is_odd),
            *(getattr(node.farthest, name, None) for name in _DISTANCE), node.cause,
            *attrgetter(*of_column)(column), figure, fleet.simulated,
        )
        for fleet in fleets
        for node in fleet.nodes
        for column, figure in zip(fleet.columns, node.figures, strict=True)
    )  # fmt: skip
    return csv_text(((*heads, "figure", "simulated"), *rows))
