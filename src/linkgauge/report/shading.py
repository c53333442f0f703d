"""Defines how a figure looks compared with the expected figure: a tone, and a sign with the same
meaning."""

from __future__ import annotations

from collections.abc import Iterable

from linkgauge.model.documents.result import CellResult, Status, Verdict
from linkgauge.model.stats.summary import relative_error
from linkgauge.model.transfer import Report
from linkgauge.model.units import unit_of
from linkgauge.report.words.expectations import against, is_judged

from .blocks import TONES, Line, Shade, Span, Tone, cut, line
from .matrix import brief

WORDS: dict[Status, str] = {
    "fail": "FAIL",
    "error": "ERROR",
    "timeout": "TIMEOUT",
    "skip": "SKIP",
}
"""The words in place of a figure that was not measured."""
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
"""The meanings of signs. Figures far from their peers are neither low nor high, whether or not
anything is expected of them."""
_SIGNS: dict[Verdict, str] = {"perhaps low": _PERHAPS, "high": _HIGH, "degraded": _DEGRADED}
_HOPELESS = 10.0
"""The width of an interval from which its width no longer matters."""
_DEPTHS = 10
_MUCH_THE_SAME = 1.02
_LONGEST = 200
"""The most characters of a reason beside a figure."""

Ends = tuple[float, float]
"""The lowest and the highest figure of a matrix."""


def shade(
    cell: CellResult | None,
    unit: str,
    ends: Ends | None = None,
    text: str | None = None,
) -> Shade | None:
    """Returns a shaded cell of a matrix with this cell's figure, or with `text`. None if there is
    nothing to show. If `ends` is given, a figure that is not judged is shaded by its depth."""
    if cell is None:
        return None
    if text is None and cell.headline is not None:
        text = brief(cell.headline, unit)
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
    """Returns the sign of a cell that passed: low, high, slowed or far from its peers. Empty if
    nothing stands out."""
    if cell.verdict == "low":
        share = cell.reached
        return _LOW if share is None or share >= _HALF else _FAR_BELOW
    return _SIGNS.get(cell.verdict) or peers_sign(cell)


def peers_sign(cell: CellResult) -> str:
    """Returns the sign of a cell that is far from its peers, or an empty text."""
    if cell.peers is None or cell.headline is None:
        return ""
    return BELOW_PEERS if cell.headline < cell.peers else ABOVE_PEERS


def legend(shades: Iterable[Shade | None]) -> Line | None:
    """Explains the signs that are used, or returns None without signs."""
    used = {one.sign for one in shades if one is not None}
    parts = [
        (Span(sign, tone), Span(f" {meaning}"))
        for sign, (meaning, tone) in _MEANINGS.items()
        if sign in used
    ]
    spans = [span for part in parts for span in (Span(", "), *part)]
    return line(*spans[1:]) if spans else None


def error_of(cell: CellResult) -> str:
    """Returns half of the cell's interval, as a share of the median."""
    error = relative_error(cell.summary)
    if error is None or cell.report is Report.BEST:
        return ""
    if error >= _HOPELESS:
        return f"±>{_HOPELESS - 0.01:.0%}"
    return f"±{error:.1%}" if error < 0.0995 else f"±{error:.0%}"


def utilised(cell: CellResult) -> float | None:
    """Returns the cell's figure as a share of the theoretical figure."""
    return None if cell.expected is None else cell.share(cell.expected.theoretical)


def _reason(cell: CellResult) -> str:
    return cut(cell.reason or cell.status, _LONGEST)


def _more(cell: CellResult, unit: str) -> str:
    """Returns the text that is shown when a mouse points at the cell."""
    shown, judged = unit_of(unit).shown, is_judged(cell)
    expected, used = cell.at_best, utilised(cell)
    parts = (
        error_of(cell) if judged else "",
        f"its peers' median is {brief(cell.peers, unit)} {shown}" if cell.peers is not None else "",
        f"expected {brief(expected, unit)} {shown}" if judged and expected is not None else "",
        f"{used:.0%} of theoretical" if used is not None else "",
    )
    return ", ".join(filter(None, parts))


def _depth(figure: float, ends: Ends) -> int | None:
    least, most = ends
    if most <= least * _MUCH_THE_SAME:
        return None
    return round(_DEPTHS * (figure - least) / (most - least))
