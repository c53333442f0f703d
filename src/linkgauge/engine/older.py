"""Reads files of earlier versions."""

from __future__ import annotations

import re

from msgspec.structs import replace

from linkgauge.model.errors import OutcomeKind
from linkgauge.model.notes import Beside, Imprecise, Note, Remark
from linkgauge.model.result import CellResult

_WORDS: dict[OutcomeKind, tuple[str, ...]] = {
    "peer": ("peer access", "p2p"),
    "imex": ("imex", "fabric handle"),
    "lost": ("device lost", "device_lost", "fallen off the bus", "gpu is lost"),
    "memory": ("out of memory", "out_of_memory", "cannot allocate"),
    "crash": ("was ended by",),
}
"""Texts by which earlier versions' reasons reveal the kind of outcome."""


_BESIDE = re.compile(r"measured at the same time as (\d+) other pairs")
_IMPRECISE = re.compile(
    r"precision of ±([\d.]+)% missed: (?:no interval|±([\d.]+)%) after (\d+) samples; .*"
)


def current(cell: CellResult) -> CellResult:
    """The cell with its outcome's kind and its notes as values: earlier versions wrote only their
    text. The text of notes is dropped, as it is generated again where it is shown."""
    if cell.status != "pass" and cell.kind is None:
        cell = replace(cell, kind=_kind_of(cell))
    if cell.warnings:
        cell = replace(cell, notes=cell.notes or tuple(map(_note, cell.warnings)), warnings=())
    return cell


def _note(warning: str) -> Note:
    if found := _BESIDE.fullmatch(warning):
        return Beside(int(found[1]))
    if found := _IMPRECISE.fullmatch(warning):
        reached = float(found[2]) / 100 if found[2] else None
        return Imprecise(float(found[1]) / 100, reached, int(found[3]))
    return Remark(warning)


def _kind_of(cell: CellResult) -> OutcomeKind | None:
    if cell.status == "timeout":
        return "timeout"
    if cell.status == "fail":
        return "wrong-bytes" if cell.verified is False else "limit"
    reason = (cell.reason or "").lower()
    return next((kind for kind, words in _WORDS.items() if any(w in reason for w in words)), None)
