"""Which parts are to blame: the fewest that explain all bad cells and contradict no good one."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from .cases import Case

_H = TypeVar("_H", bound=Hashable)
MOST_CAUSES = 5
"""Causes looked for at once."""
_LIKELY = 12
"""Candidates of which any two are tried in place of one."""
_MISSED = 4.0
"""Loss of a bad cell that no part accounts for, where a good cell that touches one costs 1 …"""
_PART = 1.5
"""… each part that is blamed this …"""
_BEGAN = 1.0
"""… and that it was well at first this."""
_STAYS = 3.0
"""Loss of a good cell that touches what stays bad."""


class Blame(msgspec.Struct, frozen=True):
    """A part, and others that explain as well."""

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
    """A device or a switch, a link of a fabric, a host node, a device's PCIe link, one above it, a
    host bridge; a link in both directions at once behind all of these."""
    if part.endswith(")"):
        return 10 + _rank(part.partition(" (")[0])
    if part.startswith("PCIe link"):
        return 4 if "." in part else 3
    if part.startswith("host"):
        return 5 if part.startswith("host bridge") else 2 - ("-" in part)
    return int("-" in part)


def fewest(
    candidates: Sequence[_H],
    loss: Callable[[tuple[_H, ...]], float],
    most: int = MOST_CAUSES,
) -> tuple[_H, ...]:
    """The candidates of the least `loss`, which is to include what each of them costs: the best is
    added to those before, then each is exchanged or left out where that is better (stepwise
    selection in both directions; N. Draper, H. Smith, Applied Regression Analysis, 15.2), or
    exchanged for two. `loss` is asked often: let it be `remembered`."""
    chosen: tuple[_H, ...] = ()
    while len(chosen) < most:
        more = ((*chosen, one) for one in candidates if one not in chosen)
        better = _exchanged(min(more, key=loss, default=chosen), candidates, loss)
        if loss(better) >= loss(chosen):
            better = _split(chosen, candidates, loss)
        if loss(better) >= loss(chosen):
            break
        chosen = better
    return chosen


def _split(
    chosen: tuple[_H, ...], candidates: Sequence[_H], loss: Callable[[tuple[_H, ...]], float]
) -> tuple[_H, ...]:
    """With two of the likeliest in place of one: what two explain exactly, a part above both may
    explain badly, but better than either."""
    likely = sorted(candidates, key=lambda one: loss((one,)))[:_LIKELY]
    pairs = list(itertools.combinations(likely, 2))
    rests = [tuple(one for one in chosen if one != each) for each in chosen] or [()]
    found = ((*rest, *pair) for rest in rests for pair in pairs if not {*rest} & {*pair})
    return min(found, key=loss, default=chosen)


def _exchanged(
    chosen: tuple[_H, ...], candidates: Sequence[_H], loss: Callable[[tuple[_H, ...]], float]
) -> tuple[_H, ...]:
    place = 0
    while place < len(chosen) > 1:
        rest = (*chosen[:place], *chosen[place + 1 :])
        others = ((*rest, one) for one in candidates if one not in chosen)
        best = min((rest, *others), key=loss)
        if loss(best) < loss(chosen) - 1e-12:
            chosen, place = best, 0
        else:
            place += 1
    return chosen


class Cause(msgspec.Struct, frozen=True, eq=False):
    """What is to blame, and the bad cells that touch it."""

    blame: Blame
    cases: tuple[Case, ...]


def causes(
    bad: Sequence[Case], good: Sequence[Case], *, stays: bool = False
) -> tuple[list[Cause], list[Case]]:
    """The fewest parts that the bad cells touch and good ones do not, and the bad cells that are
    left. Before the first bad cell that touches a part, good ones cost `_BEGAN` in all: it was well
    then. What `stays` bad from then on is always well before, and hardly explains a good cell."""
    cases = sorted((*bad, *good), key=lambda case: case.number)
    place = {case.number: 1 << at for at, case in enumerate(cases)}
    blames = suspects(bad, cases)
    masks = {blame.part: (_mask(bad, blame, place), _mask(good, blame, place)) for blame in blames}

    def loss(parts: tuple[str, ...]) -> float:
        covered = spared = 0
        cost = _PART * len(parts)
        for part in parts:
            struck, well = masks[part]
            own = struck
            for other in parts:
                own &= ~masks[other][0] if other != part else own
            own = own or struck  # of what no other part explains, the first bad cell
            since = well & -(own & -own)
            cost += _BEGAN if since != well and not stays else 0.0
            covered |= struck
            spared |= since
        contradicted = (_STAYS if stays else 1.0) * spared.bit_count()
        return cost + contradicted + _MISSED * (len(bad) - covered.bit_count())

    chosen = fewest(list(masks), remembered(loss))
    least = loss(chosen)

    def explain_as_well(part: str) -> Iterator[str]:
        rest = tuple(one for one in chosen if one != part)
        for other in blames:
            if other.part not in chosen and loss((*rest, other.part)) <= least:
                yield from (other.part, *other.others)

    found = [
        Cause(
            Blame(blame.part, (*blame.others, *explain_as_well(blame.part))),
            tuple(case for case in bad if blame.part in case.touched),
        )
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
