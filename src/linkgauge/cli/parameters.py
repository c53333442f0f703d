"""Converts a command's options to click's parameters, and click's values to options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import click
from click import Context
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from linkgauge.model.errors import InputError, LinkgaugeError

from . import streams
from .help_text import OUTPUT, Offer, Typed
from .options import (
    CommandLine,
    Field,
    Options,
    Reading,
    filled,
    forms_of,
    kind_of,
    members,
    option,
    reading_of,
)

_O = TypeVar("_O", bound=Options)
Record = tuple[str, str]
"""An option with its value (or a command's name), and what it does."""

_MOST_PROPOSALS = 1000
"""The most proposals that a shell gets. A simulated cluster has 80,000 devices."""


class Offering(click.Parameter):
    """A parameter with values that a shell proposes, from `offer` or else from its metavar."""

    offer: Offer | None = None

    def _words(self, typed: Typed) -> list[str]:
        words = (self.metavar or "").split("|")
        return [one for one in words if len(words) > 1 and one.islower() and one[0].isalnum()]

    def offered(self, ctx: Context, text: str) -> list[str]:
        """Returns the first values that begin with `text`; none if `offer` raises an error."""
        try:
            names = (self.offer or self._words)(Typed(text, ctx.params))
            return [*islice((name for name in names if name.startswith(text)), _MOST_PROPOSALS)]
        except LinkgaugeError:
            return []

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        names = self.offered(ctx, incomplete)
        return [*map(CompletionItem, names)] or [CompletionItem(incomplete, type="file")]


class HelpOption(Offering, click.Option):
    """An option that help shows below `heading`. `is_input` is true for an option that names an
    input, such as a baseline. If an option of one value gets several values, InputError is raised
    for an input; for other options, the last value counts, and a message says so."""

    heading = ""
    is_input = False

    def add_to_parser(self, parser: Any, ctx: Context) -> None:
        if self.is_flag or self.multiple or self.count:
            super().add_to_parser(parser, ctx)
        else:
            parser.add_option(obj=self, opts=self.opts, dest=self.name, action="append")

    def consume_value(self, ctx: Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        value, source = super().consume_value(ctx, opts)
        if source is ParameterSource.COMMANDLINE and isinstance(value, list) and not self.multiple:
            if len({*value}) > 1 and not ctx.resilient_parsing:
                typed = " ".join(f"{self.opts[0]} {one}" for one in value)
                if self.is_input:
                    raise InputError(f"{typed}: give only one")
                streams.complain(f"{typed}: the last one counts")
            value = value[-1]
        return value, source


class HelpArgument(Offering, click.Argument):
    """An argument. `quoted` makes one quoted argument of words that a user did not quote."""

    quoted: Callable[[Sequence[str]], str] | None = None

    def get_usage_pieces(self, ctx: Context) -> list[str]:
        name = self.make_metavar(ctx)
        return [f"{{{name}}}" if self.required else f"[{name}]"]

    def get_help_record(self, ctx: Context) -> Record:
        name, text = super().get_help_record(ctx)
        note = "required" if self.required else f"default: {self.default}" if self.default else ""
        return name, f"{text}  [{note}]" if note else text


_OURS = ("heading", "is_input", "offer", "quoted")
"""What shows, reads and completes a parameter. Click does not know it."""


class _Read(click.ParamType[Any]):
    name = "value"

    def __init__(self, read: Reading, kind: click.ParamType[Any] | None = None) -> None:
        self._read, self._kind = read, kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: Context | None) -> Any:
        known = value if self._kind is None else self._kind.convert(value, param, ctx)
        return self._read(param.opts[0] if param else "", known)


def parameter(name: str, field: Field, hint: Any) -> click.Parameter:
    is_several, kind = get_origin(hint) is tuple, kind_of(hint)
    of: Any = click.Path(path_type=Path) if kind is Path else kind
    if (read := reading_of(kind)) is not None:
        of = _Read(read, click.INT if get_args(kind)[:1] == (int,) else None)
    settings = {"type": of, **field.settings}
    if not settings.get("required"):
        settings["default"] = () if is_several else field.default
    if (action := settings.pop("action", None)) is not None:
        settings |= {"callback": partial(_instead, action), "expose_value": False}
    ours = {name: settings.pop(name) for name in _OURS if name in settings}
    made: click.Parameter
    if field.is_argument:
        made = HelpArgument([name], nargs=-1 if is_several else 1, **settings)
    else:
        names = [name, *field.flags_of(name)]
        made = HelpOption(names, multiple=is_several, is_flag=kind is bool, **settings)
    vars(made).update(ours)
    return made


def _instead(
    action: Callable[[], object], context: Context, parameter: click.Parameter, asked: bool
) -> None:
    if asked:
        action()
        context.exit()


def beforehand(heading: str, help: str, key: str, flags: str) -> Any:
    """Defines a flag that is read before other options, and kept in click's `meta[key]`."""

    def keep(context: Context, parameter: click.Parameter, asked: bool) -> None:
        context.meta[key] = asked

    return option(heading, help, flags=flags, callback=keep, is_eager=True, expose_value=False)


def parameters(kind: type[Options]) -> Iterator[click.Parameter]:
    for name, hint, field in members(kind):
        if field is not None:
            yield parameter(name, field, hint)
        else:
            for form in forms_of(hint, kind):
                yield parameter(form.name, option(OUTPUT, form.help), bool)


def typed(kind: type[_O], given: Mapping[str, Any]) -> _O:
    context = click.get_current_context()
    by_user = ParameterSource.COMMANDLINE
    names = {name for name in given if context.get_parameter_source(name) is by_user}
    return filled(kind, given, CommandLine(tuple(sys.argv[1:]), frozenset(names)))
