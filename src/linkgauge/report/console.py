"""Makes the console that prints everything that people read."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from linkgauge.model.printable import printable, unwrapped
from linkgauge.report.words.bars import BARS

WIDE = 100_000
"""The columns of a pipe or a file, whose lines are for programs: nothing is wrapped or folded."""

_SIZE = re.compile("[0-9]{1,6}")

# As wide as what they stand for, so that columns stay aligned.
_PLAIN = dict(zip(f"{BARS}▼▲▽△↓·±→←×÷µ–…", "_.,-=+*#v^v^|.~><x/u-~", strict=True))


class _Console(Console):
    """A console that keeps each text on one line, and replaces characters it cannot encode."""

    @property
    def file(self) -> IO[str]:
        return unwrapped(super().file)

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        if isinstance(renderable, Text):
            shown = printable(renderable.plain, "\t")
            if shown != renderable.plain:
                renderable = renderable.copy()
                renderable.plain = shown
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                text, encoding = printable(segment.text, "\n\t"), self.encoding
                try:
                    text.encode(encoding)
                except UnicodeEncodeError:
                    text = "".join(
                        one if one.encode(encoding, "ignore") else _PLAIN.get(one, "?")
                        for one in text
                    )
                yield Segment(text, segment.style)


def make_console(**options: Any) -> Console:
    """Returns a console with colours only on a terminal. In a file or pipe, the width is the
    variable COLUMNS or, if it is not set, unlimited. `options` are options of rich's Console."""
    stream = options.get("file") or (sys.stderr if options.get("stderr") else sys.stdout)
    is_terminal, environment = unwrapped(stream).isatty(), dict(os.environ)
    # A terminal knows its own size, and only numbers are a size.
    for name in ("COLUMNS", "LINES"):
        text = environment.get(name, "")
        if is_terminal or not (_SIZE.fullmatch(text) and 0 < int(text) <= WIDE):
            environment.pop(name, None)
    console = _Console(
        highlight=False, markup=False, emoji=False, soft_wrap=True, _environ=environment, **options
    )
    if not console.is_terminal and "COLUMNS" not in environment:
        console.width = WIDE
    return console


# Text that is wrapped at words to the console's width.

_WORD = re.compile(r"[^\sA-Za-z]*\d (?:[KMGT]i?)?B\b\S*|\S+")
"""A figure and its unit form one word."""


@dataclass(frozen=True)
class Hanging:
    """A text that is wrapped at words, with later lines indented. It does not break long words."""

    text: Text
    indent: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.expand_tabs(console.tab_size)
        begin, room, breaks = 0, options.max_width, list[int]()
        for word in _WORD.finditer(text.plain):
            before = text.plain[begin : word.start()]
            if before.strip() and cell_len(text.plain[begin : word.end()]) > room:
                begin, room = word.start(), options.max_width - self.indent
                breaks.append(begin)
        for number, line in enumerate(text.divide(breaks)):
            line.rstrip()
            indent = Text(" " * self.indent if number else "", no_wrap=True, overflow="ignore")
            yield indent.append_text(line)


def plain_lines(parts: Iterable[RenderableType]) -> list[str]:
    console = make_console(file=io.StringIO())
    console.width = 1 << 20
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=True)
    return captured.get().splitlines()
