"""The runs of a history: a row for each, the oldest first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from linkgauge.model.history import PastRun
from linkgauge.model.units import count_of
from linkgauge.report.blocks import Block, Column, Entry, Prose, Table, Tone, plain
from linkgauge.report.files import csv_text

SCHEMA = "linkgauge.history/1"
_HEADS = tuple(map(Column, ("started (UTC)", "host", "accelerators", "label", "profile", "run")))
_TONES: dict[str, Tone] = {"pass": "", "skip": "dim"}


class HistoryDocument(msgspec.Struct, frozen=True, tag_field="schema", tag=SCHEMA):
    """The runs of a history.

    schema: The kind of document, and its version.
    runs: The runs, the oldest first.
    """

    runs: tuple[PastRun, ...]


def blocks(history: HistoryDocument) -> Iterator[Block]:
    if history.runs:
        yield Table((), _HEADS, list(map(_row, history.runs)))
    else:
        yield Prose([plain("no such run is in the history")])


def _row(run: PastRun) -> tuple[Entry, ...]:
    tone = "warn" if run.low or run.finished is None else _TONES.get(run.status, "bad")
    kept = f"; {_near(run.path)}" if run.path else ""
    return (
        Entry(run.started[:16].replace("T", " "), tone="name"),
        Entry(f"{run.host} SIMULATED" if run.simulated else run.host),
        Entry(run.accelerators),
        Entry(run.label),
        Entry(run.profile),
        Entry(f"{_cells(run)}{kept}", tone=tone),
    )


def _near(path: str) -> str:
    """Relative to the current folder, if it lies there."""
    with suppress(OSError, ValueError):
        return str(Path(path).relative_to(Path.cwd()))
    return path


def _cells(run: PastRun) -> str:
    """`120 of 120 cells passed`, `118 of 120 cells passed, 3 low`, and how it ended."""
    passed = f"{run.passed} of {count_of(run.cells)} passed"
    if run.cells == 0 or (run.status == "skip" and run.passed == 0):
        passed = f"nothing measured of {count_of(run.cells)}" if run.cells else "nothing measured"
    parts = (
        passed,
        f"{run.low} low" if run.low else "",
        "" if run.status in _TONES else run.status,
        "" if run.finished else "interrupted",
        "under a profiler" if run.profiled else "",
    )
    return ", ".join(filter(None, parts))


def history_csv(history: HistoryDocument) -> str:
    """A line for each run; its benchmarks with blanks between them."""
    names = PastRun.__struct_fields__
    rows = ([_field(getattr(run, name)) for name in names] for run in history.runs)
    return csv_text((names, *rows))


def _field(value: object) -> object:
    return " ".join(value) if isinstance(value, tuple) else value
