"""Describes the options of other tools in tables, and reads command lines by these tables."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from linkgauge.model.errors import InputError
from linkgauge.model.units import parse_size

_NAME = re.compile(r"(?<![^\s,\[])--?([A-Za-z][\w-]*)")


class UsageError(InputError):
    """An error for arguments that the tool rejects."""

    exit_code = 1


class ToolOption(NamedTuple):
    """An option of another tool. `written` is the option in the tool's help (`-t, --timeout
    <int>`), and `about` explains it. `read` converts the text to the value, and raises ValueError
    or UsageError. An option without `read` is a switch. `field` is the name of the value; by
    default, the option's longest name. `least` and `most` are the bounds of the value. With
    `several`, the option takes one or more words each time."""

    written: str
    about: str = ""
    read: Callable[[str], object] | None = None
    field: str = ""
    least: float | None = None
    most: float | None = None
    several: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the option's names without dashes, the short name first."""
        return tuple(_NAME.findall(self.written))

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(match[0] for match in _NAME.finditer(self.written))

    @property
    def dest(self) -> str:
        return self.field or max(self.names, key=len).replace("-", "_")

    def value_of(self, written: str) -> object:
        """Returns the option's value for a text. Raises ValueError or UsageError."""
        return written if self.read is None else self.read(written)

    def allows(self, value: float) -> bool:
        """Whether the value is within the bounds."""
        return (self.least is None or value >= self.least) and (
            self.most is None or value <= self.most
        )

    @property
    def bounds(self) -> str:
        """Returns the bounds as text, such as `1 to 4` or `1 or more`."""
        return f"{self.least} or more" if self.most is None else f"{self.least} to {self.most}"


def help_lines(options: Iterable[ToolOption], width: int) -> str:
    """Returns a line of help for each option, with the names in a column of `width`. Further lines
    of a text are indented."""
    indent = "\n" + " " * (width + 2)
    return "\n".join(
        f"  {option.written:<{width}}{option.about}".replace("\n", indent) for option in options
    )


def digits(written: str) -> int | None:
    """Returns the number of a text of decimal digits, or None for any other text. More than 18
    digits give a number beyond any bound."""
    if not (written.isascii() and written.isdecimal()):
        return None
    return int(written.lstrip("0")[:19] or "0")


def whole(written: str) -> int:
    """Reads a whole number as C does. Raises ValueError for other texts."""
    sign = -1 if written.startswith("-") else 1
    number = digits(written.removeprefix("-" if sign < 0 else "+"))
    if number is None:
        raise ValueError(f"{written!r} is not a whole number")
    return sign * number


def decimal(written: str) -> float:
    """Reads a decimal number as C does. Raises ValueError for other texts."""
    if "_" in written or not written.isascii():  # which only Python reads as a number
        raise ValueError(f"{written!r} is not a number")
    return float(written)


def size_of(option: str, written: str) -> int:
    """Reads a size as linkgauge does, and returns bytes. Raises UsageError."""
    try:
        return parse_size(written)
    except InputError as error:
        raise UsageError(f"{option}: {error}") from error


@contextmanager
def hinting(hint: str) -> Iterator[None]:
    """Adds a hint to the error for rejected arguments while this block runs."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{error}\n{hint}") from error


class Parser(argparse.ArgumentParser):
    """Reads long options as argparse does, but neither exits nor prints. Errors become UsageError
    with argparse's message, or with the tool's own message if a pattern in `words` matches.
    `refusal` is the message for a value out of bounds. Abbreviated names are accepted only with
    `allow_abbrev`. `action` is argparse's action for options with one value. Options that were not
    given are absent from the result."""

    def __init__(
        self,
        options: Iterable[ToolOption] = (),
        words: Mapping[str, str] = MappingProxyType({}),
        *,
        refusal: str = "{flag} {value}: give {bounds}",
        allow_abbrev: bool = False,
        action: type[argparse.Action] | str = "store",
    ) -> None:
        super().__init__(
            add_help=False, allow_abbrev=allow_abbrev, argument_default=argparse.SUPPRESS
        )
        self._words = words
        self._refusal = refusal
        self._options = tuple(options)
        for one in self._options:
            if one.read is None:
                self.add_argument(*one.flags, dest=one.dest, action="store_true")
            elif one.several:
                self.add_argument(*one.flags, dest=one.dest, nargs="+", action="extend")
            else:
                self.add_argument(*one.flags, dest=one.dest, type=one.read, action=action)

    def given(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Returns the values of the options, by field. Raises UsageError."""
        given = vars(self.parse_args(list(arguments)))
        for one in self._options:
            if one.dest in given and not one.allows(value := given[one.dest]):
                what = {"flag": one.flags[-1], "value": value, "bounds": one.bounds}
                raise UsageError(self._refusal.format(**what, least=one.least, most=one.most))
        return given

    def error(self, message: str) -> NoReturn:
        found = ((re.fullmatch(pattern, message), words) for pattern, words in self._words.items())
        raise UsageError(next((match.expand(own) for match, own in found if match), message))


class OnceAction(argparse.Action):
    """An action for an option that may be given only once. The option is absent until it is
    given."""

    refusal = "option {given} is given more than once"

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, values: Any, flag: str | None = None
    ) -> None:
        if hasattr(namespace, self.dest):
            longest = max(self.option_strings, key=len)
            raise UsageError(self.refusal.format(given=flag, longest=longest))
        setattr(namespace, self.dest, values)


class FoundOption(NamedTuple):
    """One option or operand of a command line. `option` is None for an operand. `value` is empty if
    the option takes none. `problem` is the C library's message for an argument that it does not
    understand."""

    option: ToolOption | None
    value: str = ""
    problem: str = ""


def getopt_long(arguments: Sequence[str], options: Sequence[ToolOption]) -> Iterator[FoundOption]:
    """Yields the options and operands in their order, as C's `getopt_long` reads them. Values may
    be attached, and long names may be shortened."""
    by_name = {name: option for option in options for name in option.names}
    left = list(arguments)
    while left:
        argument = left.pop(0)
        if argument == "--":
            yield from (FoundOption(None, operand) for operand in left)
            return
        if argument.startswith("--"):
            yield _long(argument, left, by_name)
        elif argument.startswith("-") and len(argument) > 1:
            yield from _short(argument[1:], left, by_name)
        else:
            yield FoundOption(None, argument)


def _short(
    letters: str, left: list[str], by_name: Mapping[str, ToolOption]
) -> Iterator[FoundOption]:
    while letters:
        letter, letters = letters[0], letters[1:]
        option = by_name.get(letter)
        if option is None:
            yield FoundOption(None, problem=f"invalid option -- '{letter}'")
        elif option.read is None:
            yield FoundOption(option)
        elif letters or left:
            yield FoundOption(option, letters or left.pop(0))
            return
        else:
            yield FoundOption(None, problem=f"option requires an argument -- '{letter}'")


def _long(argument: str, left: list[str], by_name: Mapping[str, ToolOption]) -> FoundOption:
    name, equals, value = argument[2:].partition("=")
    known = [own for own in by_name if len(own) > 1 and own.startswith(name)]
    alike = [name] if name in known else known
    if not alike:
        return FoundOption(None, problem=f"unrecognized option '--{name}'")
    if len(alike) > 1:
        named = " ".join(f"'--{own}'" for own in alike)
        return FoundOption(
            None, problem=f"option '{argument}' is ambiguous; possibilities: {named}"
        )
    option = by_name[alike[0]]
    if option.read is None:
        unwanted = f"option '--{alike[0]}' doesn't allow an argument"
        return FoundOption(None, problem=unwanted) if equals else FoundOption(option)
    if equals:
        return FoundOption(option, value)
    if left:
        return FoundOption(option, left.pop(0))
    return FoundOption(None, problem=f"option '--{alike[0]}' requires an argument")
