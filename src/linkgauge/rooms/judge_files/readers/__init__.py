"""The readers: one file for each tool or kind of text. Each reader is a function from lines to what
it found in them. Several readers may understand lines of the same text."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import msgspec

from linkgauge.rooms.judge_files.lines import cleaned
from linkgauge.rooms.judge_files.told import Facts, Log, Reader


@cache
def readers() -> tuple[Reader, ...]:
    """All readers, by the names of their files."""
    names = sorted(module.name for module in iter_modules(__path__))
    return tuple(import_module(f"{__name__}.{name}").read for name in names)


class ReadText(msgspec.Struct, frozen=True):
    """Everything that the readers found in a text.

    name: The text's name.
    lines: The number of its lines that are not empty.
    understood: The number of these that a reader understood, or skipped as another host's.
    others: The number of lines of other hosts or ranks that were left out.
    missed: The first lines that no reader understood."""

    name: str
    logs: tuple[Log, ...]
    facts: tuple[Facts, ...]
    lines: int
    understood: int
    others: int = 0
    missed: str = ""


def read_text(name: str, text: str) -> ReadText:
    """Everything that any reader finds in a text. No content of a text raises an error."""
    lines = cleaned(text)
    found = [one for read in readers() if (one := read(lines)) is not None]
    known = frozenset[int]().union(*(one.lines for one in found))
    written = [number for number, line in enumerate(lines) if line.strip()]
    missed = [number for number in written if number not in known]
    return ReadText(
        name,
        tuple(log for one in found for log in one.logs),
        tuple(one.facts for one in found),
        len(written) + lines.others,
        len(written) - len(missed) + lines.others,
        lines.others,
        lines[missed[0]].strip() if missed else "",
    )
