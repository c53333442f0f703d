"""Defines the options of commands. A command is a function of one struct, and the fields of the
struct are the options.

An option has the name and type of its field (`max_time: Time | None` is `--max-time`). `option` and
`argument` define everything else. If the type of a field is itself a struct of options (`sampling:
Sampling`), its options are added. A format (`form: RunFormat`) adds a flag for each format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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

import click

from linkgauge.model.errors import InputError

from .help_text import OUTPUT, HelpArgument, HelpOption, Offer

if TYPE_CHECKING:
    from linkgauge.report.formats import Format
# Formats are imported when they are needed: they load other packages' rooms, which import this.

MOST = 10**9
_O = TypeVar("_O", bound="Options")
_S = TypeVar("_S", bound=str)


class _Reading(click.ParamType[Any]):
    """A type for click whose values are converted by a function. The function gets the option's
    flag and the text."""

    name = "value"

    def __init__(self, read: Callable[[str, Any], Any]) -> None:
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: object) -> Any:
        return self._read(param.opts[0] if param else "", value)


def _seconds(flag: str, given: str | float) -> float:
    from linkgauge.model.units import parse_duration

    return parse_duration(given, flag) if isinstance(given, str) else given


def _count(flag: str, given: Any) -> int:
    count: int = click.INT.convert(given, None, None)
    if count < 1:
        raise InputError(f"{flag} {count} is too few: give 1 or more")
    if count > MOST:
        raise InputError(f"{flag} {count} is too many: give at most {MOST}")
    return count


Time = Annotated[float, _Reading(_seconds)]
"""A time in seconds, written as 5, 5s, 2m or 1h30m. Raises InputError for anything else."""
Count = Annotated[int, _Reading(_count)]
"""A number from 1 to a thousand million. Raises InputError for other numbers."""


def _reading(kind: Any) -> Any:
    """Returns the type with which click reads a value of str, int, float, bool, Path, Time, Count,
    or words of a Literal."""
    if get_origin(kind) is Literal:
        return _Reading(lambda flag, given: one_of(flag, given, get_args(kind)))
    if get_origin(kind) is Annotated:
        return kind.__metadata__[0]
    return click.Path(path_type=Path) if kind is Path else kind


class Field(NamedTuple):
    """The definition of an option or argument, without its name and type. On an object without a
    value for the option, the default is returned."""

    make: type[HelpOption | HelpArgument]
    default: Any
    flags: str | None
    settings: Mapping[str, Any]

    def __get__(self, options: object | None, kind: type) -> Any:
        return self if options is None else self.default

    def parameter(self, name: str, hint: Any) -> click.Parameter:
        """Makes click's parameter for a field of this name and type. The type is a plain type, a
        plain type or None, or a tuple."""
        is_several = get_origin(hint) is tuple
        is_plain = get_origin(hint) not in (tuple, Union, UnionType)
        kind = hint if is_plain else get_args(hint)[0]
        settings = {"type": _reading(kind), **self.settings}
        if not self.settings.get("required"):
            settings["default"] = () if is_several else self.default
        if self.make is HelpArgument:
            return HelpArgument([name], nargs=-1 if is_several else 1, **settings)
        flags = (self.flags or f"--{name.replace('_', '-')}").split()
        return HelpOption([name, *flags], multiple=is_several, is_flag=kind is bool, **settings)


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
    """Defines a field for an option that the help shows under `heading`. Without a `metavar` the
    option is a flag. `flags` are separated by blanks and replace the flag made from the field's
    name. `more` is passed to click."""
    shown = {"heading": heading, "help": help, "metavar": metavar, "show_default": True}
    value = False if metavar is None else default
    return Field(HelpOption, value, flags, {**shown, "offer": offer, **more})


def instead(heading: str, help: str, action: Callable[[], object], *, is_eager: bool = True) -> Any:
    """Defines a field for a flag that runs `action` instead of the command. If the flag is eager,
    the action runs before other options are read."""

    def carry_out(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
        if asked:
            action()
            context.exit()

    return option(heading, help, callback=carry_out, is_eager=is_eager, expose_value=False)


def beforehand(heading: str, help: str, key: str, flags: str) -> Any:
    """Defines a field for a flag that must be known before other options are read. The flag's value
    is stored in `meta` of click's context, as `key`."""

    def keep(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
        context.meta[key] = asked

    return option(heading, help, flags=flags, callback=keep, is_eager=True, expose_value=False)


def argument(
    metavar: str, help: str, *, default: Any = None, offer: Offer | None = None, **more: Any
) -> Any:
    """Defines a field for an argument. `more` is passed to click, such as `required=True` for a
    required argument."""
    settings = {"metavar": metavar, "help": help, "required": False, "offer": offer, **more}
    return Field(HelpArgument, default, None, settings)


@dataclass_transform(kw_only_default=True)
class Options:
    """The values of the options of a command or a group of options. Each option is a field."""

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)


def parameters(kind: type[Options]) -> Iterator[click.Parameter]:
    """Yields all click parameters for these options, in the order of the fields."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if _is_group(hint):
            yield from parameters(hint)
        elif _is_format(hint):
            for form in _forms(hint, kind):
                yield option(OUTPUT, form.help).parameter(form.name, bool)
        else:
            yield getattr(kind, name).parameter(name, hint)


def filled(kind: type[_O], given: Mapping[str, Any]) -> _O:
    """Returns the options as an object, from the values that click has read. Raises InputError if
    two formats were chosen."""

    def value(name: str, hint: Any) -> Any:
        if _is_group(hint):
            return filled(hint, given)
        return _chosen(hint, kind, given) if _is_format(hint) else given.get(name)

    hints = get_type_hints(kind, include_extras=True)
    return kind(**{name: value(name, hint) for name, hint in hints.items()})


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Options)


def _is_format(hint: Any) -> bool:
    from linkgauge.report.formats import Format

    return getattr(hint, "__origin__", None) is Format


def _forms(hint: Any, kind: type[Options]) -> list[Format]:
    """Returns the output formats that a command's document has. A plug-in's format is left out if
    its name is that of one of the command's options."""
    from linkgauge.report.formats import formats

    (document,) = hint.__metadata__
    forms = [form for form in formats().values() if form.is_document and document.has(form)]
    return [form for form in forms if form.hook.is_ours or form.name not in _names(kind)]


def _names(kind: type[Options]) -> Iterator[str]:
    """Yields the names of these options, as their flags have them."""
    yield "help"
    for name, hint in get_type_hints(kind, include_extras=True).items():
        yield from _names(hint) if _is_group(hint) else (name.replace("_", "-"),)


def _chosen(hint: Any, kind: type[Options], given: Mapping[str, Any]) -> Format:
    """Returns the format that the user chose, or the terminal's format by default. Raises
    InputError if two formats were chosen."""
    from linkgauge.report.formats import TERMINAL, formats

    asked = [form for form in _forms(hint, kind) if given[form.name]]
    if len(asked) > 1:
        names = " and ".join(form.flag for form in asked)
        raise InputError(f"{names} both want stdout: choose one")
    return asked[0] if asked else formats()[TERMINAL]


def one_of(flag: str, name: str, known: Iterable[_S]) -> _S:
    """Returns `name` unchanged if it is a known name. Raises InputError otherwise."""
    there = tuple(known)
    found = next((one for one in there if one == name), None)
    if found is None:
        from linkgauge.model.names import hint

        raise InputError(f"{flag} {name}{hint(name, there)}")
    return found


def within(name: str, value: int | None, kind: Any) -> int | None:
    """Returns the number unchanged if its type (such as Threads) allows it. Raises InputError
    otherwise."""
    import msgspec

    try:
        return msgspec.convert(value, kind | None)  # type: ignore[no-any-return]
    except msgspec.ValidationError:
        raise InputError(f"{name} {value}: give {kind.__metadata__[0].description}") from None
