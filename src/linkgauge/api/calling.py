"""Turns a call of the Python API into the options of the command that does the same, so that their
names, defaults and checks, and what a run records of them, are the command's own."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import click

from linkgauge.cli.main import COMMANDS, command
from linkgauge.cli.options import Options, filled
from linkgauge.model.errors import InputError, Interrupted
from linkgauge.model.names import hint
from linkgauge.report.formats import formats

Say = Callable[[str], object]
"""Takes messages for people, a line each."""
LOG: Say = logging.getLogger("linkgauge").info
FOR_SCREEN = {
    *formats(), "utilization", "matrix", "whole", "verbose", "no_report", "no_verdict", "dry_run",
    "list_faults", "fix_script", "github", "output", "resume",
}  # fmt: skip
"""Options that say what a command shows, or that it does something else instead."""
RENAMED = {"faults": "fault"}
"""Arguments whose names differ from their options'. `x=False` stands for an option `--no-x`."""
_O = TypeVar("_O", bound=Options)
_F = TypeVar("_F", bound=Callable[..., object])


@contextmanager
def asked(
    name: str, kind: type[_O], arguments: Iterable[object], given: Mapping[str, object]
) -> Iterator[_O]:
    """Gives the options of the command NAME for a call with these arguments and options; within the
    block, the command counts as running. Raises InputError for values that it refuses, TypeError
    for an unknown option, and Interrupted after Ctrl-C in the block."""
    made = command(name, COMMANDS[name])
    words = [*_options(made, given), *_arguments(arguments)]
    try:
        context = made.make_context(name, list(words), obj=(name, *words))
    except click.ClickException as error:
        raise InputError(error.format_message()) from None
    with context, interruptible():
        options = filled(kind, context.params)
        if given.get("out", "") is None:  # a run is kept nowhere
            vars(options)["out"] = None
        yield options


@contextmanager
def interruptible() -> Iterator[None]:
    """Raises Interrupted in place of KeyboardInterrupt."""
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted") from error


def _options(made: click.Command, given: Mapping[str, object]) -> Iterator[str]:
    """The words of these options on the command line. Options that are None are left out."""
    known = {
        str(one.name): one
        for one in made.params
        if isinstance(one, click.Option) and one.name not in FOR_SCREEN
    }
    for name, value in given.items():
        own = RENAMED.get(name, name)
        if f"no_{own}" in known:
            if value not in (None, True, False):
                raise TypeError(f"{name} is True or False")
            yield from _words(known[f"no_{own}"], value is False)
        elif own in known:
            yield from _words(known[own], value)
        else:
            near = hint(name, known)
            raise TypeError(f"{made.name}() got an unexpected keyword argument {name!r}{near}")


def _words(option: click.Option, value: object) -> Iterator[str]:
    flag = max(option.opts, key=len)
    for one in _each(value):
        if one is None or one is False:
            continue
        if (one is True) != option.is_flag:
            raise TypeError(f"{flag} {'is True or False' if option.is_flag else 'takes a value'}")
        yield flag if one is True else f"{flag}={_text(one)}"


def _arguments(values: Iterable[object]) -> list[str]:
    words = [_text(value) for value in values]
    return ["--", *words] if any(word.startswith("-") for word in words) else words


def _each(value: object) -> Iterable[object]:
    """The values of an option: one, or several if it is a collection."""
    if isinstance(value, Iterable) and not isinstance(value, str | os.PathLike):
        return value
    return (value,)


def _text(value: object) -> str:
    """Returns the word for a value. Raises InputError for one that no command line can hold."""
    text = str(os.fspath(value)) if isinstance(value, os.PathLike) else str(value)
    if "\0" in text:
        raise InputError(f"{text!r} holds a null character, which no name of a file has")
    return text


def path_of(value: str | os.PathLike[str]) -> Path:
    """Returns the path that a caller names. Raises InputError if no file can have that name."""
    return Path(_text(value))


def takes(options: type) -> Callable[[_F], _F]:
    """Shows the options of a TypedDict, which a function takes as `**options`, one by one in the
    function's signature: help and completion read it there."""

    def shown(function: _F) -> _F:
        found: Any = function
        own = signature(function)
        before = [one for one in own.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        more = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in get_type_hints(options).items()
        ]
        found.__signature__ = own.replace(parameters=[*before, *more])
        return function

    return shown
