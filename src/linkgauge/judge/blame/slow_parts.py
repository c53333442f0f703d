"""Finds the parts that make bandwidth lower than that of equal cells, or lower than expected.

The smallest set of parts that explains all slow cells and contradicts no healthy cell is blamed.
Then parts are blamed that only all of their cells together show, and at last those that only
earlier runs show."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.vendor import tools
from linkgauge.judge.verdict import FAR
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part
from linkgauge.model.units import count_of

from .cases import Case, named
from .causes import Blame, fewest, remembered, suspects
from .counters import slowed, troubled
from .engines import bounded_by_engine
from .explain import Fit, Model, Suspect, Suspects
from .leftover import small_losses
from .limits import LEAST_LOSS, SLOW, SPARED, SURE, SURE_BESIDE
from .lonely import lost_parts
from .table import Row, reach, rows_of, share_of

_MOST_TRIED = 400
"""The most parts that are tried: those that slow cells use most often. A cluster has thousands."""


def check_slow(evidence: Evidence) -> Iterator[Finding]:
    """Yields findings on parts that slow the cells that use them."""
    rows, by_engine = bounded_by_engine(rows_of(evidence), evidence)
    remedy = _remedy(evidence)
    if by_engine is not None:
        yield by_engine
    blamed = set[Part | str]()
    for some in (_by_cells, _together):
        left = [row for row in rows if blamed.isdisjoint(row.parts)] if blamed else rows
        for finding in some(left, evidence):
            blamed.add(finding.about)
            yield replace(finding, remedy=finding.remedy or remedy)
    yield from lost_parts(rows, evidence, blamed, remedy)


def _by_cells(rows: Sequence[Row], evidence: Evidence) -> Iterator[Finding]:
    """Yields the findings for which single cells are clearly slow."""
    slow = [row for row in rows if row.slow]
    if not slow:
        return
    seen = troubled(evidence, frozenset().union(*(row.parts for row in rows)))
    found = suspects([row.case for row in slow], [row.case for row in rows], seen)
    blames = {b.part: b for b in (one.of_link(seen | slowed(evidence)) for one in found)}
    touching = grouped((part, row) for row in rows for part in blames.keys() & row.parts)
    likely = sorted(blames, key=lambda part: _explained(touching[part]), reverse=True)
    candidates = [s for part in likely[:_MOST_TRIED] for s in _ways_to_be_slow(part, touching[part])
                  # Nothing tells when another tool measured each cell.
                  if evidence.tool is None or not (s.drifts or s.since)]  # fmt: skip
    fit = remembered(Model(rows, seen).fit)
    chosen = fewest(candidates, lambda tried: fit(tried).total)
    best, parts = fit(chosen), {s.part for s in chosen}
    gains = {s: fit(_without(s, chosen)).total - best.total for s in chosen}
    affected = {s: _most_affected(s, slow, best) for s in chosen}
    opposed: dict[Part, list[Row]] = {}
    for suspect in chosen:
        cells, others = affected[suspect], _without(suspect, chosen)
        surer = [other for other in others if gains[other] >= gains[suspect]]
        if any(_adds_nothing(suspect, other, touching, affected) for other in surer):
            continue
        if any(_shows_all(other, suspect, touching) for other in others):
            continue
        if links := _only_both_ways(suspect.part, cells, rows):
            opposed |= dict.fromkeys(links, cells)
            continue
        as_good = [blames[s.part] for s in candidates
                   if s.part not in parts and fit((*others, s)).is_as_good(best)]  # fmt: skip
        blame = blames[suspect.part].beside(as_good)
        finding = (_drift(blame, best.levels[suspect], cells, evidence) if suspect.drifts
                   else _slow(blame, suspect, cells, rows))  # fmt: skip
        # What the others explain nearly as well without it is no more than likely, and one cell
        # shows no trend. Four standard deviations of what stays unexplained are clear.
        least = max(SURE_BESIDE if surer else SURE, 16 * best.unexplained / len(slow))
        is_sure = gains[suspect] > least and (len(cells) > 1 or not suspect.drifts)
        yield finding if is_sure else replace(finding, severity="warn")
    if opposed:
        yield _opposed(opposed, evidence)
    if rest := [row for row in slow if parts.isdisjoint(row.parts)]:
        fast = {frozenset(row.parts) for row in rows if not row.slow}
        yield _unexplained(rest, all(frozenset(row.parts) in fast for row in rest))


def _together(rows: Sequence[Row], evidence: Evidence) -> Iterator[Finding]:
    """Yields the findings for which only all cells of a part together show that the part is
    slow."""
    cases = [row.case for row in rows]
    known = slowed(evidence)
    blames = {one.part: one for one in (each.of_link(known) for each in suspects(cases, cases))}
    for loss in small_losses(rows, blames):
        share = math.exp(-loss.lost)
        found = f"{count_of(len(loss.rows))} through it together reach {share:.1%} of their peers"
        why = "hardly one shows it alone, but chance does that to all of them once in 1,000 runs"
        cells = [row.case for row in loss.rows]
        yield blames[loss.part].finding("slow", "warn", found, why, (), cells)


def _explained(touching: Sequence[Row]) -> float:
    """Returns the most that a part can explain. This is the loss of the slow cells that use the
    part, less a cost for its healthy cells."""
    return sum(row.weight * row.lost**2 if row.slow else -SPARED for row in touching)


def _without(suspect: Suspect, chosen: Suspects) -> Suspects:
    return tuple(one for one in chosen if one != suspect)


def _adds_nothing(
    suspect: Suspect,
    other: Suspect,
    touching: Mapping[Part, Sequence[Row]],
    affected: Mapping[Suspect, Sequence[Row]],
) -> bool:
    """Whether blaming the suspect adds nothing to blaming the `other` one. This is so if its part
    lies within the other's part and is hardly slower."""
    inner, outer = ({row.number for row in touching[s.part]} for s in (suspect, other))
    own, around = ([row.shown for row in affected[s]] for s in (suspect, other))
    level = min(around) if other.drifts else statistics.median(around)
    return inner < outer and statistics.median(own) > level + math.log(1 - 3 * LEAST_LOSS)


def _shows_all(inner: Suspect, outer: Suspect, touching: Mapping[Part, Sequence[Row]]) -> bool:
    """Whether all slow cells of a part use a chosen part within it, so that no cell shows more."""
    slow = [row for row in touching[outer.part] if row.slow]
    is_within = len(touching[inner.part]) < len(touching[outer.part])
    return is_within and all(inner.part in row.parts for row in slow)


def _most_affected(suspect: Suspect, slow: Sequence[Row], fit: Fit) -> list[Row]:
    """Returns the slow cells that the suspect slows most. Cells that also use a slower part are
    left out, unless no other cells remain."""
    touched = [row for row in slow if suspect.part in row.parts]
    worse = {s.part for s, level in fit.levels.items() if level < fit.levels[suspect]}
    return [row for row in touched if worse.isdisjoint(row.parts)] or touched


def _ways_to_be_slow(part: Part, touching: Sequence[Row]) -> Iterator[Suspect]:
    """Yields the ways in which the part may be slow: from the beginning, from some cell on, or ever
    slower. `touching` are the cells that use the part, in the order of measuring."""
    yield Suspect(part)
    slow = [row for row in touching if row.slow]
    kinds, ways = {row.peers for row in slow}, {row.parts for row in slow}
    well = [row.number for row in touching
            if not row.slow and (row.peers in kinds or row.parts in ways)]  # fmt: skip
    any_kind = next((row.number for row in slow if well and well[0] < row.number), None)
    for since in {_first_fallen(touching), any_kind} - {None}:
        yield Suspect(part, since or 0)
    below = grouped((row.peers, row) for row in touching if row.slow or row.low)
    equal = [below[of] for of in kinds]
    if any(map(_falls, equal)) or (len(slow) == len(equal) and _falls(slow)):
        yield Suspect(part, drifts=True)
        # What else bounds may hide it before.
        since = min(row.number for row in touching if row.peers in kinds)
        if touching[0].number < since:
            yield Suspect(part, since, drifts=True)


def _falls(rows: Sequence[Row]) -> bool:
    """Whether the last cell is clearly slower than the first."""
    return rows[-1].relative < rows[0].relative + math.log1p(-LEAST_LOSS / 3)


def _first_fallen(touching: Sequence[Row]) -> int | None:
    """Returns the number of the first slow cell for which an earlier equal cell was faster."""
    fastest: dict[Case, float] = {}
    for row in touching:
        before = fastest.get(row.peers, -math.inf)
        if row.slow and row.relative < before + math.log(SLOW):
            return row.number
        fastest[row.peers] = max(before, row.relative)
    return None


def _slow(blame: Blame, suspect: Suspect, slow: Sequence[Row], rows: Sequence[Row]) -> Finding:
    onset = f"; it was fine before {slow[0].case.name}" if suspect.since else ""
    found = f"{reach('through it', slow)}{onset}"
    kinds = {row.peers for row in slow}
    equal = [row for row in rows if row.peers in kinds and row.number >= suspect.since]
    own = [row.slow for row in equal if suspect.part in row.parts]
    others = [row.slow for row in equal if suspect.part not in row.parts]
    why = "all the slow cells share this part, and the others do not"
    if not all(own) or any(others):
        why = f"{sum(own)} of {len(own)} equal cells that use it are slow"
        why += f", and {sum(others)} of {len(others)} that do not" if others else ""
    return blame.finding("slow", _severity(slow), found, why, (), [row.case for row in slow])


def _drift(blame: Blame, level: float, slow: Sequence[Row], evidence: Evidence) -> Finding:
    lowest = min(slow, key=_shown)
    last = f"{lowest.case.name} is down to {math.exp(lowest.shown):.0%}"
    found = f"each cell through it is {-math.expm1(level):.2%} slower than the one before: {last}"
    why = "a part that slows down as it works may be heating up, or filling up"
    remedy = (*tools(evidence, "state"), "# Measure again after a pause.")
    return blame.finding("drift", "fail", found, why, remedy, [row.case for row in slow])


def _severity(slow: Sequence[Row]) -> Severity:
    """Returns the severity of a loss. It is a failure if some cell is far off by more than chance,
    else a warning: an unlucky placement may be the only reason for a small loss."""
    is_far = any(row.shown + row.off < math.log(FAR) for row in slow)
    return "fail" if share_of(slow) < FAR and is_far else "warn"


def _only_both_ways(part: Part, slow: Sequence[Row], rows: Sequence[Row]) -> set[Part]:
    """Returns the links of a part that are slow only if they are crossed in both directions at
    once. The result is empty for a single link, or if a cell in one direction is slow, too. Some
    cells must have shown that each direction alone is fast."""
    both = {one for row in slow for one in row.parts if one.both_ways}
    if part.both_ways or len(both) < 2 or any(both.isdisjoint(row.parts) for row in slow):
        return set()
    alone = [row for row in rows
             if part in row.parts and not any(one.both_ways for one in row.parts)]  # fmt: skip
    return both if alone and not any(row.slow for row in alone) else set()


def _opposed(slow: Mapping[Part, Sequence[Row]], evidence: Evidence) -> Finding:
    """Returns the finding for several links that are slow only in both directions at once. The host
    or the devices then serve both directions slowly. Parts that are fast in one direction are not
    at fault."""
    cells = list({row.number: row for some in slow.values() for row in some}.values())
    found = f"{reach('over them', cells)}; each direction alone is as fast as it should be"
    why = "they share what serves both directions at once: relaxed ordering, the root complex"
    remedy = ("sudo lspci -vv | grep -E '^[0-9a-f]|RlxdOrd'", *_remedy(evidence))
    subject = f"{len(slow)} links (both directions at once)"
    return Finding("slow", "warn", subject, found, why, remedy, named(row.case for row in cells))


def _unexplained(slow: Sequence[Row], are_fast: bool) -> Finding:
    """Returns the finding for cells that no part explains. `are_fast` says that equal cells over
    the same parts are not slow: of other sizes, or of another moment."""
    lowest = min(slow, key=_shown)
    found = reach("that share no part", slow, share_of([lowest]))
    if len(slow) > 1:
        found += f" or more, {lowest.case.name} the least"
    why = "no device is slow by itself: look at the links that only these cells cross"
    if are_fast:
        why = "the same parts are fast in equal cells, so their size or the moment is slow, no part"
    severity = "warn" if are_fast else _severity([lowest])
    cells = named(row.case for row in slow)
    return Finding("slow", severity, str(lowest.case.cell), found, why, cells=cells)


def _shown(row: Row) -> float:
    return row.shown


def _remedy(evidence: Evidence) -> tuple[str, ...]:
    return (
        "linkgauge devices  # links, their speeds and the bridges above them",
        *(("sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:'",) if evidence.machine.functions else ()),
        *tools(evidence, "links"),
    )
