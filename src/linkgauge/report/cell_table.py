"""Cells as a table, a line for each: figure, interval, slow samples, what is expected, verdict and
histogram, as far as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from linkgauge.model.result import CellResult, Verdict
from linkgauge.model.stats.summary import relative_error
from linkgauge.model.transfer import Report
from linkgauge.model.units import unit_of

from .expectations import HELD, HELD_STYLE, STYLES, expected_of, held_below, share_of
from .histogram import histogram
from .matrix import brief
from .shading import PEERS_MEANING, PEERS_STYLE, STATUS_STYLES, WORDS, peers_sign
from .wrapping import Hanging

_BINS = 8
_GAP = "  "
_JUDGED: dict[Verdict, str] = {"ok": "green", "low": STYLES["low"], "high": STYLES["high"]}
_UNJUDGED = "not judged"
_HOPELESS = 10.0
"""Of an interval that is so wide it matters no more how wide."""
_ESSENTIAL = 2
"""Columns that a line never does without."""


class Row(NamedTuple):
    """A cell under the name of its benchmark."""

    name: str
    cell: CellResult
    unit: str


class _Column(NamedTuple):
    """Texts with styles, a line each; columns of lower ranks are more important. The head is
    `short` where there is no room."""

    rank: int
    head: str
    entries: Sequence[tuple[str, str]]
    is_left: bool = False
    short: str | None = None

    @property
    def width(self) -> int:
        return max(len(self.head), *(len(text) for text, _ in self.entries))

    @property
    def is_empty(self) -> bool:
        return not any(text for text, _ in self.entries)

    def padded(self, text: str) -> str:
        return f"{text:<{self.width}}" if self.is_left else f"{text:>{self.width}}"


class CellTable:
    """Rows below a line with the title and the heads of the columns. Names that leave no room for
    figures stand on lines of their own; columns for which there is no room are left out."""

    def __init__(self, title: Text, rows: Sequence[Row]) -> None:
        self._title = title
        self._rows = rows
        self._columns = [column for column in _columns(rows) if not column.is_empty]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        columns, label = self._chosen(self._columns, width)
        if len(columns) < len(self._columns):
            short = [one if one.short is None else one._replace(head=one.short)
                     for one in self._columns]  # fmt: skip
            columns, label = self._chosen(short, width)
        heads = Text("".join(_GAP + column.padded(column.head) for column in columns), "cyan")
        yield from self._line(self._title, heads, label)
        for number, row in enumerate(self._rows):
            figures = Text()
            for column in columns:
                text, style = column.entries[number]
                figures.append(_GAP).append(column.padded(text), style)
            yield from self._line(Text(row.name), figures, label)
        held = [row for row in self._rows if _is_held(row.cell)]
        if held:
            yield Hanging(Text.assemble((HELD, HELD_STYLE), f" {_held(held)}"), 2)
        for sign in sorted({peers_sign(row.cell) for row in self._rows} - {""}):
            yield Hanging(Text.assemble((sign, PEERS_STYLE), f" {PEERS_MEANING[sign]}"), 2)

    def _chosen(self, columns: Sequence[_Column], width: int) -> tuple[Sequence[_Column], int]:
        """The columns for which there is room, and the width of names."""
        ranked = sorted(columns, key=lambda column: column.rank)
        longest = max(len(self._title), *(len(row.name) for row in self._rows))
        least = sum(len(_GAP) + column.width for column in ranked[:_ESSENTIAL])
        label = max(1, longest if longest + least <= width else width - least)
        kept, used = ranked[:_ESSENTIAL], label + least
        for column in ranked[_ESSENTIAL:]:
            if used + len(_GAP) + column.width <= width:
                kept.append(column)
                used += len(_GAP) + column.width
        return [column for column in columns if column in kept], label

    def _line(self, name: Text, figures: Text, label: int) -> RenderResult:
        if len(name) > label:
            yield Hanging(name, 2)
            name = Text()
        line = Text.assemble(name, " " * (label - len(name)), figures)
        line.rstrip()
        yield line


def _columns(rows: Sequence[Row]) -> list[_Column]:
    """In the order in which they are shown."""
    slow = [(_slow(row), "") for row in rows]
    return [
        _Column(0, "median", _figures(rows)),
        _Column(3, "±", [(error_of(row.cell), "") for row in rows]),
        _Column(5, "slow p95", slow, short="p95"),
        _Column(4, "worst", [(_worst(row), "") for row in rows]),
        _Column(2, "of expected", _shares(rows)),
        _Column(1, "", [_verdict(row.cell) for row in rows], is_left=True),
        _Column(6, "samples", [(_samples(row.cell), "dim") for row in rows], is_left=True),
    ]


def _figures(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Figures with their units, both aligned."""
    units = [unit_of(row.unit).shown if row.cell.headline is not None else "" for row in rows]
    width = max(map(len, units))
    return [
        (f"{brief(row.cell.headline, row.unit)} {unit:<{width}}", "bold")
        if row.cell.headline is not None
        else ("", "")
        for row, unit in zip(rows, units, strict=True)
    ]


def error_of(cell: CellResult) -> str:
    """Of the median."""
    error = relative_error(cell.summary)
    if error is None or cell.report is Report.BEST:
        return ""
    if error >= _HOPELESS:
        return f"±>{_HOPELESS - 0.01:.0%}"
    return f"±{error:.1%}" if error < 0.0995 else f"±{error:.0%}"


def _slow(row: Row) -> str:
    summary = row.cell.summary
    if summary is None or summary.slow_p95 is None:
        return ""
    return brief(summary.slow_p95, row.unit)


def _worst(row: Row) -> str:
    summary = row.cell.summary
    if summary is None:
        return ""
    lower = unit_of(row.unit).better == "lower"
    return brief(summary.max if lower else summary.min, row.unit)


def _shares(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Of what is expected; that a cell is not judged, if others are."""
    some = any(row.cell.verdict in _JUDGED for row in rows)
    return [_share(row, _UNJUDGED if some else "") for row in rows]


def _share(row: Row, unjudged: str) -> tuple[str, str]:
    cell = row.cell
    if cell.status == "pass" and cell.verdict not in _JUDGED:
        return unjudged, "dim"
    best = held_below(cell)
    if best is not None and (share := cell.share(best)) is not None:
        return f"{share:.0%} of {brief(best, row.unit)}", ""
    share, expected = share_of(cell), expected_of(cell)
    known = share is not None and expected is not None
    return f"{share:.0%} of {brief(expected or 0.0, row.unit)}" if known else "", ""


def _is_held(cell: CellResult) -> bool:
    """Whether a link of its path runs below its best, which its share is then of."""
    return cell.status == "pass" and cell.verdict in _JUDGED and held_below(cell) is not None


def _held(rows: Sequence[Row]) -> str:
    """What the sign means, with what these cells should reach as their links are."""
    figures = {(expected_of(row.cell) or 0.0, row.unit) for row in rows}
    (least, unit), (most, _) = min(figures), max(figures)
    ends = dict.fromkeys(brief(figure, unit) for figure in (least, most))
    carried = f"{' to '.join(ends)} {unit_of(unit).shown}"
    return f"a link runs below its best: as it is, {carried} is what it should carry"


def _verdict(cell: CellResult) -> tuple[str, str]:
    """Its status if it did not pass, else its verdict."""
    if cell.status != "pass":
        return WORDS[cell.status], STATUS_STYLES[cell.status]
    if _is_held(cell):
        return (HELD if cell.verdict == "ok" else f"{cell.verdict}{HELD}"), HELD_STYLE
    if sign := peers_sign(cell):
        word = cell.verdict if cell.verdict in _JUDGED else ""
        return f"{word}{sign}", STYLES["low"] if cell.verdict == "low" else PEERS_STYLE
    return (cell.verdict, _JUDGED[cell.verdict]) if cell.verdict in _JUDGED else ("", "")


def _samples(cell: CellResult) -> str:
    return histogram(cell.samples, _BINS) if cell.samples and min(cell.samples) > 0 else ""
