"""Help texts: options under headings, examples on lines of their own, no word or figure broken.

A command's docstring is its help: the first paragraph is the summary in the overview; a block that
begins with `Examples:` is printed last, line by line as it stands.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from inspect import cleandoc
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from . import streams

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

    Record = tuple[str, str]
    """An option with its value (or a command's name), and what it does."""

WIDEST = 100
"""Columns: longer lines are hard to read."""
EXAMPLES = "Examples:"
COMMANDS, ARGUMENTS = "Commands", "Arguments"
WHAT = "What to measure"
WHEN = "When"
WHICH = "Which runs"
SETTINGS = "Settings to compare"
PRECISION = "How precisely"
OUTPUT = "Output"
ENGINES = "Devices and engines"
COLLECTIVES = "Collectives"
MACHINES = "Simulated and captured machines"
RUNS = "Several runs and profilers"
OTHER = "Options"
"""Of options that name no heading."""
HEADINGS = (
    WHAT,
    WHEN,
    WHICH,
    SETTINGS,
    PRECISION,
    OUTPUT,
    ENGINES,
    COLLECTIVES,
    MACHINES,
    RUNS,
    OTHER,
)
_GLUE = "\N{NO-BREAK SPACE}"
_FIGURE = re.compile(r"(?<=\d) (?=(?:[KMG]i)?B\b|m?s\b)")
_NOTE = re.compile(r"\[(?:default|env var|required)[^]]*\]$")


class HelpCommand(TyperCommand):
    """A command whose options are shown under headings, and whose output is harmless."""

    def invoke(self, ctx: Context) -> Any:
        with streams.printing():
            return super().invoke(ctx)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        formatter.write(_page(self, ctx, _sections(self, ctx)))


class HelpGroup(TyperGroup):
    """The overview: a line for each command."""

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        commands = [(name, _blocks(one.help)[0]) for name, one in self.commands.items()]
        formatter.write(_page(self, ctx, {COMMANDS: commands, **_sections(self, ctx)}))


class _Layout(NamedTuple):
    width: int
    is_coloured: bool

    def heading(self, text: str) -> str:
        return typer.style(text, bold=True) if self.is_coloured else text

    def term(self, text: str) -> str:
        return typer.style(text, fg="cyan") if self.is_coloured else text

    def filled(self, text: str, first: str, indent: int) -> list[str]:
        """Lines of whole words, `first` before the first one."""
        glued = _FIGURE.sub(_GLUE, text)
        glued = _NOTE.sub(lambda note: note[0].replace(" ", _GLUE), glued)
        lines = wrap(
            glued, self.width, initial_indent=first, subsequent_indent=" " * indent,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        return [line.replace(_GLUE, " ") for line in lines]

    def column(self, records: Iterable[Record]) -> int:
        """Where texts begin: behind the longest term, but for those that would leave no room."""
        room = max(self.width // 3, 20)
        return max((len(term) for term, _ in records if len(term) <= room), default=0) + 4

    def definitions(self, records: Iterable[Record], column: int) -> Iterator[str]:
        """Each term, and from `column` on what it stands for; on lines below a longer term."""
        for term, text in records:
            name = self.term(term)
            first, *more = self.filled(text, " " * column, column) or [""]
            if len(term) + 4 > column:
                yield f"  {name}"
                yield first
            else:
                yield f"  {name}{first[len(term) + 2 :]}"
            yield from more


def _page(
    command: TyperCommand | TyperGroup, ctx: Context, sections: dict[str, list[Record]]
) -> str:
    layout = _Layout(min(shutil.get_terminal_size().columns, WIDEST), _is_coloured())
    ctx.color = layout.is_coloured  # what is printed keeps its colours
    usage = f"Usage: {ctx.command_path} "
    pieces = " ".join(command.collect_usage_pieces(ctx))
    blocks = [layout.filled(pieces, usage, len(usage))]
    texts = _blocks(command.help)
    blocks += [layout.filled(text, "", 0) for text in texts if not text.startswith(EXAMPLES)]
    options = [record for found in sections.values() for record in found]
    for heading, records in sections.items():
        column = layout.column(records if COMMANDS in sections else options)
        title = layout.heading(f"{heading}:")
        blocks.append([title, *layout.definitions(records, column)])
    for text in texts:
        if text.startswith(EXAMPLES):
            title, *examples = text.splitlines()
            blocks.append([layout.heading(title), *(f"  {line.strip()}" for line in examples)])
    return "\n\n".join("\n".join(block) for block in blocks)


def _sections(command: TyperCommand | TyperGroup, ctx: Context) -> dict[str, list[Record]]:
    """The arguments, then the options by heading."""
    found: dict[str, list[Record]] = {}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is not None:
            is_argument = param.param_type_name == "argument"
            named = ARGUMENTS if is_argument else getattr(param, "rich_help_panel", None)
            found.setdefault(named or OTHER, []).append(record)
    return {name: found[name] for name in (ARGUMENTS, *HEADINGS) if name in found}


def _blocks(docstring: str | None) -> list[str]:
    """The paragraphs, each on one line; examples on lines of their own."""
    texts = cleandoc(docstring or "").split("\n\n")
    return [text if text.startswith(EXAMPLES) else " ".join(text.split()) for text in texts]


def examples_of(command: Callable[..., int]) -> list[str]:
    """The lines of a command's examples."""
    found = (text for text in _blocks(command.__doc__) if text.startswith(EXAMPLES))
    return [line.strip() for text in found for line in text.splitlines()[1:]]


def _is_coloured() -> bool:
    """On a terminal, unless NO_COLOR forbids it or FORCE_COLOR asks for it elsewhere, as for all
    other output."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
