"""What several sections need of a run's results: where each is on the page, and figures as tables
have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from linkgauge.model.machine import Machine
from linkgauge.model.result import CellResult, Result, Run
from linkgauge.model.units import format_size, unit_of
from linkgauge.report.cell_table import error_of
from linkgauge.report.expectations import (
    HELD,
    expected_of,
    held_below,
    reference_of,
    share_of,
)
from linkgauge.report.forms import Block, blocks
from linkgauge.report.matrix import brief
from linkgauge.report.shading import FAR_BELOW, HELD_MEANING, peers_sign
from linkgauge.report.verdicts import Word, is_judged, word_of

from .blocks import Column, Entry, Shade, Span, Table, Tone, cut, plain

MOST_LABEL = 80
"""Characters of a row's or a column's name."""
STEPS = 10
_VERDICTS: dict[str, Tone] = {
    "error": "bad",
    "timeout": "bad",
    "fail": "bad",
    "low": "warn",
    "high": "simulated",
    "part": "dim",
    "held": "warn",
    "ok": "good",
    "unknown": "dim",
    "skip": "dim",
}
"""In the order of a sorted column."""


class Placed(NamedTuple):
    """Results that are shown together, and where."""

    anchor: str
    block: Block


def placed(run: Run) -> Iterator[Placed]:
    for number, block in enumerate(blocks(run.results, whole=True)):
        yield Placed(f"b{number}", block)


def named(machine: Machine) -> str:
    """The name of a machine, on one line."""
    return label(machine.simulated or machine.host.hostname or "this machine")


def mark(simulated: bool) -> Span:
    """What stands behind everything of a simulated machine; empty of others."""
    return Span("  SIMULATED" if simulated else "", "simulated")


def label(text: str, most: int = MOST_LABEL) -> str:
    """A name on one line."""
    return cut(text, most)


def title_of(text: str) -> str:
    """A title on one line."""
    return label(text, 2 * MOST_LABEL)


def depth(figure: float | None, ends: tuple[float, float] | None) -> int | None:
    """Where a figure stands between the `ends` of its matrix, unless they are much the same."""
    if figure is None or ends is None or ends[1] <= ends[0] * 1.02:
        return None
    return round(STEPS * (figure - ends[0]) / (ends[1] - ends[0]))


def shade_of(
    cell: CellResult | None, unit: str, text: str, sign: str, ends: tuple[float, float] | None
) -> Shade | None:
    """A place of a matrix, with what tells more of it."""
    if cell is None:
        return None
    judged = is_judged(cell)
    share = share_of(cell) if judged else None
    told = f"{share:.0%}" if share is not None else ""
    deep = depth(cell.headline, ends) if cell.status == "pass" and not judged else None
    return Shade(text, _tone(cell, sign), sign, told, _more(cell, unit), deep)


def _tone(cell: CellResult, sign: str) -> Tone:
    if cell.status != "pass":
        return "" if cell.status == "skip" else "bad"
    if cell.verdict in ("low", "high"):
        return "bad" if sign == FAR_BELOW else _VERDICTS[cell.verdict]
    if sign:
        return "warn"
    return "good" if cell.verdict == "ok" else ""


def _more(cell: CellResult, unit: str) -> str:
    if cell.status != "pass":
        return cut(cell.reason or cell.status, 200)
    parts = [error_of(cell)] if is_judged(cell) else []
    expected = expected_of(cell)
    if cell.peers is not None:
        parts.append(f"its peers' median is {brief(cell.peers, unit)} {unit_of(unit).shown}")
    if expected is not None and is_judged(cell):
        parts.append(f"expected {brief(expected, unit)} {unit_of(unit).shown}")
    used = utilised(cell)
    if used is not None:
        parts.append(f"{used:.0%} of theoretical")
    return ", ".join(part for part in parts if part)


def utilised(cell: CellResult) -> float | None:
    """The share of the theoretical figure."""
    return None if cell.expected is None else cell.share(cell.expected.theoretical)


def figure(value: float | None, unit: str, tone: Tone = "") -> Entry:
    """A figure without its unit."""
    return Entry("", None) if value is None else Entry(brief(value, unit), value, tone)


def share(value: float | None, tone: Tone = "") -> Entry:
    return Entry("", None) if value is None else Entry(f"{value:.0%}", value, tone)


def share_shown(cell: CellResult) -> float | None:
    """The share of `reference_of`; None where the cell is not judged."""
    return cell.share(reference_of(cell)) if is_judged(cell) else None


def held_note(cells: Iterable[CellResult]) -> str:
    """What the sign of some verdicts means, behind a caption."""
    is_held = any(map(held_below, cells))
    return f". {HELD} {HELD_MEANING}; the share is of their best" if is_held else ""


def verdict(result: Sequence[Result], cells: Sequence[CellResult]) -> Entry:
    """The verdict on all of the cells, with the sign of those that are far from their peers."""
    word = word_of(result, cells) or Word("not judged", "unknown")
    signs = "".join(sorted({sign for cell in cells if (sign := _unsaid(cell))}))
    tone = "warn" if signs else _VERDICTS.get(word.kind, "bad")
    return Entry(f"{word.text} {signs}".rstrip(), list(_VERDICTS).index(word.kind), tone)


def _unsaid(cell: CellResult) -> str:
    """The sign of a cell that is far from its peers, where its verdict does not say so."""
    return peers_sign(cell) if cell.verdict in ("ok", "unknown") else ""


def pivot(
    caption: str, across: str, rows: Sequence[Mapping[str, object]], *, size: bool = False
) -> Table:
    """The figures of a chart: a row for each `x`, a column for each series."""
    series = list(dict.fromkeys(str(row["series"]) for row in rows))
    by: dict[float, dict[str, float]] = {}
    for row in rows:
        by.setdefault(float(str(row["x"])), {})[str(row["series"])] = float(str(row["y"]))
    lines = [
        (
            Entry(format_size(round(x)) if size else f"{x:g}", x),
            *(Entry(f"{own[one]:.4g}", own[one]) if one in own else Entry("") for one in series),
        )
        for x, own in sorted(by.items())
    ]
    heads = (Column(across, True), *(Column(one, True) for one in series))
    return Table(plain(caption), heads, lines)


def without_empty(table: Table) -> Table:
    """The table without columns in which nothing stands."""
    kept = [at for at in range(len(table.columns)) if any(row[at].text for row in table.rows)]
    rows = [[row[at] for at in kept] for row in table.rows]
    return table._replace(columns=[table.columns[at] for at in kept], rows=rows)
