"""The runs of a history: a line for each, the oldest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from linkgauge.model.history import PastRun
from linkgauge.model.units import count_of

from .csv_text import csv_text
from .files import json_document

SCHEMA = "linkgauge.history/1"
HEADINGS = ("started (UTC)", "host", "accelerators", "label", "profile", "cells", "kept in")
_NAMES = 5
"""The first columns say which run it is; the others how it went and where it is kept."""
_GAP, _INDENT = "  ", "    "
_STYLES = {"pass": "green", "skip": "dim"}


def history_lines(runs: Sequence[PastRun]) -> Iterator[RenderableType]:
    """A table whose columns are as wide as they need to be; where the console is narrower, each run
    takes two lines or more."""
    if not runs:
        yield Text("no such run is in the history")
        return
    yield _Table([_row(run) for run in runs], [_style(run) for run in runs])


class _Table:
    def __init__(self, rows: Sequence[tuple[str, ...]], styles: Sequence[str]) -> None:
        self._rows = (HEADINGS, *rows)
        self._styles = ("", *styles)
        self._widths = [max(map(cell_len, column)) for column in zip(*self._rows, strict=True)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        is_wide = sum(self._widths) + len(_GAP) * (len(HEADINGS) - 1) <= width
        lines = self._whole if is_wide else self._split(width)
        # At once: a console takes longer for a thousand lines than a database.
        head, *others = map(lines, self._rows, self._styles)
        for line in head:
            line.stylize("cyan")
        yield from head
        yield Group(*(line for run in others for line in run))

    def _whole(self, row: Sequence[str], style: str) -> list[Text]:
        *names, cells, place = row
        cells = _padded(cells, self._widths[_NAMES])
        line = Text(_GAP).join([*self._names(names, self._widths), Text(cells, style), Text(place)])
        line.rstrip()
        return [line]

    def _split(self, width: int) -> Callable[[Sequence[str], str], list[Text]]:
        """Lines that are at most so wide: which run it is, with the longest names cut; how it went
        and, on the same line if there is room, where it is kept."""
        widths = list(self._widths[:_NAMES])
        while sum(widths) + len(_GAP) * (_NAMES - 1) > width and max(widths[1:]) > 1:
            widths[widths.index(max(widths[1:]), 1)] -= 1

        def lines(row: Sequence[str], style: str) -> list[Text]:
            *names, cells, place = row
            first = Text(_GAP).join(self._names(names, widths))
            first.rstrip()
            second = Text(_INDENT).append(cells, style)
            if cell_len(_INDENT + cells + _GAP + place) <= width:
                return [first, second.append(_GAP + place)]
            room = max(width - len(_INDENT), 1)
            folded = [_INDENT + place[at : at + room] for at in range(0, len(place), room)]
            return [first, second, *map(Text, folded)]

        return lines

    def _names(self, names: Sequence[str], widths: Sequence[int]) -> Iterator[Text]:
        for name, width in zip(names, widths, strict=False):
            text = Text(name)
            text.truncate(width, overflow="ellipsis", pad=True)
            yield text


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _row(run: PastRun) -> tuple[str, ...]:
    host = f"{run.host} SIMULATED" if run.simulated else run.host
    return (
        run.started[:16].replace("T", " "), host, run.accelerators, run.label, run.profile,
        _cells(run), _near(run.path or ""),
    )  # fmt: skip


def _near(path: str) -> str:
    """Relative to the current folder, if it lies there."""
    with suppress(OSError, ValueError):
        return str(Path(path).relative_to(Path.cwd()))
    return path


def _cells(run: PastRun) -> str:
    """`120 passed`, `118 of 120 passed, 3 low`, and how it ended."""
    if run.cells == 0 or (run.status == "skip" and run.passed == 0):
        parts = [f"nothing measured of {count_of(run.cells)}" if run.cells else "nothing measured"]
    else:
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


class HistoryDocument(msgspec.Struct, frozen=True, tag_field="schema", tag=SCHEMA):
    """The runs of a history.

    schema: The kind of document, and its version.
    runs: The runs, the oldest first.
    """

    runs: tuple[PastRun, ...]


def history_document(runs: Sequence[PastRun]) -> str:
    """One JSON document of all."""
    return json_document(HistoryDocument(tuple(runs)))


def history_csv(runs: Sequence[PastRun]) -> str:
    """A line for each run; its benchmarks with blanks between them."""
    names = PastRun.__struct_fields__
    rows = ([_field(getattr(run, name)) for name in names] for run in runs)
    return csv_text((names, *rows))


def _field(value: object) -> object:
    return " ".join(value) if isinstance(value, tuple) else value
