"""The registry of output formats: each file of this folder is one, and registers itself by being
there with a `FORMAT`.

They load fast, since the command line asks every format for its flag: what renders is loaded when
it is needed (`late`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, NamedTuple

Kind = Literal["run", "plan", "machine", "findings", "benchmarks"]
"""What there is to write: a Run, a DryRun, a Machine, Findings, benchmark Rows."""
TERMINAL = "terminal"
"""What is written where no other format is asked for."""


class Format(NamedTuple):
    """`--name` asks for it. `renderers`, by the kind of what they render, return text, or what a
    console prints line by line."""

    name: str
    help: str
    renderers: Mapping[Kind, Callable[[Any], str | Iterable[Any]]]

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def is_document(self) -> bool:
        """It has stdout for itself: all else goes to stderr."""
        return self.name != TERMINAL

    def write(self, kind: Kind, value: object) -> None:
        """To stdout. Raises InputError for a kind that it does not render."""
        if kind not in self.renderers:
            from linkgauge.model.errors import InputError

            raise InputError(f"{self.flag} does not render a {kind}")
        rendered = self.renderers[kind](value)
        if isinstance(rendered, str):
            sys.stdout.write(rendered)
            return
        from linkgauge.report.run_text import make_console

        console = make_console()
        for line in rendered:
            console.print(line)


def late(module: str, function: str) -> Callable[[Any], Any]:
    """The function of a module, which is loaded when something is to be rendered."""

    def render(value: Any) -> Any:
        return getattr(import_module(f"linkgauge.{module}"), function)(value)

    return render


@cache
def formats() -> dict[str, Format]:
    """All of them, by name."""
    modules = (import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__))
    return {module.FORMAT.name: module.FORMAT for module in modules}
