"""Reads a Containerfile: as much of the language as the one here takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Instruction(NamedTuple):
    word: str
    rest: str


class Stage(NamedTuple):
    """A FROM and what follows it; `name` is what later stages call it."""

    image: str
    name: str | None
    instructions: tuple[Instruction, ...]


def instructions(text: str) -> Iterator[Instruction]:
    """Lines that end with a backslash go on; comments and empty lines between them are nothing."""
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        word, _, rest = line.strip().partition(" ")
        yield Instruction(word.upper(), rest.strip())


def stages(text: str) -> tuple[dict[str, str], tuple[Stage, ...]]:
    """The arguments before the first FROM, and the stages."""
    defaults: dict[str, str] = {}
    found: list[Stage] = []
    for one in instructions(text):
        if one.word == "FROM":
            image, _, name = one.rest.partition(" AS ")
            found.append(Stage(expanded(image, defaults), name or None, ()))
        elif found:
            last = found[-1]
            found[-1] = last._replace(instructions=(*last.instructions, one))
        else:
            assert one.word == "ARG", one
            name, _, value = one.rest.partition("=")
            defaults[name] = value
    return defaults, tuple(found)


def expanded(text: str, values: Mapping[str, str]) -> str:
    """With $NAME and ${NAME} replaced; of a name without value nothing is left."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda m: values.get(m[1] or m[2], ""), text)
