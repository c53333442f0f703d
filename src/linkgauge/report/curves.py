"""Makes curves of figures by size, count or time, and charts of these curves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import TypeVar

from linkgauge.model.cell_id import bytes_of
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.grouped import grouped, tabled
from linkgauge.model.operations.busbw import bandwidths
from linkgauge.model.operations.collective import Collective
from linkgauge.model.units import Unit, format_size

from . import chart_specs
from .blocks import ChartFigure, Column, Entry, Table, plain
from .chart_specs import Spec
from .forms import cells_of
from .results import label, title_of

MOST_ROWS = 200
EXTREMES: dict[str, Callable[[list[float]], float]] = {
    "lowest": min,
    "median": median,
    "highest": max,
}

At = TypeVar("At", bound=Hashable)
Curves = dict[str, dict[int, float]]
"""Figures by size, or by number, for each path."""


def curves_of(results: Iterable[Result]) -> Curves:
    """Returns each curve's figures by size. Of several figures for a size, the last one counts."""
    return tabled(
        (name, size, figure)
        for result, cell in cells_of(results)
        for name, figure in [_figure(cell)]
        if (size := bytes_of(cell, result.size)) is not None and figure is not None
    )


def _figure(cell: CellResult) -> tuple[str, float | None]:
    if isinstance(cell.operation, Collective):
        own = bandwidths(cell) if cell.status == "pass" else None
        return f"{cell.row}, {len(cell.transfers)} devices", None if own is None else own.bus
    return cell.row if cell.does.of_sizes else ", ".join(cell.place), cell.headline


def extremes(curves: Mapping[str, Mapping[At, float]]) -> dict[str, dict[At, float]]:
    figures = grouped(each for curve in curves.values() for each in curve.items())
    return {word: {at: of(own) for at, own in figures.items()} for word, of in EXTREMES.items()}


def chart(
    title: str, curves: Curves, unit: Unit, define: Callable[..., Spec], x: str = ""
) -> ChartFigure:
    """Makes a chart with `define(y=axis title)`. If `x` is empty, the other axis shows sizes."""
    rows = [
        {
            "x": at, "y": float(f"{value / unit.scale:.5g}"), "series": label(name),
            "says": f"{label(name)}, {at if x else format_size(at)}: "
            f"{value / unit.scale:.4g} {unit.shown}",
        }
        for name, curve in curves.items()
        for at, value in sorted(curve.items())
    ]  # fmt: skip
    y, title = f"{unit.quantity} ({unit.shown})", title_of(title)
    return ChartFigure(title, title, define(y=y), rows, pivot(y, x, rows))


def over_time(
    title: str, y: str, curves: Mapping[str, Iterable[tuple[float, float]]], x: str = ""
) -> Iterator[ChartFigure]:
    rows: list[dict[str, object]] = [
        {"x": round(at, 3), "y": round(value, 3), "series": name}
        for name, curve in curves.items()
        for at, value in curve
    ]
    if rows:
        spec = chart_specs.over_time(y, x or chart_specs.OVER_TIME)
        yield ChartFigure(title, title, spec, rows, pivot(y, x or "seconds", rows[:MOST_ROWS]))


def pivot(caption: str, across: str, rows: Sequence[Mapping[str, object]]) -> Table:
    series = list(dict.fromkeys(str(row["series"]) for row in rows))
    by = tabled((float(str(o["x"])), str(o["series"]), float(str(o["y"]))) for o in rows)
    lines = [
        (
            Entry(f"{x:g}" if across else format_size(round(x)), x),
            *(Entry(f"{own[one]:.4g}", own[one]) if one in own else Entry("") for one in series),
        )
        for x, own in sorted(by.items())
    ]
    heads = (Column(across or "size", True), *(Column(one, True) for one in series))
    return Table(plain(caption), heads, lines)
