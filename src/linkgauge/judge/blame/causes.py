"""Finds the smallest set of parts that explains all bad cells and contradicts no good cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from linkgauge.judge.findings import Finding, Severity
from linkgauge.model.errors import PHASES, Phase
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Kind, Part

from .cases import Case, named
from .limits import CAUSE, MISSED, MOST_CAUSES

_H = TypeVar("_H", bound=Hashable)
_T = TypeVar("_T")
_LINKS: tuple[Kind, ...] = ("link", "PCIe link")
_ABOVE = frozenset[Kind](("PCIe link above", "host bridge", "node"))
_TELLING: tuple[tuple[Kind, frozenset[Kind], str], ...] = (
    ("device", frozenset(_LINKS),
     "`device_local_copy` crosses no link: it would tell the device from its link"),
    ("node", _ABOVE | {"PCIe link"},
     "`host_to_host_memcpy_read_cpu` crosses no PCIe: it would tell the node from the rest"),
    ("switch", _ABOVE,
     "copies that turn around in it would tell the switch from what is above"),
    ("switch", frozenset((*_LINKS, "switch")),
     "errors that a switch counts or logs would tell it from what is beside it"),
)  # fmt: skip
"""The measurement that distinguishes a part of one kind from parts of other kinds: the kind, the
other kinds, and the measurement in words."""


class Blame(msgspec.Struct, frozen=True):
    """A part to blame for bad cells. `others` are parts that explain the cells equally well."""

    part: Part
    others: tuple[Part, ...] = ()

    @property
    def links(self) -> tuple[Part, ...]:
        """Returns the links in this blame whose device is also in it."""
        parts = (self.part, *self.others)
        devices = {end for part in parts if part.kind == "device" for end in part.ends}
        links = (part for part in parts if part.kind in _LINKS and not part.both_ways)
        return tuple(link for link in links if not devices.isdisjoint(link.ends))

    def of_link(self, seen: Container[Part]) -> Blame:
        """Returns this blame with the device's link named before the device, unless errors were
        seen on the device itself."""
        if self.part.kind != "device" or self.part in seen or not self.links:
            return self
        link = self.links[0]
        return Blame(link, (self.part, *(other for other in self.others if other != link)))

    def beside(self, blames: Iterable[Blame]) -> Blame:
        others = [part for blame in blames for part in (blame.part, *blame.others)]
        return Blame(self.part, tuple(dict.fromkeys((*self.others, *others))))

    @property
    def _would_tell(self) -> str:
        kinds = {part.kind for part in (self.part, *self.others)}
        telling = (say for one, others, say in _TELLING if one in kinds and kinds & others)
        return next(telling, "exchange a cable, a slot or a card: what moves with it is to blame")

    def finding(
        self, check: str, severity: Severity, found: str, why: str, remedy: Sequence[str],
        cases: Iterable[Case],
    ) -> Finding:  # fmt: skip
        """Returns the finding, with the parts that explain the cells equally well."""
        others = ", ".join(map(str, self.others))
        doubt = f" (or {others}: the measurements cannot tell which)" if others else ""
        why += f"; {self._would_tell}" if others else ""
        cells = named(cases)
        return Finding(check, severity, self.part, found + doubt, why, tuple(remedy), cells)


def suspects(
    bad: Iterable[Case], all_cases: Iterable[Case], seen: Container[Part] = ()
) -> list[Blame]:
    """Returns the parts that may be to blame. Parts that touch the same cells form one blame. A
    part with errors that were `seen` is named first, then a device, then a link."""
    parts = frozenset[Part]().union(*(case.touched for case in bad))
    numbers = grouped((part, case.number) for case in all_cases for part in parts & case.touched)
    ordered = sorted(parts, key=lambda part: (part not in seen, *_rank(part)))
    groups = grouped((tuple(numbers[part]), part) for part in ordered)
    return [Blame(part, tuple(others)) for part, *others in groups.values()]


_LAST: tuple[Kind, ...] = (
    "link", "node", "PCIe link", "switch", "PCIe link above", "host bridge",
)  # fmt: skip


def _rank(part: Part) -> tuple[bool, int, str]:
    place = _LAST.index(part.kind) if part.kind in _LAST else -1
    return part.both_ways, place, part.name


def fewest(
    candidates: Sequence[_H],
    loss: Callable[[tuple[_H, ...]], float],
) -> tuple[_H, ...]:
    """Returns the set of candidates with the least `loss`, which includes a cost for each. The
    search adds, exchanges and removes candidates until the loss no longer falls (stepwise
    selection; N. Draper, H. Smith, Applied Regression Analysis, 15.2)."""
    chosen: tuple[_H, ...] = ()
    while len(chosen) < MOST_CAUSES:
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
    """Returns the best set in which two candidates replace one of the chosen ones: the chosen part
    may contain two faulty parts."""
    found = [chosen]
    for removed in chosen or (None,):
        tried = tuple(one for one in chosen if one != removed)
        for _ in range(2):
            more = ((*tried, one) for one in candidates if one not in (*tried, removed))
            tried = min(more, key=loss, default=tried)
        found.append(tried)
    return min(found, key=loss)


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
    blame: Blame
    cases: tuple[Case, ...]


class _Candidate(msgspec.Struct, frozen=True):
    """A part that may have caused bad cells in one `phase` of the measurement, or in any (None).
    `well` are the cells that contradict it. `is_mixed` means that cells ended in several phases."""

    part: Part
    phase: Phase | None
    explained: frozenset[int]
    well: frozenset[int]
    is_mixed: bool = False


def causes(
    bad: Sequence[Case],
    good: Sequence[Case],
    *,
    stays: bool = False,
    seen: Container[Part] = (),
) -> tuple[list[Cause], list[Case]]:
    """Returns the smallest set of parts that explains the bad cells and contradicts few good cells,
    and the bad cells that stay unexplained. With `stays`, a part that was healthy before its first
    bad cell costs no more, but good cells after that cell speak strongly against it. Without, a
    part must end its cells in the same phase. Parts with errors that were `seen` are preferred."""
    cases = sorted((*bad, *good), key=lambda case: case.number)
    blames = suspects(bad, cases, seen)
    by_part = {blame.part: blame for blame in blames}
    candidates = list(_candidates(blames, bad, cases, stays=stays))

    def loss(chosen: tuple[_Candidate, ...]) -> float:
        # What explains the same cells is one part.
        if min(len({c.part for c in chosen}), len({c.explained for c in chosen})) < len(chosen):
            return math.inf
        covered, spared, cost = set[int](), set[int](), 0.0
        for one in chosen:
            others = (other.explained for other in chosen if other is not one)
            own = one.explained.difference(*others)
            first = min(own or one.explained)
            since = {number for number in one.well if number > first}
            began = len(since) < len(one.well) and not stays
            cost += CAUSE * (1 + one.is_mixed + began)
            covered |= one.explained
            spared |= since
        return cost + (MISSED if stays else 1.0) * len(spared) + MISSED * (len(bad) - len(covered))

    chosen = fewest(candidates, remembered(loss))
    least = loss(chosen)
    parts = {one.part: one.phase for one in chosen}

    def as_good(part: Part) -> Iterator[Blame]:
        rest = tuple(one for one in chosen if one.part != part)
        for other in candidates:
            if other.part not in parts and loss((*rest, other)) <= least:
                yield by_part[other.part]

    found = [
        Cause(
            blame.beside(as_good(blame.part)),
            tuple(case for case in bad if blame.part in case.touched
                  and parts[blame.part] in (None, case.cell.phase)),
        )
        for blame in blames
        if blame.part in parts
    ]  # fmt: skip
    return found, [case for case in bad if case.touched.isdisjoint(parts)]


def _candidates(
    blames: Iterable[Blame], bad: Sequence[Case], cases: Sequence[Case], *, stays: bool
) -> Iterator[_Candidate]:
    ended = _numbers(bad)
    for blame in blames:
        touching = [case for case in cases if blame.part in case.touched]
        failed = [case for case in touching if case.number in ended]
        phases = dict.fromkeys(case.cell.phase for case in failed)
        several = len(phases) > 1 and not stays
        for phase in (None, *phases) if several else (failed[0].cell.phase,):
            own = _numbers(case for case in failed
                           if not several or phase in (None, case.cell.phase))  # fmt: skip
            past = (None, *(PHASES[PHASES.index(phase) + 1 :] if phase else ()))
            well = _numbers(case for case in touching if case.cell.phase in past) - own
            yield _Candidate(blame.part, phase, own, well, is_mixed=several and phase is None)


def _numbers(cases: Iterable[Case]) -> frozenset[int]:
    return frozenset(case.number for case in cases)


def remembered(found: Callable[[tuple[_H, ...]], _T]) -> Callable[[tuple[_H, ...]], _T]:
    known: dict[frozenset[_H], _T] = {}

    def of(parts: tuple[_H, ...]) -> _T:
        key = frozenset(parts)
        if key not in known:
            known[key] = found(parts)
        return known[key]

    return of
