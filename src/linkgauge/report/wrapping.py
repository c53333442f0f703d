"""Text that is wrapped at words to the console's width."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from .console import make_console

_WORD = re.compile(r"[^\sA-Za-z]*\d (?:[KMGT]i?)?B\b\S*|\S+")
"""A figure and its unit are one word."""


class Hanging:
    """A text wrapped at words, its continuation lines indented by `indent` columns. A word that is
    longer than the console is wide stays whole."""

    def __init__(self, text: Text, indent: int) -> None:
        self.text = text
        self.indent = indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.expand_tabs(console.tab_size)
        for number, line in enumerate(text.divide(self._breaks(text.plain, options.max_width))):
            line.rstrip()
            indent = Text(" " * self.indent if number else "", no_wrap=True, overflow="ignore")
            yield indent.append_text(line)

    def _breaks(self, plain: str, width: int) -> Iterator[int]:
        """Where lines begin, but for the first."""
        begin, room = 0, width
        for word in _WORD.finditer(plain):
            before = plain[begin : word.start()]
            if before.strip() and cell_len(plain[begin : word.end()]) > room:
                begin, room = word.start(), width - self.indent
                yield begin


def plain_lines(parts: Iterable[RenderableType]) -> list[str]:
    """Their text without styles, not wrapped."""
    console = make_console(file=io.StringIO())
    console.width = 1 << 20
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=True)
    return captured.get().splitlines()
