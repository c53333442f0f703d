"""Finds cells that are clearly slower than their peers: the cells of at least three other parts of
the same kind. The more the peers differ from each other, the larger a loss must be (Student's t).
Two benchmarks or two repetitions must show the loss, so that a brief disturbance does not count."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from linkgauge.model.documents.result import CellResult, TransferFigure
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part
from linkgauge.model.stats.modes import cut
from linkgauge.model.stats.moments import Moments, median_without

from .blame.cases import Case, cases_of
from .blame.counters import troubled
from .blame.excess import Side, chance, excess, spread
from .blame.limits import ENOUGH
from .findings import Evidence

LOW, PERHAPS = 0.05, 0.02
"""The losses from which a cell is low, and perhaps low."""
CHANCE = 0.01
"""The probability that chance alone makes any part of a healthy run stand out. It is divided by the
number of comparisons (Bonferroni)."""


class Behind(NamedTuple):
    """A cell slower than its peers. `usual` is the peers' median. `loss` is the share of `usual`
    that the cell lacks. `is_sure` is true if another benchmark or repetition shows the loss.
    `at_best` is true if the fastest repetitions were compared, because the part counted errors."""

    case: Case
    usual: float
    peers: int
    loss: float
    is_sure: bool
    at_best: bool = False


class _Standing(NamedTuple):
    about: Part | Case
    inside: Sequence[Case]
    usual: float
    beside: Moments
    peers: int


@lru_cache(maxsize=2)
def classes(evidence: Evidence) -> list[list[Case]]:
    """Returns the cells that were measured, in lists of peers."""
    nodes = {cpu: node.index for node in evidence.machine.host.nodes for cpu in node.cpus}
    found: defaultdict[Hashable, list[Case]] = defaultdict(list)
    for case in cases_of(evidence):
        cell = case.cell
        if not cell.headline or cell.status != "pass":
            continue
        peers: Hashable = case.equivalent
        if peers is None:
            ends = cell.transfers[0].memories
            if ends and all(end.space == "cpu" for end in ends):
                peers = case.kind, *sorted(nodes.get(end.index or 0, -1) for end in ends)
            else:
                devices = {str(place.index) for place in cell.places if place.is_device}
                setting = cell.row if cell.column in devices else cell.column
                peers = case.kind, cell.operation, setting
        found[peers].append(case)
    return [*found.values()]


@lru_cache(maxsize=2)
def behind(evidence: Evidence) -> tuple[Behind, ...]:
    seen = troubled(evidence, frozenset().union(*(one.timed for one in cases_of(evidence))))
    equivalent = [
        own for own in classes(evidence) for first in own[:1]
        if first.result.better == "higher"
        and (first.equivalent is None or not first.is_oversubscribed)
    ]  # fmt: skip
    standings = [one for members in equivalent for one in _standings(members)]
    noise, at_most = cache(_noise), cache(_at_most)
    beside = grouped(((one.about, noise(one.inside[0])), one.beside) for one in standings)
    varying = {of: spread(some) for of, some in beside.items()}
    found: list[_Standing] = []
    for one in standings:
        variance, degrees = varying[one.about, noise(one.inside[0])]
        off = math.log(one.usual) - median(map(at_most, one.inside))
        errors = off / math.sqrt(variance * (1 + 1 / one.beside.n))
        is_separate = off > 0 and chance(errors, degrees) < CHANCE / len(standings)
        if is_separate and off > -math.log1p(-PERHAPS):
            found.append(one)
    shown = grouped((one.about, case.result.benchmark) for one in found for case in one.inside)
    known = {each.case: each for part in seen for each in _with_errors(part, equivalent)}
    for one in found:
        several = len(set(shown[one.about])) > 1
        for case in one.inside:
            loss = 1 - case.figure / one.usual
            is_sure = several or len(case.cell.repetitions) > 1
            if loss >= PERHAPS and not (case in known and known[case].is_sure):
                known[case] = Behind(case, one.usual, one.peers, loss, is_sure)
    return tuple(known.values())


def _with_errors(part: Part, equivalent: Sequence[Sequence[Case]]) -> Iterator[Behind]:
    """Yields slow cells of a part that counted errors, if several benchmarks show a loss. Compares
    the fastest repetitions, because other programs slow a repetition, but speed none up."""
    sides = [grouped((part in one.timed, one) for one in own) for own in equivalent]
    both = [(one[True], one[False]) for one in sides if len(one) > 1 and len(one[False]) >= ENOUGH]
    usual = {case: median(map(_at_best, others)) for own, others in both for case in own}
    losses = {case: 1 - _at_best(case) / of for case, of in usual.items()}
    slow = {case: loss for case, loss in losses.items() if loss >= PERHAPS}
    found = excess(
        Side(_noise(own[0]), *(Moments.over(-math.log(_at_best(one)) for one in side)
                               for side in (own, others)))
        for own, others in both
    )  # fmt: skip
    if found and found.p < CHANCE and len({case.result.benchmark for case in slow}) > 1:
        peers = {case: len(others) + 1 for own, others in both for case in own}
        for case, loss in slow.items():
            yield Behind(case, usual[case], peers[case], loss, is_sure=True, at_best=True)


def _at_best(case: Case) -> float:
    repetitions = cut(case.cell.samples, map(sum, case.cell.repetitions))
    return max((median(some) for some in repetitions if some), default=case.figure)


def _noise(case: Case) -> frozenset[str]:
    return frozenset(map(attrgetter("kind"), case.timed))


def _standings(members: Sequence[Case]) -> Iterator[_Standing]:
    if len(members) <= ENOUGH:
        return
    logs = {case: math.log(case.figure) for case in members}
    whole = Moments.over(logs.values())
    ordered = sorted(members, key=attrgetter("figure"))
    places, figures = {case: at for at, case in enumerate(ordered)}, [one.figure for one in ordered]
    touching = grouped((part, case) for case in members for part in case.timed)
    kinds = grouped((part.kind, part) for part in touching)
    compared: list[tuple[Part | Case, list[Case]]] = [(case, [case]) for case in members]
    compared += [(p, touching[p]) for own in kinds.values() if len(own) > ENOUGH for p in own]
    for about, inside in compared:
        if len(members) - len(inside) < ENOUGH:
            continue
        others = median_without(figures, map(places.__getitem__, inside))
        beside = whole.without(Moments.over(map(logs.__getitem__, inside)))
        yield _Standing(about, inside, others, beside, len(members))


def _at_most(case: Case) -> float:
    return math.log(max(case.figure, *figures_of(case.cell, case.cell)))


def figures_of(one: CellResult | TransferFigure, cell: CellResult) -> tuple[float, ...]:
    """Returns the median, the ends of its interval, and the median of the last repetition."""
    last = one.samples[-sum(cell.repetitions[-1]) :] if cell.repetitions else ()
    known = (one.summary.median, *(one.summary.ci95 or ())) if one.summary is not None else ()
    return (*known, *([median(last)] if last else ()))
