"""Finds the parts that make bandwidth lower than that of equal cells, or lower than expected.

Each cell is compared with its peers and with its expected figure, if known. The smallest set of
parts that explains all slow cells and contradicts no healthy cell is blamed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.vendor import tools
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part
from linkgauge.model.units import count_of

from .cases import listed, named
from .causes import Blame, fewest, remembered, suspects
from .counters import slowed, troubled
from .peer_class import SPARED, Suspect
from .pooled import losses
from .relative_rates import SLOW, RelativeRate, alone, lost_parts, relative_rates, shows
from .slow_model import Model

FAR = 0.75
"""The share of the expected rate below which a loss is a failure; above it, an unlucky placement
may be the only reason."""
_SURE = 0.04
"""The least gain in explained loss by which a part is a failure."""
_SURE_BESIDE = 0.1
"""The least gain of a part that is blamed together with a surer one: as much as one cell that is
slowed by 27 %."""
_CLEAR = 16.0
"""The least ratio between what a failing part explains of a slow cell and what stays unexplained:
four standard deviations of the usual variation."""
_INSIDE = math.log(0.85)
"""The logarithm of the share of the rate by which a part must be slower than the blamed part that
contains it, to be blamed in addition."""
_MOST_TRIED = 400
"""The most parts that are tried: those that slow cells touch most often. A cluster has
thousands."""
_LEAST_TREND = math.log(0.985)
"""The logarithm by which the last slow cell is below the first if the rate falls."""


def check_slow(evidence: Evidence) -> Iterator[Finding]:
    """Yields findings on parts that slow the cells that touch them."""
    every = relative_rates(evidence)
    bounded, is_told = _bounded_by_engine(every, evidence)
    if bounded:
        yield _by_engine(bounded, evidence, is_told=is_told)
    gone = frozenset(bounded)
    rates = [each for each in every if each not in gone] if gone else every
    found = list(_by_cells(rates, evidence)) if any(each.slow for each in rates) else []
    yield from found
    blamed = {finding.about for finding in found}
    small = _together([e for e in rates if blamed.isdisjoint(e.case.touched)], evidence)
    for finding in small:
        blamed.add(finding.about)
        yield finding
    yield from lost_parts(rates, evidence, blamed, _remedy(evidence))


def _bounded_by_engine(
    rates: Sequence[RelativeRate], evidence: Evidence
) -> tuple[list[RelativeRate], bool]:
    """Returns the copies that are slow only because of the copy engines. All such copies are
    equally low, while kernels over the same parts are as fast as expected. The flag says whether
    kernels have shown this. Without kernels, the copies must be as slow as one of several parallel
    links."""
    if not any(each.low for each in rates):
        return [], False
    kernels = [each for each in rates if _engines(each) == {"sm"}]
    ok = [each for each in kernels if each.case.cell.is_as_expected and not each.low]
    well = {each.case.touched for each in ok}
    if not kernels:
        well = {each.case.touched for each in rates if each.low and _fits_one_link(each, evidence)}
    low = grouped(
        (each.case.peers, each) for each in rates if each.low and _engines(each) == {"ce"}
    )
    found = [
        each
        for alike in low.values()
        if all(one.relative > math.log(SLOW) and one.case.touched in well for one in alike)
        for each in alike
    ]
    one_way = {each.case.touched for each in found if _one_way(each) == each.case.touched}
    return [each for each in found if _one_way(each) in one_way], bool(kernels)


_ONE = 1.03
"""The margin for clocks that run above their nominal rate."""


def _fits_one_link(each: RelativeRate, evidence: Evidence) -> bool:
    """Whether each transfer is no faster than one of the parallel links on its way."""
    rate = each.case.figure / len(each.case.cell.transfers)
    bundles = [
        bundle
        for one in each.case.cell.transfers
        for bundle in evidence.machine.wiring.bundles(*one.way).values()
    ]
    return bool(bundles) and all(b.count > 1 and rate <= _ONE * b.each for b in bundles)


def _one_way(each: RelativeRate) -> frozenset[Part]:
    """Returns the parts that a cell touches. Links crossed in both directions at once are left out,
    because sharing such a link may itself be slow."""
    return frozenset(part for part in each.case.touched if not part.both_ways)


def _engines(each: RelativeRate) -> set[str]:
    return {transfer.engine.kind for transfer in each.case.cell.transfers}


def _by_engine(slow: Sequence[RelativeRate], evidence: Evidence, *, is_told: bool) -> Finding:
    share = math.exp(statistics.median(each.log for each in slow))
    found = _reach("by them", share, slow)
    found += "; kernels over the same parts are as fast as they should be"
    why = (
        "a copy engine may drive one of several links, or less of a memory than kernels do: the "
        "links and the memory are well"
    )
    remedy = tools(evidence, "state")
    if not is_told:
        found = f"{_reach('by them', share, slow)}, no more than one of several parallel links; "
        found += "no kernel was measured, so nothing tells whether the links are slow"
        why = "a copy engine may drive one of several links; kernels drive all of them"
        remedy = ("linkgauge run --prefix device_to_device_memcpy_", *remedy)
    cells = named(each.case for each in slow)
    return Finding("slow", "warn", "copy engines", found, why, remedy, cells)


def _by_cells(rates: Sequence[RelativeRate], evidence: Evidence) -> Iterator[Finding]:
    """Yields the findings for which single cells are clearly slow."""
    slow = [each for each in rates if each.slow]
    seen = troubled(evidence, frozenset().union(*(each.case.touched for each in rates)))
    known = seen | slowed(evidence)
    found = suspects([each.case for each in slow], [each.case for each in rates], seen)
    blames = {blame.part: blame for blame in (one.of_link(known) for one in found)}
    fit = remembered(Model(rates, seen).fit)
    by_part = grouped((part, each) for each in rates for part in blames.keys() & each.case.touched)
    touching = {part: by_part[part] for part in blames}
    by_gain = sorted(touching, key=lambda part: _explained(touching[part]), reverse=True)
    likely = set(by_gain[:_MOST_TRIED])
    candidates = [s for part, some in touching.items() if part in likely
                  for s in _ways_to_be_slow(part, some)
                  # Nothing tells when another tool measured each cell.
                  if evidence.tool is None or not (s.drifts or s.since)]  # fmt: skip
    chosen = fewest(candidates, lambda tried: fit(tried).loss)
    best = fit(chosen)
    levels, parts = best.levels, {s.part for s in chosen}
    gains = {s: fit(_without(s, chosen)).loss - best.loss for s in chosen}
    most_sure = max(chosen, key=gains.__getitem__, default=None)
    least = _CLEAR * best.unexplained / max(1, len(slow))
    opposed: dict[Part, list[RelativeRate]] = {}
    struck = {s: _struck_most(s, slow, levels) for s in chosen}
    for suspect in chosen:
        surer = [other for other in chosen if gains[other] >= gains[suspect]]
        if any(_adds_nothing(suspect, other, touching, struck) for other in surer):
            continue
        beside = _without(suspect, chosen)
        as_good = [s.part for s in candidates
                   if s.part not in parts and fit((*beside, s)).is_as_good(best)]  # fmt: skip
        blame = blames[suspect.part].beside(blames[part] for part in as_good)
        cells = struck[suspect]
        if links := _only_both_ways(suspect.part, cells, rates):
            opposed |= dict.fromkeys(links, cells)
            continue
        finding = (
            _drift(blame, levels[suspect], cells, evidence) if suspect.drifts
            else _slow(blame, cells, evidence, began=suspect.since > 0)
        )  # fmt: skip
        # What the others explain nearly as well without it is no more than likely, and one cell
        # shows no trend.
        is_sure = gains[suspect] > max(least, _SURE if suspect == most_sure else _SURE_BESIDE)
        is_sure &= len(cells) > 1 or not suspect.drifts
        yield finding if is_sure else msgspec.structs.replace(finding, severity="warn")
    if opposed:
        yield _opposed(opposed, evidence)
    if rest := [each for each in slow if parts.isdisjoint(each.case.touched)]:
        yield _unexplained(rest, evidence)


def _adds_nothing(
    suspect: Suspect,
    other: Suspect,
    touching: Mapping[Part, Sequence[RelativeRate]],
    struck: Mapping[Suspect, Sequence[RelativeRate]],
) -> bool:
    """Whether blaming the suspect adds nothing to blaming the `other` one. This is so if its part
    lies within the other's part and is hardly slower."""
    inner, outer = ({each.case.number for each in touching[s.part]} for s in (suspect, other))
    if not inner < outer:
        return False
    own = statistics.median(map(_log, struck[suspect]))
    around = min(map(_log, struck[other])) if other.drifts else statistics.median(
        map(_log, struck[other]))  # fmt: skip
    return own > around + _INSIDE


def _together(rates: Sequence[RelativeRate], evidence: Evidence) -> Iterator[Finding]:
    """Yields the findings for which only all cells of a part together show that the part is
    slow."""
    cases = [each.case for each in rates]
    known = slowed(evidence)
    blames = {one.part: one for one in (each.of_link(known) for each in suspects(cases, cases))}
    for loss in losses(rates, blames):
        share = math.exp(-loss.lost)
        found = f"{count_of(len(loss.cells))} through it together reach {share:.1%} of their peers"
        why = "hardly one shows it alone, but chance does that to all of them once in 1,000 runs"
        cells = [each.case for each in loss.cells]
        yield blames[loss.part].finding("slow", "warn", found, why, _remedy(evidence), cells)


def _explained(touching: Sequence[RelativeRate]) -> float:
    """Returns the most that a part can explain. This is the loss of the slow cells that touch the
    part, less a cost for its healthy cells."""
    return sum(each.weight * each.log**2 if each.slow else -SPARED for each in touching)


def _without(suspect: Suspect, chosen: Sequence[Suspect]) -> tuple[Suspect, ...]:
    return tuple(one for one in chosen if one != suspect)


def _struck_most(
    suspect: Suspect, slow: Sequence[RelativeRate], levels: Mapping[Suspect, float]
) -> list[RelativeRate]:
    """Returns the slow cells that the suspect slows most. Cells that also touch a slower part are
    left out, unless no other cells remain."""
    touched = [each for each in slow if suspect.part in each.case.touched]
    worse = {s.part for s, level in levels.items() if level < levels[suspect]}
    return [each for each in touched if worse.isdisjoint(each.case.touched)] or touched


def _ways_to_be_slow(part: Part, touching: Sequence[RelativeRate]) -> Iterator[Suspect]:
    """Yields the ways in which the part may be slow: from the beginning, from some cell on, or ever
    slower. `touching` are the cells that touch the part."""
    slow = sorted((each for each in touching if each.slow), key=_number)
    yield Suspect(part)
    kinds, ways = {each.case.peers for each in slow}, {each.case.touched for each in slow}
    like = (each for each in touching if each.case.peers in kinds or each.case.touched in ways)
    well = [each for each in like if not each.slow]
    first_well = min(map(_number, well), default=math.inf)
    any_kind = next((each for each in slow if first_well < _number(each)), None)
    for first in dict.fromkeys((_first_fallen(touching), any_kind)):
        if first is not None:
            yield Suspect(part, since=_number(first))
    below = sorted((each for each in touching if each.slow or each.low), key=_number)
    equal = grouped((each.case.peers, each) for each in below if each.case.peers in kinds)
    if any(map(_falls, equal.values())) or (len(slow) == len(equal) and _falls(slow)):
        yield Suspect(part, drifts=True)
        # What else bounds may hide it before.
        since = min(_number(each) for each in touching if each.case.peers in kinds)
        if any(_number(each) < since for each in touching):
            yield Suspect(part, drifts=True, since=since)


def _falls(slow: Sequence[RelativeRate]) -> bool:
    """Whether the last cell is clearly slower than the first."""
    return slow[-1].relative < slow[0].relative + _LEAST_TREND


def _first_fallen(touching: Sequence[RelativeRate]) -> RelativeRate | None:
    """Returns the first slow cell for which an earlier equal cell was faster."""
    fastest: dict[tuple[str, ...] | None, float] = {}
    for each in sorted(touching, key=_number):
        before = fastest.get(each.case.peers, -math.inf)
        if each.slow and each.relative < before + math.log(SLOW):
            return each
        fastest[each.case.peers] = max(before, each.relative)
    return None


def _number(each: RelativeRate) -> int:
    return each.case.number


def _slow(
    blame: Blame, slow: Sequence[RelativeRate], evidence: Evidence, *, began: bool
) -> Finding:
    share = math.exp(statistics.median(each.log for each in slow))
    first = min(slow, key=_number).case
    onset = f"; it was fine before {first.name}" if began else ""
    found = f"{_reach('through it', share, slow)}{onset}"
    why = "all the slow cells share this part, and the others do not"
    cases = [each.case for each in slow]
    return blame.finding("slow", _severity(share, slow), found, why, _remedy(evidence), cases)


def _reach(which: str, share: float, slow: Sequence[RelativeRate]) -> str:
    """Returns how slow the cells are, in words: `device_local_copy sim:3 reaches 62% of its peers`.
    `which` describes the cells if there are several."""
    lowest = min(slow, key=_log)
    by_peers = lowest.log >= math.log(lowest.case.figure / lowest.fastest.figure) - 1e-9
    if len(slow) == 1:
        who, peers = f"{lowest.case.name} reaches", "its peers"
    else:
        who, peers = f"{count_of(len(slow))} {which} reach", "their peers"
    return f"{who} {share:.0%} of {peers if by_peers else 'what the hardware should reach'}"


def _only_both_ways(
    part: Part, slow: Sequence[RelativeRate], rates: Sequence[RelativeRate]
) -> set[Part]:
    """Returns the links of a part that are slow only if they are crossed in both directions at
    once. The result is empty for a single link, or if a cell in one direction is slow, too. Some
    cells must have shown that each direction alone is fast."""
    both = {one for each in slow for one in each.case.touched if one.both_ways}
    ways = (any(one.both_ways for one in each.case.touched) for each in slow)
    if part.both_ways or len(both) < 2 or not all(ways):
        return set()
    alone = [each for each in rates if part in each.case.touched
             and not any(one.both_ways for one in each.case.touched)]  # fmt: skip
    return both if alone and not any(each.slow for each in alone) else set()


def _opposed(slow: Mapping[Part, Sequence[RelativeRate]], evidence: Evidence) -> Finding:
    """Returns the finding for several links that are slow only in both directions at once. The host
    or the devices then serve both directions slowly. Parts that are fast in one direction are not
    at fault."""
    cells = list({each.case.number: each for some in slow.values() for each in some}.values())
    share = math.exp(statistics.median(each.log for each in cells))
    found = f"{_reach('over them', share, cells)}; each direction alone is as fast as it should be"
    why = "they share what serves both directions at once: relaxed ordering, the root complex"
    remedy = ("sudo lspci -vv | grep -E '^[0-9a-f]|RlxdOrd'", *_remedy(evidence))
    subject = f"{len(slow)} links (both directions at once)"
    return Finding("slow", "warn", subject, found, why, remedy, named(e.case for e in cells))


def check_unjudged(evidence: Evidence) -> Iterator[Finding]:
    """Yields a note on the parts that no figure can judge. Their cells have no peers without the
    part, no expectation, and no earlier runs to compare with."""
    rates = relative_rates(evidence)
    touched, left = frozenset[Part]().union(*(each.case.touched for each in rates)), alone(rates)
    for each in rates:
        if each.low or each.fine or shows(evidence, each.case.number):
            left -= each.case.touched
    parts = sorted((part for part in left if not part.both_ways), key=str)
    if not parts or left == touched:
        return
    found = "nothing shows whether it is slow"
    if len(parts) > 1:
        found = f"nothing shows whether they are slow: {listed(parts)}"
    found += "; there is nothing like it to compare with, and no figure is expected"
    why = "`linkgauge gate` against an earlier run of this machine or a baseline shows a loss"
    subject = str(parts[0]) if len(parts) == 1 else f"{len(parts)} parts"
    yield Finding("unjudged", "unknown", subject, found, why)


def _drift(blame: Blame, level: float, slow: Sequence[RelativeRate], evidence: Evidence) -> Finding:
    lowest = min(slow, key=_log)
    last = f"{lowest.case.name} is down to {math.exp(lowest.log):.0%}"
    found = f"each cell through it is {-math.expm1(level):.2%} slower than the one before: {last}"
    why = "a part that slows down as it works may be heating up, or filling up"
    remedy = (*tools(evidence, "state"), "# Measure again after a pause.")
    return blame.finding("drift", "fail", found, why, remedy, [each.case for each in slow])


def _unexplained(slow: Sequence[RelativeRate], evidence: Evidence) -> Finding:
    lowest = min(slow, key=_log)
    share = math.exp(lowest.log)
    found = _reach("that share no part", share, slow)
    if len(slow) > 1:
        found += f" or more, {lowest.case.name} the least"
    why = "no device is slow by itself: look at the links that only these cells cross"
    severity, cells = _severity(share, slow), named(each.case for each in slow)
    return Finding("slow", severity, str(lowest.case.cell), found, why, _remedy(evidence), cells)


def _severity(share: float, slow: Sequence[RelativeRate]) -> Severity:
    """Returns the severity of a loss. It is a failure if some cell is far off by more than chance,
    else a warning."""
    is_far = any(each.log + each.off < math.log(FAR) for each in slow)
    return "fail" if share < FAR and is_far else "warn"


def _log(each: RelativeRate) -> float:
    return each.log


def _remedy(evidence: Evidence) -> tuple[str, ...]:
    return (
        "linkgauge devices  # links, their speeds and the bridges above them",
        *(("sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:'",) if evidence.machine.functions else ()),
        *tools(evidence, "links"),
    )
