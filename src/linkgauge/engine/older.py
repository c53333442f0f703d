"""Files of earlier versions, as this one reads them."""

from __future__ import annotations

from msgspec.structs import replace

from linkgauge.model.errors import OutcomeKind
from linkgauge.model.result import CellResult

_WORDS: dict[OutcomeKind, tuple[str, ...]] = {
    "peer": ("peer access", "p2p"),
    "imex": ("imex", "fabric handle"),
    "lost": ("device lost", "device_lost", "fallen off the bus", "gpu is lost"),
    "memory": ("out of memory", "out_of_memory", "cannot allocate"),
    "crash": ("was ended by",),
}
"""What the reasons of earlier versions said of kinds of outcomes."""


def with_kind(cell: CellResult) -> CellResult:
    """The cell with the kind of its outcome: earlier versions wrote none, but a reason in words."""
    if cell.status == "pass" or cell.kind is not None:
        return cell
    return replace(cell, kind=_kind_of(cell))


def _kind_of(cell: CellResult) -> OutcomeKind | None:
    if cell.status == "timeout":
        return "timeout"
    if cell.status == "fail":
        return "wrong-bytes" if cell.verified is False else "limit"
    reason = (cell.reason or "").lower()
    return next((kind for kind, words in _WORDS.items() if any(w in reason for w in words)), None)
