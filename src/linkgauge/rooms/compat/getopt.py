"""Arguments as C's `getopt_long` reads them: short and long names, attached values, short forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

WRONG = "?"
"""The letter that stands for an argument that is not understood."""


class FoundOption(NamedTuple):
    """An option by its `letter`, with its value, null if it takes none; of one that is WRONG, the
    value is what the C library says about it. An operand has no letter."""

    letter: str | None
    value: str | None


def getopt_long(
    arguments: Sequence[str], options: Mapping[str, str], flags: str
) -> Iterator[FoundOption]:
    """What stands in the arguments, operands included, in their order. `options` are long names by
    letter; the letters in `flags` take no value."""
    left = list(arguments)
    while left:
        argument = left.pop(0)
        if argument == "--":
            yield from (FoundOption(None, operand) for operand in left)
            return
        if argument.startswith("--"):
            yield _long(argument, left, options, flags)
        elif argument.startswith("-") and len(argument) > 1:
            yield from _short(argument[1:], left, options, flags)
        else:
            yield FoundOption(None, argument)


def _short(
    letters: str, left: list[str], options: Mapping[str, str], flags: str
) -> Iterator[FoundOption]:
    while letters:
        letter, letters = letters[0], letters[1:]
        if letter not in options:
            yield FoundOption(WRONG, f"invalid option -- '{letter}'")
        elif letter in flags:
            yield FoundOption(letter, None)
        elif letters or left:
            yield FoundOption(letter, letters or left.pop(0))
            return
        else:
            yield FoundOption(WRONG, f"option requires an argument -- '{letter}'")


def _long(argument: str, left: list[str], options: Mapping[str, str], flags: str) -> FoundOption:
    name, equals, value = argument[2:].partition("=")
    known = {own: letter for letter, own in options.items()}
    alike = [name] if name in known else [own for own in known if own.startswith(name)]
    if not alike:
        return FoundOption(WRONG, f"unrecognized option '--{name}'")
    if len(alike) > 1:
        named = " ".join(f"'--{own}'" for own in alike)
        return FoundOption(WRONG, f"option '{argument}' is ambiguous; possibilities: {named}")
    letter = known[alike[0]]
    if letter in flags:
        unwanted = f"option '--{alike[0]}' doesn't allow an argument"
        return FoundOption(WRONG, unwanted) if equals else FoundOption(letter, None)
    if equals:
        return FoundOption(letter, value)
    if left:
        return FoundOption(letter, left.pop(0))
    return FoundOption(WRONG, f"option '--{alike[0]}' requires an argument")
