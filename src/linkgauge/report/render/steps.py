"""Prints remedies on the terminal. Long commands are wrapped so that a shell still accepts them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from linkgauge.report.words.remedies import Command, RemedyText, Step


class Block:
    """To be pasted into a shell as a whole: prose and files become comments, and a backslash
    continues a long command."""

    def __init__(self, of: Sequence[Step], indent: int, label: Text | None = None) -> None:
        self.steps = of
        self.indent = indent
        self.label = label or Text()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        before = self.label
        for step in self.steps:
            for line in _lines(step, options.max_width - self.indent):
                padding = " " * (self.indent - len(before))
                yield Text.assemble(before, padding, line) if line else Text()
                before = Text()


def _lines(step: Step, room: int) -> Iterator[Text]:
    if isinstance(step, RemedyText):
        yield from _comment(step.text, room)
    elif isinstance(step, Command):
        yield from _command(step, room)
    else:
        yield from (Text(f"#     {line}".rstrip(), "dim") for line in step.lines)


def _comment(text: str, room: int) -> Iterator[Text]:
    lines = textwrap.wrap(text, max(1, room - 2), break_long_words=False, break_on_hyphens=False)
    yield from (Text(f"# {line}", "dim") for line in lines)


def _command(step: Command, room: int) -> Iterator[Text]:
    said = f"  # {step.comment}" if step.comment else ""
    if cell_len(step.line + said) <= room:
        yield Text(step.line).append(said, "dim")
        return
    if said:
        yield from _comment(step.comment, room)
    lines = [step.words[0]]
    for number, word in enumerate(step.words[1:], 2):
        end = 0 if number == len(step.words) else len(" \\")
        if cell_len(lines[-1]) + 1 + cell_len(word) + end > room:
            lines.append(f"  {word}")
        else:
            lines[-1] += f" {word}"
    *begun, last = lines
    yield from (Text(f"{line} \\") for line in begun)
    yield Text(last)
