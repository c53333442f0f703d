"""The faults that `--fault` takes."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.backends.sim.faults import FAULTS, PARAMETERS, parameters
from linkgauge.report.blocks import Block
from linkgauge.report.results import table

_GRAMMAR = "--fault 'KIND TARGET [NAME=VALUE]…'   TARGET: a device, a link, a node, or *"


def fault_blocks(_: None) -> Iterator[Block]:
    rows = []
    for name, kind in FAULTS.items():
        taken = " ".join(f"{key}={value}" for key, value in parameters(kind).items())
        rows.append((name, kind.example, f"{kind.meaning} (by default {taken})"))
    yield table(_GRAMMAR, ("kind", "example", "what happens"), rows)
    meanings = ((name, one.meaning) for name, one in PARAMETERS.items())
    yield table("Parameters", ("", "meaning"), meanings)
