"""Formats help texts: options under headings, examples on lines of their own, no word or figure
broken.

A command's docstring is its help. The first paragraph is the summary in the overview. A block that
begins with `Examples:` is printed last, with its lines unchanged."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import cleandoc
from itertools import islice
from typing import Any, NamedTuple

import click
from click import Context, HelpFormatter
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.model.names import UnknownName

from . import streams

Record = tuple[str, str]
"""An option with its value (or a command's name), and what it does."""

WIDEST = 100
"""The most columns of a line; longer lines are hard to read."""
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
"""The heading of options that name none."""
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


_MOST_PROPOSALS = 1000
"""The most proposals that a shell gets. A simulated cluster has 80,000 devices."""


class Typed(NamedTuple):
    """What is typed when a shell asks for proposals: the value so far, and the other options."""

    text: str
    others: Mapping[str, Any]


Offer = Callable[[Typed], Iterable[str]]
"""A function that returns the values that the shell proposes. It opens no device."""


class Offering(click.Parameter):
    """A parameter that a shell can complete. The proposals are the names that `offer` returns or,
    without `offer`, the words of the metavar."""

    def __init__(self, *args: Any, offer: Offer | None, **more: Any) -> None:
        super().__init__(*args, **more)
        self._offer = offer or self._words

    def _words(self, typed: Typed) -> list[str]:
        words = (self.metavar or "").split("|")
        return [one for one in words if len(words) > 1 and one.islower() and one[0].isalnum()]

    def offered(self, ctx: Context, text: str) -> list[str]:
        """Returns the first proposals that begin with this text. There are none if another option
        is wrong."""
        try:
            names = self._offer(Typed(text, ctx.params))
            return [*islice((name for name in names if name.startswith(text)), _MOST_PROPOSALS)]
        except LinkgaugeError:
            return []

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        names = self.offered(ctx, incomplete)
        return [*map(CompletionItem, names)] or [CompletionItem(incomplete, type="file")]


class HelpOption(Offering, click.Option):
    """An option that the help shows below its heading. If an option that takes one value is given
    several, none is dropped in silence. Of different inputs (`is_input`), such as two baselines,
    InputError is raised; else the last value counts, and a line says so."""

    def __init__(self, *args: Any, heading: str, is_input: bool = False, **more: Any) -> None:
        super().__init__(*args, **more)
        self.heading = heading
        self.is_input = is_input

    def add_to_parser(self, parser: Any, ctx: Context) -> None:
        if self.is_flag or self.multiple or self.count:
            super().add_to_parser(parser, ctx)
        else:
            parser.add_option(obj=self, opts=self.opts, dest=self.name, action="append")

    def consume_value(self, ctx: Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        value, source = super().consume_value(ctx, opts)
        if source is ParameterSource.COMMANDLINE and isinstance(value, list) and not self.multiple:
            value = value[-1] if ctx.resilient_parsing else self._only(value)
        return value, source

    def _only(self, values: list[str]) -> str:
        if len({*values}) > 1:
            typed = " ".join(f"{self.opts[0]} {value}" for value in values)
            if self.is_input:
                raise InputError(f"{typed}: give only one")
            streams.complain(f"{typed}: the last one counts")
        return values[-1]


class HelpArgument(Offering, click.Argument):
    """An argument whose help ends with its default. For an argument that needs quotes, `quoted`
    returns how the words are typed that were written without them."""

    def __init__(
        self, *args: Any, quoted: Callable[[Sequence[str]], str] | None = None, **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.quoted = quoted

    def get_usage_pieces(self, ctx: Context) -> list[str]:
        name = self.make_metavar(ctx)
        return [f"{{{name}}}" if self.required else f"[{name}]"]

    def get_help_record(self, ctx: Context) -> Record:
        name, text = super().get_help_record(ctx)
        note = "required" if self.required else f"default: {self.default}" if self.default else ""
        return name, f"{text}  [{note}]" if note else text


class HelpCommand(click.Command):
    """A command whose options are shown under headings. Its output cannot control the terminal."""

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
        """Wraps a text into lines without breaking words. The first line begins with `first`."""
        from textwrap import wrap  # 3 ms, and only help needs it

        glued = _FIGURE.sub(_GLUE, text)
        glued = _NOTE.sub(lambda note: note[0].replace(" ", _GLUE), glued)
        lines = wrap(
            glued, self.width, initial_indent=first, subsequent_indent=" " * indent,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        return [line.replace(_GLUE, " ") for line in lines]

    def column(self, records: Iterable[Record]) -> int:
        """Returns the column at which texts begin: after the longest term. Very long terms are
        ignored."""
        room = max(self.width // 3, 20)
        return max((len(term) for term, _ in records if len(term) <= room), default=0) + 4

    def definitions(self, records: Iterable[Record], column: int) -> Iterator[str]:
        """Yields each term with its text from `column` on. The text of a longer term begins on the
        next line."""
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
    """Returns the help of a command, with its options or commands under headings."""
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
    """Returns the arguments, then the options, by heading."""
    found: dict[str, list[Record]] = {}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is not None:
            is_argument = param.param_type_name == "argument"
            named = ARGUMENTS if is_argument else getattr(param, "heading", None)
            found.setdefault(named or OTHER, []).append(record)
    return {name: found[name] for name in (ARGUMENTS, *HEADINGS) if name in found}


def examples(command: click.Command) -> list[str]:
    """Returns the example command lines of a command's help."""
    texts = (text for text in paragraphs(command.help) if text.startswith(EXAMPLES))
    return [line.strip() for text in texts for line in text.splitlines()[1:]]


def paragraphs(docstring: str | None) -> list[str]:
    """Returns the paragraphs, each on one line. The lines of examples stay separate."""
    texts = cleandoc(docstring or "").split("\n\n")
    return [text if text.startswith(EXAMPLES) else " ".join(text.split()) for text in texts]


def _is_coloured() -> bool:
    """Whether help has colours. On a terminal it has, unless NO_COLOR forbids colours. Elsewhere it
    has only if FORCE_COLOR requests colours, as for all other output."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
