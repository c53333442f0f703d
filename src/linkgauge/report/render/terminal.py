"""Shows blocks on a terminal. Columns are as wide as their texts, if the terminal has room."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

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
    Table,
    Tiles,
    Tone,
)
from linkgauge.report.console import Hanging
from linkgauge.report.words.remedies import Command, RemedyText, Step

# Columns of texts as wide as they need to be, as far as a console has room for them.

GAP = 2
LEAST_NAME = 4
SHORT_NAME = 20
LEAST_PROSE = 24
"""With less space, a text goes below its row."""
BELOW = 4


class _Set(NamedTuple):
    head: Column
    name: str
    entries: Sequence[Entry]
    width: int

    def padded(self, text: str) -> str:
        room = " " * (self.width - cell_len(text))
        return room + text if self.head.figures else text + room


@dataclass(frozen=True)
class Columns:
    """A table. A short `caption` becomes the head of the first column. If `even`, all other columns
    are equally wide. If the table is too wide, heads become short; then columns are left out; then
    long names get separate lines; and at last the table is split into blocks."""

    caption: Text
    columns: Sequence[Column]
    rows: Sequence[Sequence[Entry]]
    even: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        names, *others = self._sets(short=False)
        title = self.caption
        if len(title) > max(names.width, 0 if names.name else SHORT_NAME):
            yield Hanging(title, BELOW)
            title = Text()
        label = max(names.width, len(title))
        if _wide(others) > width - label:
            _, *others = self._sets(short=True)
        shown = _fitting(others, width - label)
        prose, wide = _prose_of(shown), _wide(shown)
        widest = max((GAP + one.width for one in shown if one is not prose), default=0)
        if label + (wide if label > SHORT_NAME else widest) > width:
            label = max(LEAST_NAME, width - wide)
        for some in _blocks(shown, prose, width - label):
            head = title or Text(names.name, "cyan")
            yield from self._block(head, names, some, prose, (label, width))
            title = Text()

    def _sets(self, *, short: bool) -> list[_Set]:
        found = []
        for at, head in enumerate(self.columns):
            entries = [row[at] for row in self.rows]
            if at and not any(entry.text for entry in entries):
                continue
            name = head.short if short and head.short else head.name
            wide = entries if at else [row[0] for row in self.rows if any(r.text for r in row[1:])]
            width = max(cell_len(name), *(cell_len(one.text) for one in wide), 0)
            found.append(_Set(head, name, entries, width))
        if self.even:
            widest = max((one.width for one in found[1:]), default=0)
            found[1:] = [one._replace(width=widest) for one in found[1:]]
        return found

    def _block(
        self, title: Text, names: _Set, some: Sequence[_Set], prose: _Set | None,
        widths: tuple[int, int],
    ) -> Iterator[Text | Hanging]:  # fmt: skip
        label, width = widths
        heads = Text()
        for one in some:
            if one is not prose or label + len(heads) + GAP + cell_len(one.name) <= width:
                heads.append(" " * GAP).append(one.padded(one.name), "cyan")
        yield from _line(title, heads, label)
        for number, name in enumerate(names.entries):
            figures = Text()
            for one in some:
                if one is not prose:
                    entry = one.entries[number]
                    figures.append(" " * GAP).append(one.padded(entry.text), STYLES[entry.tone])
            said = _text(
                prose.entries[number] if prose is not None and prose in some else Entry("")
            )
            room, own = width - label - len(figures) - GAP, _text(name)
            if not said or said.cell_len <= room:
                figures.append(" " * GAP).append_text(said)
                yield from _line(own, figures, label)
            elif room >= max(LEAST_PROSE, *map(cell_len, said.plain.split())):
                start = label + len(figures) + GAP
                own.pad_right(label - len(own))
                yield Hanging(Text.assemble(own, figures, " " * GAP, said), start)
            else:
                yield from _line(own, figures, label)
                yield Hanging(Text.assemble(" " * BELOW, said), BELOW)


def _text(entry: Entry) -> Text:
    return Text(entry.text, STYLES[entry.tone])


def _fitting(columns: Sequence[_Set], room: int) -> list[_Set]:
    shown = list(columns)
    while _wide(shown) > room:
        worst = max(shown, key=lambda one: one.head.rank, default=None)
        if worst is None or not worst.head.rank:
            break
        shown.remove(worst)
    return shown


def _wide(columns: Sequence[_Set]) -> int:
    prose = _prose_of(columns)
    return sum(GAP + one.width for one in columns if one is not prose)


def _prose_of(columns: Sequence[_Set]) -> _Set | None:
    last = columns[-1] if columns else None
    wraps = last is not None and not last.head.figures and not last.head.rank
    return last if wraps else None


def _blocks(shown: Sequence[_Set], prose: _Set | None, room: int) -> Iterator[list[_Set]]:
    figures = [one for one in shown if one is not prose]
    wide = [GAP + one.width for one in figures]
    count = max(1, -(-sum(wide) // max(1, room)))
    each = max(1, -(-len(figures) // count))
    while each > 1 and any(sum(wide[at : at + each]) > room for at in range(0, len(wide), each)):
        each -= 1
    starts = range(0, max(1, len(figures)), each)
    for at in starts:
        yield [*figures[at : at + each], *([prose] if prose and at == starts[-1] else [])]


def _line(name: Text, figures: Text, label: int) -> Iterator[Text | Hanging]:
    if cell_len(name.plain) > label:
        yield Hanging(name, GAP)
        if not figures.plain.strip():
            return
        name = Text()
    line = Text.assemble(name, " " * (label - cell_len(name.plain)), figures)
    line.rstrip()
    yield line


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
LABEL = 11
_ALOOF = (Table, Heat, Picture, Code)
"""Blank lines stand around these."""


def shown(blocks: Iterable[Block]) -> Iterator[RenderableType]:
    before: Block | None = None
    is_blank = True
    for block in blocks:
        is_empty = isinstance(block, Prose) and not block.lines
        if is_empty or (isinstance(block, Table) and not block.columns):
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


def styled(line: Line) -> Text:
    text = Text()
    for span in line:
        text.append(span.text, STYLES[span.tone])
    return text


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
        case ChartFigure():
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
        [name._replace(text=branch + name.text), *others]
        for branch, (name, *others) in zip(branches, rows, strict=True)
    ]
    yield Columns(styled(table.caption), table.columns, entries)
    if len(rows) < len(table.rows):
        yield Text(f"and {len(table.rows) - len(rows)} more: {table.rest}", "dim")
    yield from map(_hanging, table.lines)


def _branches(depths: Sequence[int]) -> list[str]:
    found: list[str] = []
    goes_on: set[int] = set()
    for depth in reversed(depths):
        above = "".join("│  " if step in goes_on else "   " for step in range(1, depth))
        found.append(above + ("├─ " if depth in goes_on else "└─ ") if depth else "")
        goes_on = {step for step in goes_on if step < depth} | {depth}
    return found[::-1]


_NOTHING = Shade("·", "dim")


def _heat(heat: Heat) -> Iterator[RenderableType]:
    yield _hanging(heat.title)
    signs = max((len(s.sign) for row in heat.shades for s in row if s is not None), default=0)
    heads = [Column(heat.corner), *(Column(name + " " * signs, True) for name in heat.columns)]
    rows = []
    for name, shades in zip(heat.rows, heat.shades, strict=True):
        row = [Entry(name, tone="name")]
        for shade in shades:
            shown = shade or _NOTHING
            row.append(Entry(f"{shown.text}{shown.sign:<{signs}}", tone=shown.tone))
        rows.append(row)
    yield Columns(Text(heat.caption), heads, rows, even=True)
    yield from map(_hanging, heat.lines)


def _problem(one: Problem) -> Iterator[RenderableType]:
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
    label = _label(name)
    return Hanging(Text.assemble(label, " " * max(1, LABEL - len(label)), text), LABEL)


def _label(name: str) -> Text:
    return Text(f"{name}:" if name else "", "bold")


@dataclass(frozen=True)
class Steps:
    """A remedy's steps, as text to paste into a shell: prose and files become comments."""

    steps: Sequence[Step]
    indent: int
    label: Text = field(default_factory=Text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        before = self.label
        for step in self.steps:
            for line in _step_lines(step, options.max_width - self.indent):
                padding = " " * (self.indent - len(before))
                yield Text.assemble(before, padding, line) if line else Text()
                before = Text()


def _step_lines(step: Step, room: int) -> Iterator[Text]:
    if isinstance(step, RemedyText):
        yield from _comment_lines(step.text, room)
    elif isinstance(step, Command):
        yield from _command_lines(step, room)
    else:
        yield from (Text(f"#     {line}".rstrip(), "dim") for line in step.lines)


def _comment_lines(text: str, room: int) -> Iterator[Text]:
    lines = textwrap.wrap(text, max(1, room - 2), break_long_words=False, break_on_hyphens=False)
    yield from (Text(f"# {line}", "dim") for line in lines)


def _command_lines(step: Command, room: int) -> Iterator[Text]:
    said = f"  # {step.comment}" if step.comment else ""
    if cell_len(step.line + said) <= room:
        yield Text(step.line).append(said, "dim")
        return
    if said:
        yield from _comment_lines(step.comment, room)
    first, *words = step.words
    lines = [first]
    for number, word in enumerate(words, 1):
        longer, end = f"{lines[-1]} {word}", " \\" if number < len(words) else ""
        if cell_len(longer + end) > room:
            lines.append(f"  {word}")
        else:
            lines[-1] = longer
    yield from (Text(f"{line} \\") for line in lines[:-1])
    yield Text(lines[-1])
