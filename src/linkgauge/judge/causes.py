"""Which parts are to blame: the fewest that explain all bad cells and contradict no good one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import TypeVar

import msgspec

from .cases import Case

_H = TypeVar("_H", bound=Hashable)
MOST_CAUSES = 5
"""Causes looked for at once."""
_MISSED = 4.0
"""Loss of a bad cell that no part accounts for, where a good cell that touches one costs 1 …"""
_PART = 2.0
"""… and each part that is blamed this."""


class Blame(msgspec.Struct, frozen=True):
    """A part, and others that the same cells touch."""

    part: str
    others: tuple[str, ...] = ()

    @property
    def doubt(self) -> str:
        return f" (or {', '.join(self.others)}: no cell tells them apart)" if self.others else ""


def suspects(
    bad: Iterable[Case], all_cases: Iterable[Case], seen: Container[str] = ()
) -> list[Blame]:
    """The parts that bad cells touch, those that touch the same cells as one: named after what was
    `seen` to be in trouble, then the device, the link that joins two, the rest."""
    parts = frozenset[str]().union(*(case.touched for case in bad))
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for case in all_cases:
        for part in parts & case.touched:
            numbers[part].append(case.number)
    groups: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    for part in sorted(parts, key=lambda part: (part not in seen, _rank(part), part)):
        groups[tuple(numbers[part])].append(part)
    return [Blame(part, tuple(others)) for part, *others in groups.values()]


def _rank(part: str) -> int:
    """A device or a switch, a link of a fabric, a host node, a PCIe link, a host bridge; a link in
    both directions at once behind all of these."""
    if part.endswith(")"):
        return 5
    if part.startswith(("PCIe link", "host bridge")):
        return 3 if part.startswith("PCIe link") else 4
    if "-" in part:
        return 1
    return 2 if part.startswith("host:") else 0


def fewest(
    candidates: Sequence[_H],
    loss: Callable[[tuple[_H, ...]], float],
    most: int = MOST_CAUSES,
) -> tuple[_H, ...]:
    """The candidates of the least `loss`, which is to include what each of them costs: the best is
    added to those before, then each is exchanged or left out where that is better (stepwise
    selection in both directions; N. Draper, H. Smith, Applied Regression Analysis, 15.2)."""
    chosen: tuple[_H, ...] = ()
    least = loss(chosen)
    while len(chosen) < most:
        more = ((*chosen, one) for one in candidates if one not in chosen)
        best = min(more, key=loss, default=None)
        if best is None or loss(best) >= least:
            return chosen
        chosen, least = _exchanged(best, loss(best), candidates, loss)
    return chosen


def _exchanged(
    chosen: tuple[_H, ...],
    least: float,
    candidates: Sequence[_H],
    loss: Callable[[tuple[_H, ...]], float],
) -> tuple[tuple[_H, ...], float]:
    place = 0
    while place < len(chosen) > 1:
        rest = (*chosen[:place], *chosen[place + 1 :])
        others = ((*rest, one) for one in candidates if one not in chosen)
        best = min((rest, *others), key=loss)
        if loss(best) < least - 1e-12:
            chosen, least, place = best, loss(best), 0
        else:
            place += 1
    return chosen, least


class Cause(msgspec.Struct, frozen=True, eq=False):
    """What is to blame, and the bad cells that touch it."""

    blame: Blame
    cases: tuple[Case, ...]


def causes(
    bad: Sequence[Case], good: Sequence[Case], *, began: float = 1.0
) -> tuple[list[Cause], list[Case]]:
    """The fewest parts that the bad cells touch and good ones do not, and the bad cells that are
    left. Before the first bad cell that touches a part, good ones cost no more than `began` in
    all: it was well then."""
    cases = sorted((*bad, *good), key=lambda case: case.number)
    place = {case.number: 1 << at for at, case in enumerate(cases)}
    blames = suspects(bad, cases)
    masks = {blame.part: (_mask(bad, blame, place), _mask(good, blame, place)) for blame in blames}

    def loss(parts: tuple[str, ...]) -> float:
        covered = spared = 0
        cost = _PART * len(parts)
        for part in parts:
            struck, well = masks[part]
            since = well & -(struck & -struck)
            cost += began if since != well else 0.0
            covered |= struck
            spared |= since
        return cost + spared.bit_count() + _MISSED * (len(bad) - covered.bit_count())

    chosen = fewest(list(masks), remembered(loss))
    found = [
        Cause(blame, tuple(case for case in bad if blame.part in case.touched))
        for blame in blames
        if blame.part in chosen
    ]
    return found, [case for case in bad if case.touched.isdisjoint(chosen)]


def _mask(cases: Iterable[Case], blame: Blame, place: dict[int, int]) -> int:
    return sum(place[case.number] for case in cases if blame.part in case.touched)


def remembered(loss: Callable[[tuple[_H, ...]], float]) -> Callable[[tuple[_H, ...]], float]:
    """The same, each set worked out once."""
    known: dict[frozenset[_H], float] = {}

    def of(parts: tuple[_H, ...]) -> float:
        key = frozenset(parts)
        if key not in known:
            known[key] = loss(parts)
        return known[key]

    return of
