"""The faults that `--fault` takes, as a table."""

from __future__ import annotations

from rich.table import Table

from linkgauge.backends.sim.faults import FAULTS, PARAMETERS, parameters

from .terminal import make_console


def print_faults() -> None:
    console = make_console()
    console.print("--fault 'KIND TARGET [NAME=VALUE]…'   TARGET: a device, a link, a node, or *")
    kinds = Table(box=None, pad_edge=False)
    for heading in ("kind", "what happens", "parameters", "example"):
        kinds.add_column(heading)
    for name, kind in FAULTS.items():
        taken = " ".join(f"{key}={value}" for key, value in parameters(kind).items())
        kinds.add_row(name, kind.meaning, taken, kind.example)
    console.print(kinds)
    meanings = Table(box=None, pad_edge=False)
    meanings.add_column("parameter")
    meanings.add_column("meaning")
    for name, parameter in PARAMETERS.items():
        meanings.add_row(name, parameter.meaning)
    console.print(meanings)
