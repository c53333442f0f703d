"""Shows the lists that commands print: benchmarks, faults, and the catalogue of checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from linkgauge.backends.sim.faults import FAULTS, PARAMETERS, parameters
from linkgauge.benchmarks.catalog import groups
from linkgauge.benchmarks.table import FIRST_LOOK, Row, Sweep
from linkgauge.model.grouped import grouped
from linkgauge.report.blocks import Block, Prose, plain
from linkgauge.report.results import table

if TYPE_CHECKING:
    from linkgauge.judge.doctor.catalogue import Catalogue


def overview_blocks(rows: Sequence[Row | Sweep]) -> Iterator[Block]:
    asked = {row.name for row in rows}
    for title, group in groups().items():
        if names := [row.name for row in group if row.name in asked]:
            yield Prose([plain(title, "strong"), plain(f"    {'  '.join(names)}")])
    yield Prose([plain("-v describes them all; --prefix NAME, those that begin with NAME.", "dim")])


def benchmark_blocks(rows: Sequence[Row | Sweep]) -> Iterator[Block]:
    asked = {row.name: [one for one in row.profiles if one != FIRST_LOOK] for row in rows}
    texts = ((row.name, " ".join(asked[row.name]), row.title) for row in rows)
    yield table("Benchmarks", ("", "profiles", "what it measures"), texts)


def benchmarks_document(rows: Sequence[Row | Sweep]) -> str:
    from linkgauge.report.files import json_document  # knows runs, which this list does not need

    return json_document(
        [{"name": row.name, "title": row.title, "profiles": row.profiles} for row in rows]
    )


# The faults that `--fault` takes.

_GRAMMAR = "--fault 'KIND TARGET [NAME=VALUE]…'   TARGET: a device, a link, a node, or *"


def fault_blocks(_: None) -> Iterator[Block]:
    rows = []
    for name, kind in FAULTS.items():
        taken = " ".join(f"{key}={value}" for key, value in parameters(kind).items())
        rows.append((name, kind.example, f"{kind.meaning} (by default {taken})"))
    yield table(_GRAMMAR, ("kind", "example", "what happens"), rows)
    meanings = ((name, one.meaning) for name, one in PARAMETERS.items())
    yield table("Parameters", ("", "meaning"), meanings)


# What the doctor and `check` can find.

_OF = {"doctor": "Checks of the doctor", "check": "Reasons why check calls a node unhealthy"}


def check_blocks(catalogue: Catalogue) -> Iterator[Block]:
    heads = ("id", "severity", "reads", "finds", "why it matters", "action", "a waiver accepts")
    for of, checks in grouped((one.of, one) for one in catalogue.checks).items():
        rows = (
            (one.id, " ".join(one.severity), one.reads, one.limit, one.why, one.action,
             ("" if of == "check" else one.unit or "a severity"))
            for one in checks
        )  # fmt: skip
        yield table(_OF[of], heads, rows)
    for tool, tests in grouped((one.tool, one) for one in catalogue.counterparts).items():
        texts = ((one.test, " ".join(one.checks), one.note) for one in tests)
        yield table(tool, ("test", "checks", ""), texts)
