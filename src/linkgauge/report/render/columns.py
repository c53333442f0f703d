"""Columns of texts as wide as they need to be, as far as a console has room for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from linkgauge.report.blocks import Column
from linkgauge.report.wrapping import Hanging

GAP = 2
LEAST_NAME = 4
SHORT_NAME = 20
"""Columns of names that stay beside their figures, even if the table goes on below."""
LEAST_PROSE = 24
"""Columns of a text that is wrapped beside others; with less room it stands below them."""
BELOW = 4
"""Columns before what stands below the name of its row."""


class Printed(NamedTuple):
    """What stands in one place."""

    text: str
    style: str = ""


class _Set(NamedTuple):
    """A column with what stands in it."""

    head: Column
    name: str
    entries: Sequence[Printed]
    width: int

    def padded(self, text: str) -> str:
        room = " " * (self.width - cell_len(text))
        return room + text if self.head.figures else text + room


class Columns:
    """Rows below heads. The first column names the rows; the caption stands above the heads, or,
    if it is short enough, in the place of that of the names. Where there is no room, heads are
    short, then columns are left out, then long names and last texts stand on lines of their own,
    then the table goes on below with its other columns. With `even` all columns of figures are
    equally wide."""

    def __init__(
        self,
        caption: Text,
        columns: Sequence[Column],
        rows: Sequence[Sequence[Printed]],
        *,
        even: bool = False,
    ) -> None:
        self._caption, self._rows, self._even = caption, rows, even
        self._columns = columns

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        names, *others = self._sets(short=False)
        title = self._caption
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
        for at, head in enumerate(self._columns):
            entries = [row[at] for row in self._rows]
            if at and not any(entry.text for entry in entries):
                continue
            name = head.short if short and head.short else head.name
            wide = entries if at else [row[0] for row in self._rows if any(r.text for r in row[1:])]
            width = max(cell_len(name), *(cell_len(one.text) for one in wide), 0)
            found.append(_Set(head, name, entries, width))
        if self._even:
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
                    figures.append(" " * GAP).append(one.padded(entry.text), entry.style)
            said = prose.entries[number] if prose in some and prose is not None else Printed("")
            room = width - label - len(figures) - GAP
            text = Text(said.text, said.style)
            if not said.text or cell_len(said.text) <= room:
                figures.append(" " * GAP).append_text(text)
                yield from _line(Text(name.text, name.style), figures, label)
            elif room >= max(LEAST_PROSE, *map(cell_len, said.text.split())):
                start = label + len(figures) + GAP
                line = Text.assemble((name.text.ljust(label), name.style), figures, " " * GAP, text)
                yield Hanging(line, start)
            else:
                yield from _line(Text(name.text, name.style), figures, label)
                yield Hanging(Text.assemble(" " * BELOW, text), BELOW)


def _fitting(columns: Sequence[_Set], room: int) -> list[_Set]:
    """The columns but those of the highest ranks, as far as others need their room."""
    shown = list(columns)
    while _wide(shown) > room:
        worst = max(shown, key=lambda one: one.head.rank, default=None)
        if worst is None or not worst.head.rank:
            break
        shown.remove(worst)
    return shown


def _wide(columns: Sequence[_Set]) -> int:
    """How wide they are side by side, but for texts that may be wrapped."""
    prose = _prose_of(columns)
    return sum(GAP + one.width for one in columns if one is not prose)


def _prose_of(columns: Sequence[_Set]) -> _Set | None:
    """The last column, if it holds texts that may be wrapped."""
    last = columns[-1] if columns else None
    wraps = last is not None and not last.head.figures and not last.head.rank
    return last if wraps else None


def _blocks(shown: Sequence[_Set], prose: _Set | None, room: int) -> Iterator[list[_Set]]:
    """The columns that stand side by side; evenly many where they are alike, texts last."""
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
    """A name with its figures beside it; below it, where it is too long."""
    if cell_len(name.plain) > label:
        yield Hanging(name, GAP)
        if not figures.plain.strip():
            return
        name = Text()
    line = Text.assemble(name, " " * (label - cell_len(name.plain)), figures)
    line.rstrip()
    yield line
