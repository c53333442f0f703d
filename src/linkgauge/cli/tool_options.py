"""Defines options of other tools in tables, and reads command lines by these tables."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn, Self

from linkgauge.model.errors import InputError

_NAME = re.compile(r"(?<![^\s,\[])--?([A-Za-z][\w-]*)")


class UsageError(InputError):
    """Raised for arguments that a tool cannot read or measure. The tool defines `exit_code`."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ToolOption(NamedTuple):
    """An option of another tool, as `written` in its help (`-t, --timeout <int>`). `read` converts
    the text to a value, or raises ValueError or InputError. An option without `read` is a switch.
    `field` is the value's name (default: the longest name of the option). `least` and `most` bound
    the value. If `several`, the option takes one or more words each time. `default` is its value if
    it is not given."""

    written: str
    about: str = ""
    read: Callable[[str], object] | None = None
    field: str = ""
    least: float | None = None
    most: float | None = None
    several: bool = False
    default: Any = None

    def __get__(self, options: object | None, kind: type) -> Any:
        return self if options is None else self.default

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(_NAME.findall(self.written))

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(match[0] for match in _NAME.finditer(self.written))

    @property
    def dest(self) -> str:
        return self.field or max(self.names, key=len).replace("-", "_")

    def value_of(self, written: str) -> Any:
        """Converts a text to a value. Raises ValueError or InputError for an invalid text."""
        value: Any = written if self.read is None else self.read(written)
        low, high = self.least, self.most
        if low is None or value is None or (low <= value and (high is None or value <= high)):
            return value
        raise ValueError(f"give {low} or more" if high is None else f"give {low} to {high}")


def one_of(*words: str) -> Callable[[str], str]:
    def read(word: str) -> str:
        if word not in words:
            raise ValueError(f"give one of {', '.join(words)}")
        return word

    return read


def help_lines(options: Iterable[ToolOption], width: int) -> str:
    indent = "\n" + " " * (width + 2)
    return "\n".join(
        f"  {option.written:<{width}}{option.about}".replace("\n", indent) for option in options
    )


def digits(written: str) -> int | None:
    """Reads decimal digits as a number, at most the first 19. Returns None for other texts."""
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
    with suppress(ValueError):
        if "_" not in written and written.isascii():  # else only Python reads it as a number
            return float(written)
    raise ValueError(f"{written!r} is not a number")


class Parser(argparse.ArgumentParser):
    """Parses a command line by a table of options. Long names may be abbreviated. A wrong command
    line raises UsageError with the tool's `exit_code`; the process does not exit."""

    def __init__(self, options: Iterable[ToolOption] = (), exit_code: int = 1) -> None:
        super().__init__(add_help=False, argument_default=argparse.SUPPRESS)
        self._options = tuple(options)
        self._exit_code = exit_code
        for one in self._options:
            if one.read is None:
                self.add_argument(*one.flags, dest=one.dest, action="store_true")
            elif one.several:
                self.add_argument(*one.flags, dest=one.dest, nargs="+", action="extend")
            else:
                self.add_argument(*one.flags, dest=one.dest)

    def given(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Returns the values of the given options by field. Raises UsageError for a wrong value."""
        given = vars(self.parse_args(list(arguments)))
        for one in self._options:
            if one.dest in given and one.read is not None and not one.several:
                try:
                    given[one.dest] = one.value_of(given[one.dest])
                except (ValueError, InputError) as error:
                    self.error(f"{one.flags[-1]} {given[one.dest]}: {error}")
        return given

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self._exit_code)


def option(
    written: str,
    about: str = "",
    read: Callable[[str], object] | None = None,
    default: Any = None,
    *,
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """Defines a field of ToolOptions as a ToolOption. A switch is False if it is not given."""
    value = False if read is None else default
    return ToolOption(written, about, read, "", least, most, default=value)


class ToolOptions:
    """The options of a tool as fields. Each has the given value, or its default."""

    def __init__(self, **given: Any) -> None:
        if unknown := given.keys() - vars(type(self)).keys():
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        vars(self).update(given)

    @classmethod
    def table(cls) -> tuple[ToolOption, ...]:
        named = ((name, one) for name, one in vars(cls).items() if isinstance(one, ToolOption))
        return tuple(one._replace(field=name) for name, one in named)

    @classmethod
    def of(cls, arguments: Sequence[str], exit_code: int = 1) -> Self:
        """Reads a command line. Raises UsageError."""
        return cls(**Parser(cls.table(), exit_code).given(arguments))
