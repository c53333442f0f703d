"""The headings of options in a command's help, and what a shell proposes for an option. Nothing of
the command line is loaded for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    """What is typed when a shell asks for proposals: the value so far, and the other options."""

    text: str
    others: Mapping[str, Any]


Offer = Callable[[Typed], Iterable[str]]
"""A function that returns the values that the shell proposes. It opens no device."""
