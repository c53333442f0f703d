"""Searches for the fewest parts that explain bad cells."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from heapq import nsmallest
from typing import TypeVar

import msgspec

from linkgauge.judge.findings import Finding, Severity
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Kind, Part
from linkgauge.model.names import and_all

from .cases import Case, named
from .limits import MOST_CAUSES
from .table import Row

_H = TypeVar("_H", bound=Hashable)
_LINKS: tuple[Kind, ...] = ("link", "PCIe link")
_ABOVE = frozenset[Kind](("PCIe link above", "host bridge", "node"))
_TELLING: tuple[tuple[Kind, frozenset[Kind], str], ...] = (
    ("device", frozenset(_LINKS),
     "measure `device_local_copy`, which crosses no link, to see if it is the device"),
    ("node", _ABOVE | {"PCIe link"},
     "measure `host_to_host_memcpy_read_cpu`, which crosses no PCIe, to see if it is the node"),
    ("switch", _ABOVE,
     "copies between devices below the switch would show whether it is the switch"),
    ("switch", frozenset((*_LINKS, "switch")),
     "errors that the switch counts or logs would show whether it is the switch"),
)  # fmt: skip
"""The measurement that distinguishes a part of one kind from parts of other kinds: the kind, the
other kinds, and the measurement in words."""


_EXCHANGE = "exchange a cable, a slot or a card: what moves with it is to blame"


class Blame(msgspec.Struct, frozen=True):
    part: Part
    others: tuple[Part, ...] = ()

    def beside(self, blames: Iterable[Blame]) -> Blame:
        others = dict.fromkeys(self.others)
        for blame in blames:
            others |= dict.fromkeys((blame.part, *blame.others))
        return Blame(self.part, tuple(others))

    def finding(
        self, check: str, severity: Severity, found: str, why: str, remedy: Sequence[str],
        cases: Iterable[Case],
    ) -> Finding:  # fmt: skip
        if self.others:
            others = and_all(map(str, self.others), "or")
            found += f"; the cause may be {others} instead: the measurements cannot tell"
            kinds = {part.kind for part in (self.part, *self.others)}
            tells = [say for one, rest, say in _TELLING if one in kinds and kinds & rest]
            why += f"; {tells[0] if tells else _EXCHANGE}"
        cells = named(cases)
        return Finding(check, severity, self.part, found, why, tuple(remedy), cells)


def suspects(
    rows: Iterable[Row], seen: Container[Part] = (), *, links_first: bool = False
) -> dict[Part, Blame]:
    """Returns a blame for each part that cells use. Parts that the same cells use share one blame,
    because figures cannot distinguish them. It names first a part with errors that were `seen`,
    then a device, then a link; with `links_first`, a link before its device."""
    numbers = grouped((part, row.number) for row in rows for part in row.parts)

    def order(part: Part) -> tuple[bool | int | str, ...]:
        is_later = links_first and part.kind not in _LINKS
        place = _LAST.index(part.kind) if part.kind in _LAST else -1
        return part not in seen, part.both_ways, is_later, place, part.name

    groups = grouped((tuple(numbers[part]), part) for part in sorted(numbers, key=order))
    return {part: Blame(part, tuple(others)) for part, *others in groups.values()}


_LAST: tuple[Kind, ...] = (
    "link", "node", "PCIe link", "switch", "PCIe link above", "host bridge",
)  # fmt: skip


def fewest(
    candidates: Sequence[_H],
    loss: Callable[[tuple[_H, ...]], float],
) -> tuple[_H, ...]:
    """Returns the candidates with the least `loss`, by beam search (B. Lowerre, The Harpy Speech
    Recognition System, 1976), because the best pair may not contain the best single one."""
    best: tuple[_H, ...] = ()
    kept = [best]
    for _ in range(MOST_CAUSES):
        more = {frozenset((*one, new)): (*one, new)
                for one in kept for new in candidates if new not in one}  # fmt: skip
        kept = nsmallest(MOST_CAUSES, more.values(), key=loss)
        if not kept or (loss(kept[0]) >= loss(best) and len(kept[0]) > len(best) + 1):
            break
        best = min(best, kept[0], key=loss)
    while best:
        sets = ((*best[:at], new, *best[at + 1 :])
                for at in range(len(best)) for new in candidates if new not in best)  # fmt: skip
        better = min(sets, key=loss, default=best)
        if loss(better) >= loss(best):
            break
        best = better
    return best
