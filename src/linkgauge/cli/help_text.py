"""Splits the help of commands into paragraphs, and defines its headings. Imports no command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import cleandoc
from typing import Any, NamedTuple

COMMANDS, ARGUMENTS = "Commands", "Arguments"
WHAT = "What to measure"
WHEN = "When"
WHICH = "Which runs"
SETTINGS = "Settings to compare"
PRECISION = "How precisely"
OUTPUT = "Output"
ENGINES = "Devices and engines"
COLLECTIVES = "Collectives"
MACHINES = "Simulated and captured machines"
RUNS = "Several runs and profilers"
OTHER = "Options"
"""The heading of options that name none."""
HEADINGS = (
    WHAT,
    WHEN,
    WHICH,
    SETTINGS,
    PRECISION,
    OUTPUT,
    ENGINES,
    COLLECTIVES,
    MACHINES,
    RUNS,
    OTHER,
)


class Typed(NamedTuple):
    """What was typed when a shell asks for proposals: part of a value, and the other options."""

    text: str
    others: Mapping[str, Any]


Offer = Callable[[Typed], Iterable[str]]
"""A function that returns the values that the shell proposes. It opens no device."""


EXAMPLES = "Examples:"


def examples(help_text: str | None) -> list[str]:
    texts = (text for text in paragraphs(help_text) if text.startswith(EXAMPLES))
    return [line.strip() for text in texts for line in text.splitlines()[1:]]


def paragraphs(docstring: str | None) -> list[str]:
    """Returns the paragraphs of a docstring, each on one line. Lines of examples stay separate."""
    texts = cleandoc(docstring or "").split("\n\n")
    return [text if text.startswith(EXAMPLES) else " ".join(text.split()) for text in texts]
