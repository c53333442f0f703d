"""Suggests corrections of names that people type, and joins names to a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from .errors import InputError

_V = TypeVar("_V")


class UnknownName(InputError):
    def __init__(self, what: str, name: str, near: str) -> None:
        super().__init__(f"unknown {what} {name!r}{near}")
        self.name = name


def hint(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """Returns `, did you mean 'x'?` for a similar known name. Else returns `otherwise` or, if that
    is None, a list of all known names."""
    import difflib

    written = {_plain(one): one for one in known}
    near = difflib.get_close_matches(_plain(name), written, n=1)
    if near:
        return f", did you mean {written[near[0]]!r}?"
    return f": give one of {', '.join(written.values())}" if otherwise is None else otherwise


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_").strip("_")


def and_all(names: Iterable[str], word: str = "and") -> str:
    *most, last = dict.fromkeys(names)
    return f"{', '.join(most)} {word} {last}" if most else last


def range_of(shown: Callable[[_V], str], values: Iterable[_V], joint: str = " to ") -> str:
    """Returns the least and the greatest value, `8 B to 1 MiB`, or a single text if both agree."""
    ordered = sorted(values)  # type: ignore[type-var]
    return joint.join(dict.fromkeys(map(shown, ordered[:1] + ordered[-1:])))


def spans(names: Iterable[str]) -> str:
    """Returns names as text, with ranges of numbers: `sim:0-3, sim:7, 0000:01:00.0`."""
    runs: list[list[str]] = []
    for name in names:
        stem, number = _split(name)
        if runs and number and _split(runs[-1][-1]) == (stem, number - 1):
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(
        f"{first}-{_split(last)[1]}" if others else first
        for first, *others in runs
        for last in others[-1:] or [first]
    )


def _split(name: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"([a-z_:]+:)([0-9]+)", name)
    return (match[1], int(match[2])) if match else (name, None)
