"""The registry of output formats: each module of this folder is one, registered by its `FORMAT`.

They load fast, since the command line asks every format for its flag: renderers are imported when
they are needed (`late`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, NamedTuple

Kind = Literal[
    "run", "plan", "machine", "machine in detail", "findings", "domain", "benchmarks",
    "names of benchmarks", "comparisons", "run comparison", "every cell of runs", "gate",
    "variation", "scaling", "summary", "samples", "history", "trends",
    "condition",
]  # fmt: skip
"""What can be written: a Run, a DryRun, a Machine (in two lengths), Findings, a DomainReport,
benchmark Rows, Comparisons, a RunComparison (in two lengths), a Gate, a Variation, a Scaling; of a
JudgedRun, its cells or its samples; the runs of a history, Trends, and what a check found."""
TERMINAL = "terminal"
"""The default format."""


class Format(NamedTuple):
    """Selected by `--name`. `renderers`, by the kind that they render, return text, lines for a
    console to print, or bytes for a file."""

    name: str
    help: str
    renderers: Mapping[Kind, Callable[[Any], str | bytes | Iterable[Any]]]

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def is_document(self) -> bool:
        """Whether it has stdout to itself: all else goes to stderr."""
        return self.name != TERMINAL

    def render(self, kind: Kind, value: object) -> str | bytes | Iterable[Any]:
        """The document. Raises InputError for a kind that it does not render."""
        if kind not in self.renderers:
            from linkgauge.model.errors import InputError

            what = kind if kind in ("samples", "findings", "comparisons") else f"a {kind}"
            raise InputError(f"{self.flag} does not render {what}")
        return self.renderers[kind](value)

    def document(self, kind: Kind, value: object) -> bytes:
        """What a file of this format holds. Raises InputError for a kind that it does not
        render."""
        rendered = self.render(kind, value)
        if isinstance(rendered, bytes):
            return rendered
        return (rendered if isinstance(rendered, str) else "\n".join(map(str, rendered))).encode()

    def write(self, kind: Kind, value: object) -> None:
        """Writes to stdout. Raises InputError for a kind that it does not render, and for bytes."""
        rendered = self.render(kind, value)
        if isinstance(rendered, str):
            sys.stdout.write(rendered)
            return
        if isinstance(rendered, bytes):
            from linkgauge.model.errors import InputError

            raise InputError(f"{self.flag} is not text: give a file with -o")
        from linkgauge.report.console import make_console

        console = make_console()
        for line in rendered:
            console.print(line)


def late(module: str, function: str) -> Callable[[Any], Any]:
    """The function of a module that is imported when it is first called."""

    def render(value: Any) -> Any:
        return getattr(import_module(f"linkgauge.{module}"), function)(value)

    return render


@cache
def formats() -> dict[str, Format]:
    """All formats by name."""
    modules = (import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__))
    return {module.FORMAT.name: module.FORMAT for module in modules}
