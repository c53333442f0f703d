"""Arguments as C's `getopt_long` reads them: short and long names, attached values, short forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

WRONG = "?"
"""The letter that stands for an argument that is not understood."""


class Found(NamedTuple):
    """An option by its `letter`, with its value, null if it takes none; of one that is WRONG, the
    value is what the C library says about it. An operand has no letter."""

    letter: str | None
    value: str | None


def getopt_long(
    arguments: Sequence[str], options: Mapping[str, str], flags: str
) -> Iterator[Found]:
    """What stands in the arguments, operands included, in their order. `options` are long names by
    letter; the letters in `flags` take no value."""
    left = list(arguments)
    while left:
        argument = left.pop(0)
        if argument == "--":
            yield from (Found(None, operand) for operand in left)
            return
        if argument.startswith("--"):
            yield _long(argument, left, options, flags)
        elif argument.startswith("-") and len(argument) > 1:
            yield from _short(argument[1:], left, options, flags)
        else:
            yield Found(None, argument)


def _short(
    letters: str, left: list[str], options: Mapping[str, str], flags: str
) -> Iterator[Found]:
    while letters:
        letter, letters = letters[0], letters[1:]
        if letter not in options:
            yield Found(WRONG, f"invalid option -- '{letter}'")
        elif letter in flags:
            yield Found(letter, None)
        elif letters or left:
            yield Found(letter, letters or left.pop(0))
            return
        else:
            yield Found(WRONG, f"option requires an argument -- '{letter}'")


def _long(argument: str, left: list[str], options: Mapping[str, str], flags: str) -> Found:
    name, equals, value = argument[2:].partition("=")
    known = {own: letter for letter, own in options.items()}
    alike = [name] if name in known else [own for own in known if own.startswith(name)]
    if not alike:
        return Found(WRONG, f"unrecognized option '--{name}'")
    if len(alike) > 1:
        named = " ".join(f"'--{own}'" for own in alike)
        return Found(WRONG, f"option '{argument}' is ambiguous; possibilities: {named}")
    letter = known[alike[0]]
    if letter in flags:
        unwanted = f"option '--{alike[0]}' doesn't allow an argument"
        return Found(WRONG, unwanted) if equals else Found(letter, None)
    if equals:
        return Found(letter, value)
    if left:
        return Found(letter, left.pop(0))
    return Found(WRONG, f"option '--{alike[0]}' requires an argument")
