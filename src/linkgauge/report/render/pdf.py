"""Writes a report as PDF by typst: files/page.typ lays out the blocks, which it gets as data."""

from __future__ import annotations

import json
from typing import Any

from linkgauge.machine.extras import needed
from linkgauge.model.errors import ResultsError
from linkgauge.model.printable import all_printable
from linkgauge.report.blocks import ChartFigure, Heat, Page, Picture, Table, cut, line
from linkgauge.report.charts import EXTRA
from linkgauge.report.words.remedies import Command, RemedyText, Step, WrittenFile

from .drawing import Drawer
from .picture import alone, file_of, svg_of

MOST_TEXT = 1500
MOST_ROWS = 120
"""Paper has no scroll bars, and the page has all rows."""
MOST_COLUMNS = 72
_DRAWN = (ChartFigure.__name__, Picture.__name__)
WIDE = 900
"""In pixels: letters are large enough on paper then."""
_DATA = "data.json"


def pdf_of(page: Page, drawer: Drawer) -> bytes:
    """Returns the PDF. Raises MissingPackage without typst, ResultsError if typst fails."""
    typst = needed("typst", EXTRA)
    blocks = [one for part in page.parts for one in part.blocks]
    charts = [one for one in blocks if isinstance(one, ChartFigure)]
    made_of = iter(drawer.draw(charts))
    drawn = [
        alone(svg_of(one, WIDE)) if isinstance(one, Picture) else next(made_of)
        for one in blocks if isinstance(one, ChartFigure | Picture)
    ]  # fmt: skip
    names = [f"chart{at}.svg" if svg else None for at, svg in enumerate(drawn)]
    data = _data(page)
    shown = (one for part in data["parts"] for one in part["blocks"] if one["kind"] in _DRAWN)
    for one, name in zip(shown, names, strict=True):
        one["picture"] = name
    data["missing"] = drawer.missing if charts else None
    sources = {
        "main": file_of("page.typ").encode(),
        _DATA: json.dumps(all_printable(data)).encode(),
        **{name: svg.encode() for name, svg in zip(names, drawn, strict=True) if name and svg},
    }
    try:
        made: bytes = typst.compile(sources, format="pdf")
    except RuntimeError as error:
        raise ResultsError(f"typst cannot set the report: {str(error)[:200]}") from error
    return made


def _data(value: Any) -> Any:
    match value:
        case str():
            return cut(value, MOST_TEXT)
        case Command() | WrittenFile() | RemedyText():
            return _step(value)
        case Table() | Heat() | ChartFigure() | Picture():
            value = _short(value)
    if hasattr(value, "_fields"):
        own = {name: _data(getattr(value, name)) for name in value._fields}
        return {"kind": type(value).__name__, **own}
    if isinstance(value, list | tuple):
        return list(map(_data, value))
    return value if isinstance(value, int | float) else None


def _short(one: Table | Heat | ChartFigure | Picture) -> Table | Heat | ChartFigure | Picture:
    if isinstance(one, ChartFigure):
        return one._replace(rows=())
    if isinstance(one, Picture):
        return one._replace(parts=(), links=())
    left = len(one.rows) - MOST_ROWS
    if isinstance(one, Table):
        more = f" ({left:,} more rows: see the HTML report)" if left > 0 else ""
        return one._replace(rows=one.rows[:MOST_ROWS], caption=line(*one.caption, more))
    is_cut = left > 0 or len(one.columns) > MOST_COLUMNS
    return one._replace(
        caption=f"{one.caption}{' (cut: see the HTML report)' if is_cut else ''}",
        columns=[cut(head, 40) for head in one.columns[:MOST_COLUMNS]],
        rows=[cut(name, 60) for name in one.rows[:MOST_ROWS]],
        shades=[row[:MOST_COLUMNS] for row in one.shades[:MOST_ROWS]],
    )


def _step(step: Step) -> list[str]:
    match step:
        case Command():
            comment = f"  # {step.comment}" if step.comment else ""
            return ["command", cut(f"{step.line}{comment}", MOST_TEXT)]
        case WrittenFile():
            return ["command", *(cut(each, MOST_TEXT) for each in (f"# {step.path}", *step.lines))]
    return ["prose", cut(step.text, MOST_TEXT)]
