"""A report as PDF, set by typst: the page's blocks as data, which files/page.typ lays out."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from linkgauge.machine.extras import needed
from linkgauge.model.errors import ResultsError
from linkgauge.model.printable import all_printable
from linkgauge.report.blocks import (
    Block,
    Code,
    Figure,
    Heat,
    Line,
    Page,
    Picture,
    Problem,
    Prose,
    Shade,
    Table,
    Tiles,
    cut,
    line,
)
from linkgauge.report.charts import EXTRA
from linkgauge.report.remedies import Command, Step, WrittenFile

from .drawing import Drawer
from .picture import alone, svg_of

MOST_TEXT = 1500
"""Characters of one text."""
MOST_ROWS = 120
"""Of one table: paper has no scroll bars, and the page has the rest."""
MOST_COLUMNS = 72
WIDE = 900
"""Pixels of a picture of a machine: on paper its letters are then large enough."""
_DATA = "data.json"


def pdf_of(page: Page, drawer: Drawer) -> bytes:
    """The page as a document. Raises MissingPackage without typst."""
    typst = needed("typst", EXTRA)
    figures = [one for part in page.parts for one in part.blocks if isinstance(one, Figure)]
    drawn = drawer.draw(figures)
    pictures = {id(one): f"chart{at}.svg" for at, one in enumerate(figures) if drawn[at]}
    machines = [one for part in page.parts for one in part.blocks if isinstance(one, Picture)]
    pictures |= {id(one): f"machine{at}.svg" for at, one in enumerate(machines)}
    data = {
        "title": page.title,
        "simulated": page.simulated,
        "missing": drawer.missing if figures else None,
        "under": [_line(each) for each in page.under],
        "parts": [
            {
                "title": part.title,
                "blocks": [found for one in part.blocks if (found := _block(one, pictures))],
            }
            for part in page.parts
        ],
    }
    sources = {
        "main": files(__package__).joinpath("files", "page.typ").read_bytes(),
        _DATA: json.dumps(all_printable(data)).encode(),
    }
    for figure, svg in zip(figures, drawn, strict=True):
        if svg:
            sources[pictures[id(figure)]] = svg.encode()
    for machine in machines:
        sources[pictures[id(machine)]] = alone(svg_of(machine, WIDE)).encode()
    try:
        made: bytes = typst.compile(sources, format="pdf")
    except RuntimeError as error:
        raise ResultsError(f"typst cannot set the report: {str(error)[:200]}") from error
    return made


def _text(text: str) -> str:
    return cut(text, MOST_TEXT)


def _line(spans: Line) -> list[list[str]]:
    return [[_text(span.text), span.tone] for span in spans]


def _block(block: Block, pictures: dict[int, str]) -> dict[str, Any] | None:
    match block:
        case Prose():
            return {"kind": "prose", "lines": [_line(each) for each in block.lines]}
        case Problem():
            return _problem(block)
        case Tiles():
            tiles = [[tile.number, tile.name, tile.tone] for tile in block.tiles if tile.name]
            return {"kind": "tiles", "tiles": tiles}
        case Table():
            return _table(block)
        case Heat():
            return _heat(block)
        case Figure() | Picture():
            table = None if id(block) in pictures else _table(block.table)
            return {
                "kind": "figure", "title": _text(block.title), "alt": _text(block.says),
                "picture": pictures.get(id(block)), "table": table,
                "lines": [_line(each) for each in block.lines],
            }  # fmt: skip
        case Code():
            return {"kind": "code", "caption": _line(block.caption), "text": "\n".join(block.lines)}
    return None  # files are attached to the page


def _problem(one: Problem) -> dict[str, Any]:
    return {
        "kind": "problem",
        "severity": one.severity,
        "tone": one.tone,
        "subject": _text(one.subject),
        "found": _line(one.found),
        "said": [[name, _line(each)] for name, each in (*one.said, *one.last)],
        "steps": [_step(step) for step in one.steps],
        "do": _text(one.do),
        "first": one.first,
    }


def _step(step: Step) -> list[str]:
    match step:
        case Command():
            comment = f"  # {step.comment}" if step.comment else ""
            return ["command", _text(f"{step.line}{comment}")]
        case WrittenFile():
            return ["command", *map(_text, (f"# {step.path}", *step.lines))]
    return ["prose", _text(step.text)]


def _table(one: Table) -> dict[str, Any]:
    left = len(one.rows) - MOST_ROWS
    more = f" ({left:,} more rows: see the HTML report)" if left > 0 else ""
    return {
        "kind": "table",
        "caption": _line(line(*one.caption, more)),
        "columns": [[_text(head.name), head.figures] for head in one.columns],
        "rows": [[[e.depth, _text(e.text), e.tone] for e in row] for row in one.rows[:MOST_ROWS]],
        "lines": [_line(each) for each in one.lines],
    }


def _heat(one: Heat) -> dict[str, Any]:
    left = max(len(one.rows) - MOST_ROWS, len(one.columns) - MOST_COLUMNS)
    more = " (cut: see the HTML report)" if left > 0 else ""
    return {
        "kind": "heat",
        "title": _line(one.title),
        "caption": _line(line(one.caption, more)),
        "columns": [cut(head, 40) for head in one.columns[:MOST_COLUMNS]],
        "rows": [cut(name, 60) for name in one.rows[:MOST_ROWS]],
        "shades": [
            [_shade(shade, one.is_dense) for shade in row[:MOST_COLUMNS]]
            for row in one.shades[:MOST_ROWS]
        ],
        "lines": [_line(each) for each in one.lines],
    }


def _shade(shade: Shade | None, dense: bool) -> list[str] | None:
    if shade is None:
        return None
    return [
        f"{shade.text}{shade.sign}",
        "" if dense else shade.share,
        shade.kind,
    ]
