"""Chooses the form of each result, such as a matrix, and the shade and sign of each cell."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from statistics import median
from typing import Literal

from linkgauge.model.documents.result import CellResult, Result, Status, Verdict
from linkgauge.model.grouped import grouped
from linkgauge.model.stats.summary import relative_error
from linkgauge.model.transfer import Report
from linkgauge.model.units import COLLECTIVE, format_figure, format_with_unit
from linkgauge.report.words.expectations import against, is_judged

from .blocks import TONES, Line, Shade, Span, Tone, cut, line

MOST_COLUMNS = 16
"""A matrix with more columns or rows is large."""
MOST_ROWS = 32
"""A result of few columns with more rows is shown as a distribution."""
UNIFORM = 0.05
Form = Literal[
    "rows", "columns", "summary", "matrix", "many", "sizes", "levels", "collectives", "transfers"
]
FEW = 2
FEW_SETTINGS = 4


Large = Literal["summary", "reduced", "uniform", "whole"]
"""Which large matrices become one line of a summary: any (on a page `reduced`), only uniform ones,
or none."""
_REDUCED: tuple[Large, ...] = ("summary", "reduced")


def has_figures(result: Result) -> bool:
    return any(map(attrgetter("summary"), result.cells))


def together(results: Sequence[Result], large: Large) -> Iterator[tuple[Form, Sequence[Result]]]:
    """Yields the form of each table, and the results that share the table, in order."""
    shown = filter(has_figures, results)
    by_benchmark = grouped(((one.benchmark, one.backend), one) for one in shown)
    found: list[tuple[tuple[Form, Hashable], Sequence[Result]]] = []
    for own in by_benchmark.values():
        sizes = sorted(set(map(attrgetter("size"), own)))
        if own[0].unit != COLLECTIVE.symbol and len(sizes) > 1:
            key = len(found) if len(sizes) > MOST_COLUMNS else (own[0].backend, own[0].unit, *sizes)
            found.append((("sizes", key), own))
        else:
            for one in own:
                form, known = form_of(one, large), (one.backend, one.unit, one.size)
                keys: dict[Form, Hashable] = {
                    "rows": one.backend,
                    "columns": (*known, columns_of(one), meaning_of(one.title)),
                    "summary": known,
                }
                found.append(((form, keys.get(form, len(found))), [one]))
    for (form, _), neighbours in groupby(found, key=itemgetter(0)):
        yield form, tuple(one for _, own in neighbours for one in own)


def form_of(result: Result, large: Large) -> Form:
    if result.unit == COLLECTIVE.symbol:
        return "collectives"
    if result.benchmark == "copy":
        return "transfers"
    if result.levels:
        return "levels"
    rows, columns = rows_of(result), columns_of(result)
    is_many = not result.sweep and len(rows) > MOST_ROWS and len(columns) * 4 < len(rows)
    matrix: Form = "many" if is_many and large == "uniform" else "matrix"
    if result.parts and len(columns) == 1 < len(rows):
        return matrix  # a row would show the total alone
    few = FEW_SETTINGS if result.sweep or len(columns) == 1 else FEW
    if len(result.cells) <= few and result.sampled is None:
        return "rows"
    if is_large(result) and (large in _REDUCED or (large == "uniform" and is_uniform(result))):
        return "summary"
    return "columns" if len(rows) == 1 or (result.sweep and len(rows) <= FEW) else matrix


def is_uniform(result: Result) -> bool:
    """Whether all cells passed, their figures are nearly equal, and none is marked as unusual."""
    figures = [figure for cell in result.cells if (figure := cell.headline) is not None]
    equivalent = max(figures) - min(figures) <= UNIFORM * median(figures)
    return equivalent and all(cell.status == "pass" and not sign_of(cell) for cell in result.cells)


def is_large(result: Result) -> bool:
    """Whether a matrix of pairs, or a single column, exceeds `MOST_COLUMNS` in rows or columns."""
    rows, columns = rows_of(result), columns_of(result)
    if not result.sweep or len(columns) == 1 or set(rows) & set(columns):
        return max(len(rows), len(columns)) > MOST_COLUMNS
    return False


def rows_of(result: Result) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(attrgetter("row"), result.cells)))


def columns_of(result: Result) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(attrgetter("column"), result.cells)))


def meaning_of(title: str) -> str:
    """Returns what a benchmark's columns are, from its title: `device`, `by number of threads`."""
    found = re.search(r"\(row\)\s*(?:,|->|<->|<-)?\s*([^()]*)\(column\)", title)
    found = found or re.search(r"(\w+)\(column\)", title)
    return found[1] if found else ""


def cells_of(results: Iterable[Result]) -> Iterator[tuple[Result, CellResult]]:
    for result in results:
        for cell in result.cells:
            yield result, cell


WORDS: dict[Status, str] = {
    "fail": "FAIL",
    "error": "ERROR",
    "timeout": "TIMEOUT",
    "skip": "SKIP",
}
_HALF = 0.5
_DEGRADED = "↓"
_LOW, _FAR_BELOW, _PERHAPS, _HIGH, _FAILED = "▼", "▼▼", "▼?", "▲", "!"
BELOW_PEERS, ABOVE_PEERS = "▽", "△"
_MEANINGS: dict[str, tuple[str, Tone]] = {
    _LOW: ("below what is expected", "warn"),
    _FAR_BELOW: ("below half of what is expected", "bad"),
    _PERHAPS: ("perhaps below what is expected", "warn"),
    _HIGH: ("above what is expected", "simulated"),
    _DEGRADED: ("degraded: links on the way run below their best", "warn"),
    BELOW_PEERS: ("far below its peers", "warn"),
    ABOVE_PEERS: ("far above its peers", "warn"),
    _FAILED: ("failed", "bad"),
}
"""Figures far from their peers are neither low nor high, whatever is expected of them."""
_SIGNS: dict[Verdict, str] = {"perhaps low": _PERHAPS, "high": _HIGH, "degraded": _DEGRADED}
_HOPELESS = 10.0
"""From here on, the width of an interval no longer matters."""
_DEPTHS = 10
_MUCH_THE_SAME = 1.02
_LONGEST = 200

Ends = tuple[float, float]


def shade(
    cell: CellResult | None,
    unit: str,
    ends: Ends | None = None,
    text: str | None = None,
) -> Shade | None:
    """Returns how a cell looks; None for an empty place. Figures without a verdict are shaded
    between `ends` (low, high). `text` replaces the figure."""
    if cell is None:
        return None
    if text is None and cell.headline is not None:
        text = format_figure(cell.headline, unit)
    if text is None or cell.headline is None:
        word = WORDS.get(cell.status)
        return None if word is None else Shade(word, TONES[cell.status], more=_reason(cell))
    if cell.status != "pass":
        return Shade(text, "bad", _FAILED, more=_reason(cell))
    sign = sign_of(cell)
    tone = _MEANINGS[sign][1] if sign else TONES[cell.verdict] if is_judged(cell) else ""
    share = cell.reached
    said = "" if share is None else f"{share:.0%}"
    depth = None if is_judged(cell) or sign or ends is None else _depth(cell.headline, ends)
    return Shade(text, tone, sign, said, _more(cell, unit), depth, against(cell))


def sign_of(cell: CellResult) -> str:
    if cell.verdict == "low":
        share = cell.reached
        return _LOW if share is None or share >= _HALF else _FAR_BELOW
    return _SIGNS.get(cell.verdict) or peers_sign(cell)


def peers_sign(cell: CellResult) -> str:
    if cell.peers is None or cell.headline is None:
        return ""
    return BELOW_PEERS if cell.headline < cell.peers else ABOVE_PEERS


def legend(shades: Iterable[Shade | None]) -> Line | None:
    used = set(map(attrgetter("sign"), filter(None, shades)))
    spans: list[Span] = []
    for sign, (meaning, tone) in _MEANINGS.items():
        if sign in used:
            spans += (Span(", "), Span(sign, tone), Span(f" {meaning}"))
    return line(*spans[1:]) if spans else None


def error_of(cell: CellResult) -> str:
    """Formats half of a cell's interval in % of its median (`±1.2%`); empty without an interval."""
    error = relative_error(cell.summary)
    if error is None or cell.report is Report.BEST:
        return ""
    if error >= _HOPELESS:
        return f"±>{_HOPELESS - 0.01:.0%}"
    return f"±{error:.1%}" if error < 0.0995 else f"±{error:.0%}"


def utilised(cell: CellResult) -> float | None:
    return None if cell.expected is None else cell.share(cell.expected.theoretical)


def _reason(cell: CellResult) -> str:
    return cut(cell.reason or cell.status, _LONGEST)


def _more(cell: CellResult, unit: str) -> str:
    is_known, used = is_judged(cell), utilised(cell)
    expected = cell.at_best if is_known else None
    parts = (
        error_of(cell) if is_known else "",
        "" if cell.peers is None else f"its peers' median is {format_with_unit(cell.peers, unit)}",
        "" if expected is None else f"expected {format_with_unit(expected, unit)}",
        "" if used is None else f"{used:.0%} of theoretical",
    )
    return ", ".join(filter(None, parts))


def _depth(figure: float, ends: Ends) -> int | None:
    least, most = ends
    if most <= least * _MUCH_THE_SAME:
        return None
    return round(_DEPTHS * (figure - least) / (most - least))
