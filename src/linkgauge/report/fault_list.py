"""The faults that `--fault` takes, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table

from linkgauge.backends.sim.faults import FAULTS, PARAMETERS, parameters

from .console import make_console


def print_faults() -> None:
    console = make_console()
    console.print("--fault 'KIND TARGET [NAME=VALUE]…'   TARGET: a device, a link, a node, or *")
    console.print(_table(("kind", "what happens", "parameters", "example"), _kinds()))
    meanings = ((name, parameter.meaning) for name, parameter in PARAMETERS.items())
    console.print(_table(("parameter", "meaning"), meanings))


def _kinds() -> Iterator[Sequence[str]]:
    for name, kind in FAULTS.items():
        taken = " ".join(f"{key}={value}" for key, value in parameters(kind).items())
        yield name, kind.meaning, taken, kind.example


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(*headings, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table
