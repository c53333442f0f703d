"""How a figure looks beside what is expected: by colour, and by a sign that is read without it."""

from __future__ import annotations

from collections.abc import Collection

from rich.text import Text

from linkgauge.model.result import CellResult, Status

from .expectations import HELD, HELD_STYLE, STYLES, held_below, share_of
from .folding import Entry
from .matrix import brief

ABSENT = Entry("·", "dim")
"""A place without a cell."""
STATUS_STYLES: dict[Status, str] = {
    "pass": "green",
    "fail": "bold red",
    "error": "bold red",
    "timeout": "bold red",
    "skip": "yellow",
}
WORDS: dict[Status, str] = {
    "fail": "FAIL",
    "error": "ERROR",
    "timeout": "TIMEOUT",
    "skip": "SKIP",
}
"""In place of a figure that was not measured."""
WORD_STYLES: dict[str, str] = {
    **{str(status): style for status, style in STATUS_STYLES.items()},
    "ok": "green",
    "held": HELD_STYLE,
    "part": "dim",
    "low": STYLES["low"],
    "high": STYLES["high"],
}
_HALF = 0.5
_LOW, FAR_BELOW, _HIGH, _FAILED = "▼", "▼▼", "▲", "!"
_MEANING = {
    _LOW: ("below", STYLES["low"]),
    FAR_BELOW: ("below half of", "bold red"),
    _HIGH: ("above", STYLES["high"]),
}
HELD_MEANING = "slowed: links on the way run below their best"
BELOW_PEERS, ABOVE_PEERS, PEERS_STYLE = "▽", "△", "yellow"
PEERS_MEANING = {
    BELOW_PEERS: "far below its peers",
    ABOVE_PEERS: "far above its peers",
}
"""Of figures that are neither low nor high, whether or not anything is expected of them."""


def shaded(cell: CellResult | None, text: str | None) -> Entry:
    """A cell of a matrix with its figure, as text."""
    if cell is None:
        return ABSENT
    if text is None:
        word = WORDS.get(cell.status)
        return ABSENT if word is None else Entry(word, STATUS_STYLES[cell.status])
    if cell.status != "pass":
        return Entry(text, STATUS_STYLES[cell.status], _FAILED)
    sign = _sign(cell)
    if sign == HELD:
        return Entry(text, HELD_STYLE, sign)
    if sign in PEERS_MEANING:
        return Entry(text, PEERS_STYLE, sign)
    style = _MEANING[sign][1] if sign else "green" if cell.verdict == "ok" else ""
    return Entry(text, style, sign)


def shaded_headline(cell: CellResult | None, unit: str) -> Entry:
    """A cell with its headline figure."""
    known = cell is not None and cell.headline is not None
    return shaded(cell, brief(cell.headline or 0.0, unit) if cell and known else None)


def _sign(cell: CellResult) -> str:
    if cell.verdict == "low":
        share = share_of(cell)
        return _LOW if share is None or share >= _HALF else FAR_BELOW
    if cell.verdict == "high":
        return _HIGH
    if cell.verdict == "ok" and held_below(cell) is not None:
        return HELD
    return peers_sign(cell)


def peers_sign(cell: CellResult) -> str:
    """Of a cell that is far from its peers; else empty."""
    if cell.peers is None or cell.headline is None:
        return ""
    return BELOW_PEERS if cell.headline < cell.peers else ABOVE_PEERS


def legend(entries: Collection[Entry]) -> Text | None:
    """What the signs mean, of those that are used."""
    used = {entry.sign for entry in entries}
    parts = [
        Text.assemble((sign, style), f" {meaning} what is expected")
        for sign, (meaning, style) in _MEANING.items()
        if sign in used
    ]
    if HELD in used:
        parts.append(Text.assemble((HELD, HELD_STYLE), f" {HELD_MEANING}"))
    parts += [
        Text.assemble((sign, PEERS_STYLE), f" {meaning}")
        for sign, meaning in PEERS_MEANING.items()
        if sign in used
    ]
    if _FAILED in used:
        parts.append(Text.assemble((_FAILED, STATUS_STYLES["fail"]), " failed"))
    return Text(", ").join(parts) if parts else None
