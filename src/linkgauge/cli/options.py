"""Defines commands' options. A command is a function of a struct, whose fields are the options.

An option has the name and type of its field (`max_time: Time | None` is `--max-time`). `option` and
`argument` define everything else. A field that is a struct of options (`sampling: Sampling`) adds
all its options. A field that is a format (`form: RunFormat`) adds a flag for each format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from operator import attrgetter
from os import PathLike, fspath
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from linkgauge.model.errors import InputError

from .help_text import Offer

if TYPE_CHECKING:
    from linkgauge.report.formats import Format
# Formats are imported when they are needed: they load other packages' rooms, which import this.

MOST = 10**9
Reading = Callable[[str, Any], Any]
"""A function that converts a value, or its text. It gets the option's flag and the value."""
_O = TypeVar("_O", bound="Options")
_S = TypeVar("_S", bound=str)


def _seconds(flag: str, given: str | float) -> float:
    from linkgauge.model.units import parse_duration

    return parse_duration(given, flag) if isinstance(given, str) else given


def _count(flag: str, count: int) -> int:
    if count < 1:
        raise InputError(f"{flag} {count} is too few: give 1 or more")
    if count > MOST:
        raise InputError(f"{flag} {count} is too many: give at most {MOST}")
    return count


Time = Annotated[float, _seconds]
"""A time in seconds, written as 5, 5s, 2m or 1h30m. Raises InputError for anything else."""
Count = Annotated[int, _count]
"""A number from 1 to a thousand million. Raises InputError for other numbers."""


def kind_of(hint: Any) -> Any:
    """Returns the type of one value of a field: T for `tuple[T, ...]` and for `T | None`."""
    return get_args(hint)[0] if get_origin(hint) in (tuple, Union, UnionType) else hint


def reading_of(kind: Any) -> Reading | None:
    """Returns a function that reads a text as this type. None means that click reads it."""
    if get_origin(kind) is Literal:
        return lambda flag, given: one_of(flag, given, get_args(kind))
    return kind.__metadata__[0] if get_origin(kind) is Annotated else None


class Field(NamedTuple):
    """Defines an option or argument, except for its name and type. Types are str, int, float, bool,
    Path, Time, Count and Literals, and `T | None` and tuples of these."""

    is_argument: bool
    default: Any
    flags: str | None
    settings: Mapping[str, Any]

    def __get__(self, options: object | None, kind: type) -> Any:
        return self if options is None else self.default

    def flags_of(self, name: str) -> list[str]:
        if self.is_argument:
            return []
        return (self.flags or f"--{name.replace('_', '-')}").split()


def option(
    heading: str,
    help: str,
    metavar: str | None = None,
    flags: str | None = None,
    *,
    default: Any = None,
    offer: Offer | None = None,
    **more: Any,
) -> Any:
    """Defines an option, or a switch if there is no `metavar`. `flags` (`-o --output`) replace the
    flag made from the field's name. `more` is passed to click."""
    shown = {"heading": heading, "help": help, "metavar": metavar, "show_default": True}
    value = False if metavar is None else default
    return Field(False, value, flags, {**shown, "offer": offer, **more})


def instead(heading: str, help: str, action: Callable[[], object], *, is_eager: bool = True) -> Any:
    """Defines a flag that runs `action` in place of the command. If `is_eager`, the action runs
    before other options are read."""
    return option(heading, help, action=action, is_eager=is_eager)


def argument(
    metavar: str, help: str, *, default: Any = None, offer: Offer | None = None, **more: Any
) -> Any:
    """Defines an argument. `more` is passed to click, such as `required=True`."""
    settings = {"metavar": metavar, "help": help, "required": False, "offer": offer, **more}
    return Field(True, default, None, settings)


class CommandLine(NamedTuple):
    """A command line: the words after `linkgauge`, and the names of the options that were typed."""

    words: tuple[str, ...] = ()
    typed: frozenset[str] = frozenset()


COMPLETES = "_LINKGAUGE_COMPLETE"
"""The environment variable by which a shell asks for names."""


@dataclass_transform(kw_only_default=True)
class Options:
    """The options of a command or of a group, as fields. `line` is the command line."""

    line = CommandLine()

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)


def members(kind: type[Options]) -> Iterator[tuple[str, Any, Field | None]]:
    """Yields each option's name, type and definition, which is None for a format."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if _is_group(hint):
            yield from members(hint)
        else:
            yield name, hint, None if _is_format(hint) else getattr(kind, name)


def values_of(options: Options) -> Iterator[tuple[str, Field, Any]]:
    for name, hint in get_type_hints(type(options), include_extras=True).items():
        value = getattr(options, name)
        if _is_group(hint):
            yield from values_of(value)
        elif not _is_format(hint):
            yield name, getattr(type(options), name), value


def filled(kind: type[_O], given: Mapping[str, Any], line: CommandLine | None = None) -> _O:
    """Makes an options object from values by name. Raises InputError for more than one format."""
    values: dict[str, Any] = {} if line is None else {"line": line}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if _is_group(hint):
            values[name] = filled(hint, given)
        else:
            values[name] = _chosen(hint, kind, given) if _is_format(hint) else given.get(name)
    return kind(**values)


def read(name: str, hint: Any, field: Field, given: object) -> Any:
    """Converts an option's value, which may be a text. If the option takes several values, accepts
    one value, too. Raises InputError for an invalid value."""
    if given is None:
        return () if get_origin(hint) is tuple else field.default
    if get_origin(hint) is tuple:
        return tuple(_read(name, hint, one) for one in each_of(given))
    return _read(name, hint, given)


def each_of(given: object) -> Iterable[object]:
    is_one = isinstance(given, str | PathLike | Enum) or not isinstance(given, Iterable)
    return (given,) if is_one else given  # type: ignore[return-value]


def _read(name: str, hint: Any, given: object) -> Any:
    kind = kind_of(hint)
    if kind is bool:
        return bool(given)
    reading = reading_of(kind)
    plain: Any = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    value: Any = text_of(given)
    if plain is int or (plain is float and reading is None):
        try:
            value = plain(value)
        except ValueError:
            raise InputError(f"{name} {value}: give a number") from None
    elif plain is Path:
        value = Path(value)
    return value if reading is None else reading(name, value)


def text_of(value: object) -> str:
    value = value.value if isinstance(value, Enum) else value
    text = str(fspath(value)) if isinstance(value, PathLike) else str(value)
    if "\0" in text:
        raise InputError(f"{text!r} holds a null character, which no name of a file has")
    return text


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Options)


def _is_format(hint: Any) -> bool:
    from linkgauge.report.formats import Format

    return getattr(hint, "__origin__", None) is Format


def forms_of(hint: Any, kind: type[Options]) -> list[Format]:
    """Returns a command's formats, except plug-ins' formats that are named like an option."""
    from linkgauge.report.formats import formats

    (document,) = hint.__metadata__
    forms = [form for form in formats().values() if form.is_document and document.has(form)]
    if not all(map(attrgetter("hook.is_ours"), forms)):
        taken = {"help", *(name.replace("_", "-") for name, _, _ in members(kind))}
        forms = [form for form in forms if form.hook.is_ours or form.name not in taken]
    return forms


def _chosen(hint: Any, kind: type[Options], given: Mapping[str, Any]) -> Format:
    from linkgauge.report.formats import TERMINAL, formats

    asked = [form for form in forms_of(hint, kind) if given.get(form.name)]
    if len(asked) > 1:
        names = " and ".join(form.flag for form in asked)
        raise InputError(f"{names} both want stdout: choose one")
    return asked[0] if asked else formats()[TERMINAL]


def one_of(flag: str, name: str, known: Iterable[_S]) -> _S:
    there = tuple(known)
    found = next((one for one in there if one == name), None)
    if found is None:
        from linkgauge.model.names import hint

        raise InputError(f"{flag} {name} is unknown{hint(name, there)}")
    return found


def numbers(flag: str, text: str | None, advice: str, most: int, least: int = 1) -> tuple[int, ...]:
    """Reads `1,8,64`: distinct numbers, `least` to `most`. Raises InputError with `advice`."""
    given = [] if text is None else [part.strip() for part in text.split(",")]
    digits = (part.isascii() and part.isdecimal() and len(part) < 10 for part in given)
    known = [int(part) if is_number else -1 for part, is_number in zip(given, digits, strict=True)]
    if not all(least <= number <= most for number in known):
        raise InputError(f"{flag} {text}: {advice}")
    return tuple(dict.fromkeys(known))


def within(name: str, value: int | None, kind: Any) -> int | None:
    """Returns `value`. Raises InputError if the type `kind` (such as Threads) forbids it."""
    import msgspec

    try:
        return msgspec.convert(value, kind | None)  # type: ignore[no-any-return]
    except msgspec.ValidationError:
        raise InputError(f"{name} {value}: give {kind.__metadata__[0].description}") from None
