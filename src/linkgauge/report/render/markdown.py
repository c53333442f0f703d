"""Renders blocks as GitHub's Markdown, for an issue, a merge request or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from linkgauge.model.printable import printable
from linkgauge.report.blocks import (
    Attachments,
    Block,
    ChartFigure,
    Code,
    Column,
    Entry,
    Heat,
    Line,
    Picture,
    Problem,
    Prose,
    Shade,
    ShownSection,
    Span,
    Table,
    Tiles,
    Tone,
)
from linkgauge.report.console import plain_lines
from linkgauge.report.results import without_empty

from .terminal import Steps

_LONGEST = 300
_MARKS = re.compile(r"[\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
"""Marks in the middle of a line; `_` within a word is none."""
_BOLD: frozenset[Tone] = frozenset({"bad", "simulated", "strong"})


def as_markdown(title: str, blocks: Iterable[Block | ShownSection]) -> str:
    lines = [f"# {plain(title)}"]
    for block in blocks:
        shown = [*_lines(block)]
        lines += ["", *shown] if shown else []
    return "\n".join((*lines, ""))


def _lines(block: Block | ShownSection) -> Iterator[str]:
    match block:
        case ShownSection():
            yield as_markdown(block.title, block.blocks).replace("# ", "## ", 1).rstrip()
        case Prose():
            yield from (f"{_begun(one)}  " for one in block.lines)
        case Problem():
            yield from _problem(block)
        case Tiles():
            yield _line(block.as_line)
        case Table():
            yield from _table(block)
        case Heat():
            yield from _table(_table_of(block))
        case ChartFigure() | Picture():
            titled = block.table._replace(caption=(Span(block.title, "strong"),), lines=block.lines)
            yield from _table(titled)
        case Code():
            yield from (_begun(block.caption), "", *_fenced(block.lines))
        case Attachments():
            yield ", ".join(plain(file.name) for file in block.files)


def _problem(one: Problem) -> Iterator[str]:
    verdict = "**verdict:** " if one.first else ""
    words = " ".join(filter(None, (_span(one.severity, "strong"), plain(one.subject))))
    yield f"- {verdict}{words}{': ' if words else ''}{_line(one.found)}"
    yield from _named(one.said)
    if one.steps:
        yield f"  - {plain(one.do)}:"
        steps = _fenced(plain_lines([Steps(one.steps, 0)]))
        yield from (f"    {line}" for line in ("", *steps))
    yield from _named(one.last)


def _named(lines: Sequence[tuple[str, Line]]) -> Iterator[str]:
    for name, text in lines:
        yield f"  - {plain(name)}{': ' if name else ''}{_line(text)}"


def _fenced(lines: Iterable[str]) -> list[str]:
    found = [printable(line) for line in lines]
    fence = "`" * (1 + max(map(len, re.findall(r"`{2,}", "\n".join(found))), default=2))
    return [fence, *found, fence]


def _table(table: Table) -> Iterator[str]:
    if table.says:
        yield from (_begun(table.caption), "")
    table = without_empty(table)
    yield _row(plain(head.name) for head in table.columns)
    yield _row("--:" if head.figures else "---" for head in table.columns)
    for row in table.rows:
        yield _row(_span(one.text, one.tone) for one in row)
    if table.lines:
        yield ""
        yield from (f"{_begun(one)}  " for one in table.lines)


def _table_of(heat: Heat) -> Table:
    heads = (Column(heat.corner), *(Column(name, True) for name in heat.columns))
    rows = [
        (Entry(name), *map(_place, row)) for name, row in zip(heat.rows, heat.shades, strict=True)
    ]
    return Table((*heat.title, Span(f": {heat.caption}")), heads, rows, lines=heat.lines)


def _place(shade: Shade | None) -> Entry:
    if shade is None:
        return Entry("·")
    return Entry(" ".join(filter(None, (f"{shade.text}{shade.sign}", shade.share))))


def _begun(line: Line) -> str:
    text = _line(line)
    return f"\\{text}" if text.startswith(("#", "+", "-")) else text


def _line(line: Line) -> str:
    return "".join(_span(*span) for span in line).strip()


def _span(text: str, tone: Tone) -> str:
    """Formats a text, bold for some tones. Moves blanks outside of Markdown's asterisks."""
    core = plain(text)
    before, after = (" " if text[at:][:1].isspace() else "" for at in (0, -1))
    mark = "**" if tone in _BOLD and core else ""
    return f"{before}{mark}{core}{mark}{after}" if core else before


def _row(fields: Iterable[str]) -> str:
    return f"| {' | '.join(fields)} |"


def plain(text: str) -> str:
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}…"
    text = printable(" ".join(text.split()))
    text = escape(_MARKS.sub(r"\\\g<0>", text), quote=False)
    return text.replace("://", "&#58;//").replace("www.", "www&#46;")  # which GitHub would link
