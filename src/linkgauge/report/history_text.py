"""The runs of a history: a line for each, the oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from linkgauge.model.history import PastRun
from linkgauge.model.units import count_of

from .csv_text import csv_text
from .files import json_document

SCHEMA = "linkgauge.history/1"
HEADINGS = ("started (UTC)", "host", "accelerators", "label", "profile", "cells", "kept in")
_STYLES = {"pass": "green", "skip": "dim"}


def history_lines(runs: Sequence[PastRun]) -> Iterator[RenderableType]:
    """A table whose columns are as wide as they need to be."""
    if not runs:
        yield Text("no such run is in the history")
        return
    rows = [_row(run) for run in runs]
    widths = [
        max(len(heading), *(len(row[at]) for row in rows)) for at, heading in enumerate(HEADINGS)
    ]
    widths[-1] = 0
    yield Text(_line(HEADINGS, widths), "cyan")
    before, after = sum(widths[:5]) + 10, widths[5]
    # At once: a console takes longer for a thousand lines than a database.
    lines = [Text(_line(row, widths)) for row in rows]
    for run, line in zip(runs, lines, strict=True):
        line.stylize(_style(run), before, before + after)
    yield Group(*lines)


def _row(run: PastRun) -> tuple[str, ...]:
    host = f"{run.host} SIMULATED" if run.simulated else run.host
    return (
        run.started[:16].replace("T", " "), host, run.accelerators, run.label, run.profile,
        _cells(run), run.path or "",
    )  # fmt: skip


def _cells(run: PastRun) -> str:
    """`120 passed`, `118 of 120 passed, 3 low`, and how it ended."""
    parts = [f"{run.passed} of {count_of(run.cells)} passed"]
    if run.low:
        parts.append(f"{run.low} low")
    if run.status not in ("pass", "skip"):
        parts.append(run.status)
    if run.finished is None:
        parts.append("interrupted")
    if run.profiled:
        parts.append("under a profiler")
    return ", ".join(parts)


def _style(run: PastRun) -> str:
    if run.low or run.finished is None:
        return "yellow"
    return _STYLES.get(run.status, "red")


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()


def history_document(runs: Sequence[PastRun]) -> str:
    """One JSON document of all."""
    return json_document({"schema": SCHEMA, "runs": [msgspec.to_builtins(run) for run in runs]})


def history_csv(runs: Sequence[PastRun]) -> str:
    """A line for each run; its benchmarks with blanks between them."""
    names = PastRun.__struct_fields__
    rows = ([_field(getattr(run, name)) for name in names] for run in runs)
    return csv_text((names, *rows))


def _field(value: object) -> object:
    return " ".join(value) if isinstance(value, tuple) else value
