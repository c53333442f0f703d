"""A matrix that folds into blocks of columns where the console is too narrow for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from .matrix import grid

_LEAST_LABEL = 4
_GAP = 2
_UNDER = 4
"""Columns by which figures below their names are indented."""


class Entry(NamedTuple):
    """What stands in one place of a matrix; the sign follows the text."""

    text: str
    style: str = ""
    sign: str = ""


class Folded:
    """Rows of entries in columns that are at least `least` wide. Labels are repeated in each block
    of columns. Where labels are `names`, which are long, they stand on lines of their own rather
    than leave no room for figures. What is to stand `beside` the lines, its heading first, is left
    out where there is no room."""

    def __init__(
        self,
        labels: Sequence[str],
        columns: Sequence[str],
        rows: Sequence[Sequence[Entry]],
        *,
        least: int = 0,
        names: bool = False,
        beside: Sequence[str] = (),
    ) -> None:
        self._beside = beside
        self._labels, self._columns, self._names = labels, columns, names
        self._signs = max((len(entry.sign) for row in rows for entry in row), default=0)
        self._rows = [[(self._text(entry), entry.style) for entry in row] for row in rows]
        self._heads = [column + " " * self._signs for column in columns]
        widest = max(
            *(len(head) for head in self._heads),
            *(len(text) for row in self._rows for text, _ in row),
        )
        self._width = max(least, widest + _GAP)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        label = max(len(one) for one in self._labels)
        if not self._names:
            labels = [f"{one:>{max(label, _LEAST_LABEL - 1)}} " for one in self._labels]
            yield from self._blocks(labels, options.max_width)
        elif label + self._width * len(self._columns) <= options.max_width:
            yield from self._blocks([f"{one:<{label}}" for one in self._labels], options.max_width)
        else:
            yield from self._below(options.max_width)

    def _text(self, entry: Entry) -> str:
        return f"{entry.text}{entry.sign:<{self._signs}}"

    def _blocks(self, labels: Sequence[str], width: int) -> Iterator[Text]:
        for columns in self._spans(width - len(labels[0])):
            rows = (row[columns] for row in self._rows)
            lines = [*grid(labels, self._heads[columns], self._width, rows)]
            for line, more in zip_longest(lines, self._room_beside(len(lines[0]), width)):
                line.append(f"  {more or ''}", "dim")
                line.rstrip()
                yield line

    def _room_beside(self, used: int, width: int) -> Sequence[str]:
        widest = max(map(len, self._beside), default=0)
        return self._beside if used + _GAP + widest <= width else ()

    def _below(self, width: int) -> Iterator[Text]:
        """Names on lines of their own, with their figures below them."""
        margin = " " * _UNDER
        for columns in self._spans(width - _UNDER):
            rows = [row[columns] for row in self._rows]
            head, *lines = grid([margin] * len(rows), self._heads[columns], self._width, rows)
            head.rstrip()
            yield head
            for name, line in zip(self._labels, lines, strict=True):
                line.rstrip()
                yield Text(name, "cyan")
                yield line

    def _spans(self, room: int) -> Iterator[slice]:
        """The columns of each block, as many as there is room for, and evenly many."""
        count = len(self._columns)
        blocks = -(-count // max(1, room // self._width))
        each = -(-count // blocks)
        yield from (slice(start, start + each) for start in range(0, count, each))


class Fitting:
    """The wide lines where they fit, else the narrow ones."""

    def __init__(self, wide: Sequence[Text], narrow: Sequence[Text]) -> None:
        self._wide, self._narrow = wide, narrow

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fits = max(map(len, self._wide), default=0) <= options.max_width
        yield from self._wide if fits else self._narrow
