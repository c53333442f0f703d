"""Blocks on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from linkgauge.report.blocks import (
    Attachments,
    Block,
    Code,
    Column,
    Entry,
    Figure,
    Heat,
    Line,
    Picture,
    Problem,
    Prose,
    Table,
    Tiles,
    Tone,
)
from linkgauge.report.remedies import Command
from linkgauge.report.wrapping import Hanging

from .columns import Columns, Printed
from .steps import Block as Steps

STYLES: Mapping[Tone, str] = {
    "": "",
    "bad": "bold red",
    "warn": "yellow",
    "good": "green",
    "simulated": "bold magenta",
    "dim": "dim",
    "name": "cyan",
    "strong": "bold",
}
INDENT = 4
"""Columns before what goes on of a line, and before what is said of a problem."""
LABEL = 11
"""Columns of what names a line of the verdict, such as `do first:`."""
_ALOOF = (Table, Heat, Picture, Code)
"""With blank lines around them."""


def shown(blocks: Iterable[Block]) -> Iterator[RenderableType]:
    """What a console prints of them, one below the other."""
    before: Block | None = None
    is_blank = True
    for block in blocks:
        if _is_empty(block):
            continue
        if isinstance(before, _ALOOF) or isinstance(block, _ALOOF):
            yield from () if is_blank else (Text(),)
            is_blank = True
        for line in _lines(block):
            blank = isinstance(line, Hanging) and not line.text
            if not (blank and is_blank):
                yield line
            is_blank = blank
        before = block


def print_blocks(console: Console, blocks: Iterable[Block]) -> None:
    for line in shown(blocks):
        console.print(line)


def _is_empty(block: Block) -> bool:
    if isinstance(block, Table):
        return not block.columns
    return isinstance(block, Prose) and not block.lines


def styled(line: Line) -> Text:
    """A line in colours."""
    return Text.assemble(*((span.text, STYLES[span.tone]) for span in line))


def _lines(block: Block) -> Iterator[RenderableType]:
    match block:
        case Prose():
            yield from map(_hanging, block.lines)
        case Problem():
            yield from _verdict(block) if block.first else _problem(block)
        case Tiles():
            yield _hanging(block.as_line)
        case Table():
            yield from _table(block)
        case Heat():
            yield from _heat(block)
        case Figure():
            yield from map(_hanging, block.lines)
        case Picture():
            yield from _table(block.table)
            yield from map(_hanging, block.lines)
        case Code():
            yield from (styled(block.caption), *map(Text, block.lines))
        case Attachments():
            return
        case _:
            yield block


def _hanging(line: Line) -> Hanging:
    return Hanging(styled(line), INDENT)


def _table(table: Table) -> Iterator[RenderableType]:
    rows = table.rows if table.few is None else table.rows[: table.few]
    branches = _branches([name.depth for name, *_ in rows])
    entries = [
        [Printed(branch + name.text, STYLES[name.tone]), *map(_printed, others)]
        for branch, (name, *others) in zip(branches, rows, strict=True)
    ]
    yield Columns(styled(table.caption), table.columns, entries)
    if len(rows) < len(table.rows):
        yield Text(f"and {len(table.rows) - len(rows)} more: {table.rest}", "dim")
    yield from map(_hanging, table.lines)


def _branches(depths: Sequence[int]) -> list[str]:
    """What joins each row of a tree to the row that it is below."""
    found: list[str] = []
    goes_on: set[int] = set()
    for depth in reversed(depths):
        above = "".join("│  " if step in goes_on else "   " for step in range(1, depth))
        found.append(above + ("├─ " if depth in goes_on else "└─ ") if depth else "")
        goes_on = {step for step in goes_on if step < depth} | {depth}
    return found[::-1]


def _printed(entry: Entry) -> Printed:
    return Printed(entry.text, STYLES[entry.tone])


def _heat(heat: Heat) -> Iterator[RenderableType]:
    yield _hanging(heat.title)
    signs = max((len(s.sign) for row in heat.shades for s in row if s is not None), default=0)
    heads = [Column(heat.corner), *(Column(name + " " * signs, True) for name in heat.columns)]
    rows = [
        [
            Printed(name, "cyan"),
            *(
                Printed("·" + " " * signs, "dim")
                if shade is None
                else Printed(f"{shade.text}{shade.sign:<{signs}}", STYLES[shade.tone])
                for shade in row
            ),
        ]
        for name, row in zip(heat.rows, heat.shades, strict=True)
    ]
    yield Columns(Text(heat.caption), heads, rows, even=True)
    yield from map(_hanging, heat.lines)


def _problem(one: Problem) -> Iterator[RenderableType]:
    """`warn link  sim:0: …`, and below it all that is said of it."""
    subject = (f" {one.subject}: ", "bold") if one.subject else ""
    word = (one.severity, STYLES[one.tone])
    yield Hanging(Text.assemble(word, subject, styled(one.found)), INDENT)
    for name, line in one.said:
        yield Hanging(Text.assemble((f"    {name}: ", "dim"), styled(line)), 2 * INDENT)
    label = Text(f"    {one.do}:", "dim")
    if len(one.steps) == 1 and isinstance(one.steps[0], Command):
        yield Steps(one.steps, len(label) + 1, label)
    elif one.steps:
        yield label
        yield Steps(one.steps, INDENT)


def _verdict(one: Problem) -> Iterator[RenderableType]:
    """The same with a name before each line."""
    subject = (f" {one.subject}", "bold") if one.subject else ""
    word = Text.assemble((one.severity, STYLES[one.tone]), subject, ": " if one.severity else "")
    if one.severity or one.found:
        yield named("verdict", word.append_text(styled(one.found)))
    for name, line in one.said:
        yield named(name, styled(line))
    if one.steps:
        yield Steps(one.steps, LABEL, _label(one.do))
    for name, line in one.last:
        yield named(name, styled(line))


def named(name: str, text: Text) -> Hanging:
    """A line of the verdict, behind its name."""
    label = _label(name)
    return Hanging(Text.assemble(label, " " * (LABEL - len(label)), text), LABEL)


def _label(name: str) -> Text:
    return Text(f"{name}:" if name else "", "bold")
