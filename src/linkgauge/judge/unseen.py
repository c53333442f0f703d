"""Finds what the figures of a run would not show: for each part, the loss up to which the part
would pass as well.

A loss shows if cells fall clearly below the fastest of their peers without the part, below their
expectation or below earlier runs; or if all cells of the part together differ from their peers."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from linkgauge.judge.blame.cases import listed
from linkgauge.judge.blame.explain import weighted_median
from linkgauge.judge.blame.limits import (
    CHANCE,
    ENOUGH_PEERS,
    LEAST_LOSS,
    PART,
    QUIET,
    SHOWN,
    SLOW,
    SMALL_LOSS,
    SPARED,
)
from linkgauge.judge.blame.lonely import alone, shows
from linkgauge.judge.blame.table import Row, kinds_of, rows_of
from linkgauge.judge.expected.link_sharing import LinkSharing
from linkgauge.judge.findings import ANY, Evidence, Finding, Unseen
from linkgauge.judge.verdict import LOW
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part
from linkgauge.model.stats.moments import Moments
from linkgauge.model.stats.student import critical

SIZES = (0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class _Side(NamedTuple):
    """`top` is the fastest of their peers without the part, 0 without such peers. `error` is the
    standard error of their difference."""

    rows: Sequence[Row]
    top: float
    error: float
    degrees: int
    peers: int


@lru_cache(maxsize=1)
def unseen_of(evidence: Evidence) -> tuple[Unseen, ...]:
    """Returns what would not show of the parts that were measured, one for each kind of part."""
    if not (rows := rows_of(evidence)):
        return ()
    by_part = grouped((part, row) for row in rows for part in row.parts if not part.both_ways)
    sides, fill = _sides(rows), _fills(evidence)
    lone = alone(rows)
    losses = {
        part: _unseen(own, [fill(row, part) for row in own], sides[part],
                      evidence if part in lone else None, len(by_part))
        for part, own in by_part.items() if part.kind not in ("group", "machine")
    }  # fmt: skip
    if losses and all(loss == ANY for loss in losses.values()):
        return ()
    losses |= dict.fromkeys(_not_crossed(evidence, losses), ANY)
    found = grouped((part.kind, part) for part, loss in losses.items() if loss)
    return tuple(
        Unseen(kind, {str(part): losses[part] for part in sorted(parts, key=str)})
        for kind, parts in sorted(found.items())
    )


def _sides(rows: Sequence[Row]) -> Mapping[Part, Mapping[Hashable, _Side]]:
    found: defaultdict[Part, dict[Hashable, _Side]] = defaultdict(dict)
    classes = grouped((row.peers, row) for row in rows)
    spread = _spread(classes.values())
    for peers, every in classes.items():
        ordered = sorted(every, key=lambda row: -row.figure)
        variance, degrees = spread[kinds_of(every[0].parts)]
        touching = grouped((part, row) for row in every for part in row.parts)
        kinds = Counter(part.kind for part in touching)
        for part, own in touching.items():
            rest = len(every) - len(own)
            top = next((row.figure for row in ordered if part not in row.parts), 0.0)
            error = math.sqrt(variance * (1 / len(own) + 1 / rest)) if rest else math.inf
            found[part][peers] = _Side(own, top, error, degrees, kinds[part.kind] - 1)
    return found


def _spread(classes: Iterable[Sequence[Row]]) -> dict[Hashable, tuple[float, int]]:
    by_kinds = grouped(
        (kinds_of(every[0].parts), Moments.over(math.log(row.figure) for row in every))
        for every in classes
    )
    found: dict[Hashable, tuple[float, int]] = {}
    for kinds, some in by_kinds.items():
        degrees = sum(one.n - 1 for one in some)
        found[kinds] = sum(one.rest for one in some) / max(1, degrees) + QUIET**2, degrees
    return found


def _fills(evidence: Evidence) -> Callable[[Row, Part], float]:
    """A link that is filled by half may lose half of its rate before the cell is slower. Parts
    whose rate is unknown count as full."""
    sharing = LinkSharing(evidence.machine.wiring, evidence.results[0])
    crossed = cache(lambda transfer: tuple(sharing.crossed(transfer)))

    def fill(row: Row, part: Part) -> float:
        loads = [load for transfer in row.case.cell.transfers
                 for wire, _, load in crossed(transfer) if wire.part is part]  # fmt: skip
        return min(1.0, sum(loads)) if loads else 1.0

    return fill


def _unseen(
    rows: Sequence[Row],
    fills: Sequence[float],
    sides: Mapping[Hashable, _Side],
    past: Evidence | None,
    parts: int,
) -> float:
    """The largest of the tried losses that does not show. `past` has earlier runs that may show
    it."""
    known = [(row, _needed(row, sides[row.peers], past)) for row in rows]
    for before, loss in zip((0.0, *SIZES), SIZES, strict=False):
        lost = {row: max(0.0, 1 - (1 - loss) / fill)
                for row, fill in zip(rows, fills, strict=True)}  # fmt: skip
        if _is_slow(known, lost) or _differs(sides, lost, parts):
            return before
    return ANY


def _needed(row: Row, side: _Side, past: Evidence | None) -> float:
    needed = [ANY]
    sure = math.exp(-2 * row.off)
    if side.top:
        needed.append(1 - SLOW * side.top / row.figure * sure)
    expected = row.case.cell.expected
    if expected is not None and expected.achievable and not expected.measured:
        needed.append(1 - min(SLOW, LOW) * expected.achievable / row.figure * sure)
    if past is not None and shows(past, row.number):
        needed.append(SHOWN)
    return min(needed)


def _is_slow(known: Sequence[tuple[Row, float]], lost: Mapping[Row, float]) -> bool:
    gain = 0.0
    for row, needed in known:
        if lost[row] > needed:
            gain += row.weight * math.log1p(-lost[row]) ** 2
        elif needed < ANY:
            gain -= SPARED
    return gain > PART


def _differs(sides: Mapping[Hashable, _Side], lost: Mapping[Row, float], parts: int) -> bool:
    told = [side for side in sides.values() if side.top and side.degrees]
    if sum(len(side.rows) for side in told) <= ENOUGH_PEERS:
        return False
    weights = [1 / side.error**2 for side in told]
    gains = [-math.log1p(-statistics.fmean(lost[row] for row in side.rows)) for side in told]
    mean = sum(map(float.__mul__, gains, weights)) / sum(weights)
    apart = sum(weight * (gain - mean) ** 2 for gain, weight in zip(gains, weights, strict=True))
    degrees = sum(side.degrees for side in told)
    error = math.sqrt((1 + apart / degrees) / sum(weights))
    least = SMALL_LOSS if max(side.peers for side in told) >= ENOUGH_PEERS else LEAST_LOSS
    usual = weighted_median(list(zip(gains, weights, strict=True)))
    return usual > -math.log1p(-least) and mean > critical(2 * CHANCE / parts, degrees) * error


def _not_crossed(evidence: Evidence, crossed: Iterable[Part]) -> Iterator[Part]:
    """Also switches with one end crossed; those of devices that were not measured are left out."""
    known, inner = set(crossed), evidence.machine.wiring.switches
    wires = [wire for wire in evidence.machine.wiring.wires if wire.kind == "fabric"]
    outer = {end for wire in wires for end in (wire.a, wire.b) if not {wire.a, wire.b} <= inner}
    for wire in wires:
        if {wire.a, wire.b} <= inner:
            ends = {Part.fabric_switch(end): end in outer for end in (wire.a, wire.b)}
            left = ends.keys() - known
            if len(left) < 2 and not any(ends[end] for end in left):
                yield from {wire.part, *left} - known


def check_unjudged(evidence: Evidence) -> Iterator[Finding]:
    """Cells of such parts have no peers without the part, no expectation, and no earlier runs, or
    there are no such cells."""
    every = unseen_of(evidence)
    parts = [name for one in every for name, loss in one.parts.items() if loss == ANY]
    if not parts:
        return
    found = "nothing shows whether it is slow"
    if len(parts) > 1:
        found = f"nothing shows whether they are slow: {listed(parts)}"
    found += "; there is nothing like it to compare with, and no figure is expected"
    why = "`linkgauge gate` against an earlier run of this machine or a baseline shows a loss"
    subject = parts[0] if len(parts) == 1 else f"{len(parts)} parts"
    yield Finding("unjudged", "unknown", subject, found, why)
