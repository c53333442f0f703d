"""Makes a command's options from the arguments of a Python call."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, TypeVar, get_origin, get_type_hints

from linkgauge.cli.options import (
    CommandLine,
    Field,
    Options,
    each_of,
    filled,
    kind_of,
    members,
    read,
    text_of,
)
from linkgauge.model.errors import InputError, Interrupted
from linkgauge.model.names import hint

from .shown import show_in_notebook

Say = Callable[[str], object]
"""Takes messages for people, a line each."""
LOG: Say = logging.getLogger("linkgauge").info
FOR_SCREEN = {
    "utilization", "matrix", "whole", "verbose", "no_report", "no_verdict", "dry_run",
    "list_faults", "checks", "fix_script", "github", "nccl_topo", "output", "resume",
}  # fmt: skip
"""Options that say what a command shows, or that it does something else instead."""
RENAMED = {"faults": "fault"}
"""Arguments whose names differ from their options'. `x=False` stands for an option `--no-x`."""
_O = TypeVar("_O", bound=Options)
_F = TypeVar("_F", bound=Callable[..., object])
_Members = Mapping[str, tuple[Any, Field]]
"""Type and definition of each option."""


@contextmanager
def asked(
    name: str, kind: type[_O], arguments: Iterable[object], given: Mapping[str, object]
) -> Iterator[_O]:
    """Provides, for a `with` block, the options of the command `name`, made from a Python call's
    `arguments` and keywords (`given`). Errors in the block name keywords, not options. Raises
    InputError for a refused value, TypeError for a wrong keyword, Interrupted for Ctrl-C."""
    known = {of: (hint, field) for of, hint, field in members(kind) if field is not None}
    named = {of: _named(of) for of in known}
    flags = {flag: named[of] for of in known for flag in known[of][1].flags_of(of)}
    show_in_notebook()
    with _in_python(flags), interruptible():
        values = dict(_given(name, known, given)) | dict(_arguments(known, [*arguments]))
        read_values = {
            of: read(named[of], hint, field, values.get(of)) for of, (hint, field) in known.items()
        }
        line = CommandLine((name, *_words(known, values)), frozenset(values))
        options = filled(kind, read_values, line)
        if given.get("out", "") is None:  # a run is kept nowhere
            vars(options)["out"] = None
        yield options


def _named(option: str) -> str:
    renamed = {of: argument for argument, of in RENAMED.items()}
    return renamed.get(option, option.removeprefix("no_"))


@contextmanager
def _in_python(flags: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        text = re.sub(r"--[a-z][a-z-]*", lambda found: flags.get(found[0], found[0]), str(error))
        if text == str(error):
            raise
        raise InputError(text) from None


@contextmanager
def interruptible() -> Iterator[None]:
    """Turns a KeyboardInterrupt in the `with` block into Interrupted."""
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted") from error


def _given(
    command: str, known: _Members, given: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    for name, value in given.items():
        own = RENAMED.get(name, name)
        is_negated = f"no_{own}" in known
        own = f"no_{own}" if is_negated else own
        if own not in known or own in FOR_SCREEN:
            near = hint(name, [_named(of) for of in known if of not in FOR_SCREEN])
            raise TypeError(f"{command}() got an unexpected keyword argument {name!r}{near}")
        if value is None:
            continue
        is_flag = kind_of(known[own][0]) is bool
        if is_flag and not isinstance(value, bool):
            raise TypeError(f"{name} is True or False")
        if not is_flag and any(isinstance(one, bool) for one in each_of(value)):
            raise TypeError(f"{name} takes a value")
        if not is_flag or value is not is_negated:
            yield own, (True if is_flag else value)


def _arguments(known: _Members, values: list[object]) -> Iterator[tuple[str, object]]:
    of = next((of for of, (_, field) in known.items() if field.is_argument), None)
    if of is None:
        return
    hint, field = known[of]
    kind: Any = get_origin(hint)
    if values:
        yield of, values if kind is tuple else values[0]
    elif field.settings["required"]:
        raise InputError(f"{field.settings['metavar']} is needed")


def _words(known: _Members, values: Mapping[str, object]) -> Iterator[str]:
    options = (one for one in values.items() if not known[one[0]][1].is_argument)
    for of, value in options:
        flag = max(known[of][1].flags_of(of), key=len)
        yield from [flag] if value is True else (f"{flag}={text_of(one)}" for one in each_of(value))
    for of in values.keys() & {of for of, (_, field) in known.items() if field.is_argument}:
        words = [*map(text_of, each_of(values[of]))]
        if any(word.startswith("-") for word in words):
            yield "--"  # what follows is no option
        yield from words


def path_of(value: str | os.PathLike[str]) -> Path:
    """Converts a value to a Path. Raises InputError if no file can have this name."""
    return Path(text_of(value))


def takes(options: type) -> Callable[[_F], _F]:
    """Adds the keys of a TypedDict to a function's signature, for help and completion."""

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
