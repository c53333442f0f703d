"""Formats help: options under headings, examples on lines of their own, no breaks within figures.

A command's docstring is its help. The first paragraph is the summary in the overview. A block that
begins with `Examples:` is printed last, with its lines unchanged."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import click
from click import Context, HelpFormatter

from linkgauge.model.errors import InputError
from linkgauge.model.names import UnknownName

from . import streams
from .help_text import ARGUMENTS, COMMANDS, EXAMPLES, HEADINGS, OTHER, paragraphs
from .parameters import Record

WIDEST = 100
"""The most columns of a line; longer lines are hard to read."""
_GLUE = "\N{NO-BREAK SPACE}"
_FIGURE = re.compile(r"(?<=\d) (?=(?:[KMG]i)?B\b|m?s\b)")
_NOTE = re.compile(r"\[(?:default|env var|required)[^]]*\]$")


class HelpCommand(click.Command):
    """A command with its options under headings. Control characters are removed from its output."""

    allow_extra_args = True  # because click's message for them says too little

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        try:
            extra = super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = ctx  # the parser leaves it out
            raise
        if extra and not ctx.resilient_parsing:
            from .mistakes import too_many

            raise InputError(too_many(ctx, extra))
        return extra

    def invoke(self, ctx: Context) -> Any:
        with streams.printing():
            try:
                return super().invoke(ctx)
            except UnknownName as error:
                from .mistakes import meant_by

                raise InputError(meant_by(ctx, error)) from error
            except InputError as error:
                from .mistakes import meant_by_words

                if (meant := meant_by_words(ctx, error)) is None:
                    raise
                raise InputError(f"{error}; {meant}") from error
            except KeyboardInterrupt:  # for which click would print an empty line
                ctx.exit(130)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        formatter.write(page(self, ctx, sections(self, ctx)))


class _Layout(NamedTuple):
    width: int
    is_coloured: bool

    def heading(self, text: str) -> str:
        return click.style(text, bold=True) if self.is_coloured else text

    def term(self, text: str) -> str:
        return click.style(text, fg="cyan") if self.is_coloured else text

    def filled(self, text: str, first: str, indent: int) -> list[str]:
        from textwrap import wrap  # 3 ms, and only help needs it

        glued = _FIGURE.sub(_GLUE, text)
        glued = _NOTE.sub(lambda note: note[0].replace(" ", _GLUE), glued)
        lines = wrap(
            glued, self.width, initial_indent=first, subsequent_indent=" " * indent,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        return [line.replace(_GLUE, " ") for line in lines]

    def column(self, records: Iterable[Record]) -> int:
        room = max(self.width // 3, 20)
        return max((len(term) for term, _ in records if len(term) <= room), default=0) + 4

    def definitions(self, records: Iterable[Record], column: int) -> Iterator[str]:
        for term, text in records:
            name = self.term(term)
            first, *more = self.filled(text, " " * column, column) or [""]
            if len(term) + 4 > column:
                yield f"  {name}"
                yield first
            else:
                yield f"  {name}{first[len(term) + 2 :]}"
            yield from more


def page(command: click.Command, ctx: Context, by_heading: dict[str, list[Record]]) -> str:
    from shutil import get_terminal_size

    layout = _Layout(min(get_terminal_size().columns, WIDEST), _is_coloured())
    ctx.color = layout.is_coloured  # what is printed keeps its colours
    usage = f"Usage: {ctx.command_path} "
    pieces = " ".join(command.collect_usage_pieces(ctx))
    blocks = [layout.filled(pieces, usage, len(usage))]
    texts = paragraphs(command.help)
    blocks += [layout.filled(text, "", 0) for text in texts if not text.startswith(EXAMPLES)]
    options = [record for found in by_heading.values() for record in found]
    for heading, records in by_heading.items():
        column = layout.column(records if COMMANDS in by_heading else options)
        title = layout.heading(f"{heading}:")
        blocks.append([title, *layout.definitions(records, column)])
    for text in texts:
        if text.startswith(EXAMPLES):
            title, *examples = text.splitlines()
            blocks.append([layout.heading(title), *(f"  {line.strip()}" for line in examples)])
    return "\n\n".join("\n".join(block) for block in blocks)


def sections(command: click.Command, ctx: Context) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is not None:
            is_argument = param.param_type_name == "argument"
            named = ARGUMENTS if is_argument else getattr(param, "heading", None)
            found.setdefault(named or OTHER, []).append(record)
    return {name: found[name] for name in (ARGUMENTS, *HEADINGS) if name in found}


def _is_coloured() -> bool:
    """Whether to use colours: NO_COLOR forbids and FORCE_COLOR requests them, as for all output."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
