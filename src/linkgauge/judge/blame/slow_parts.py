"""Finds slow parts in three steps: the fewest parts that explain slow cells, parts whose loss is so
small that only all their cells together show it, and parts that only earlier runs show."""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Iterator, Mapping, Sequence
from operator import attrgetter

from msgspec.structs import replace

from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.vendor import tools
from linkgauge.judge.verdict import FAR
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part
from linkgauge.model.units import count_of

from .cases import named
from .causes import Blame, suspects
from .counters import slowed, troubled
from .engines import bounded_by_engine
from .explain import Fit, Search, Suspect, without
from .leftover import small_losses
from .limits import ENOUGH, LEAST_LOSS, PART
from .lonely import lost_parts
from .table import Row, reach, rows_of, share_of


def check_slow(evidence: Evidence) -> Iterator[Finding]:
    rows, by_engine = bounded_by_engine(rows_of(evidence), evidence)
    remedy = _remedy(evidence)
    yield from by_engine
    blamed = set[Part | str]()
    for some in (_by_cells, _together):
        left = [row for row in rows if blamed.isdisjoint(row.parts)] if blamed else rows
        for finding in some(left, evidence):
            blamed.add(finding.about)
            cells = frozenset(finding.cells)
            shown = share_of(row for row in left if row.case.name in cells)
            yield replace(finding, remedy=finding.remedy or remedy, value=shown)
    yield from lost_parts(rows, evidence, blamed, remedy)


def _by_cells(rows: Sequence[Row], evidence: Evidence) -> Iterator[Finding]:
    slow = [row for row in rows if row.slow]
    if not slow:
        return
    seen = troubled(evidence, frozenset().union(*map(attrgetter("parts"), rows)))
    blames = suspects(rows, seen | slowed(evidence), links_first=True)
    # Nothing tells when another tool measured each cell.
    search = Search(rows, blames, seen, ordered=evidence.tool is None)
    chosen, best, touching = search.chosen, search.best, search.touching
    gains = {s: search.loss(without(s, chosen)) - search.loss(chosen) for s in chosen}
    affected = {s: _most_affected(s, slow, best) for s in chosen}
    opposed: dict[Part, list[Row]] = {}
    for suspect in chosen:
        cells, others = affected[suspect], without(suspect, chosen)
        surer = [other for other in others if gains[other] >= gains[suspect]]
        inner = [one for one in surer if {*touching[suspect.part]} < {*touching[one.part]}]
        if inner and any(_is_as_slow(cells, affected[one], one) for one in inner):
            continue
        if links := _only_both_ways(suspect.part, cells, rows):
            opposed |= dict.fromkeys(links, cells)
            continue
        as_good = search.as_good(suspect)
        blame = blames[suspect.part].beside(map(blames.__getitem__, as_good))
        finding = (_drift(blame, best.levels[suspect], cells, evidence) if suspect.drifts
                   else _slow(blame, suspect, cells, rows))  # fmt: skip
        # What the others explain nearly as well without it is no more than likely, and one cell
        # shows no trend. Four standard deviations of what stays unexplained are clear.
        least = max((5 if surer else 2) * PART, 16 * best.unexplained / len(slow))
        is_sure = gains[suspect] > least and (len(cells) > 1 or not suspect.drifts) and not inner
        if finding.severity == "fail" and _may_be_unlike(suspect.part, evidence):
            is_sure, finding = False, replace(finding, why=f"{finding.why}; {_UNLIKE}")
        yield finding if is_sure else replace(finding, severity="warn")
    if opposed:
        yield _opposed(opposed, evidence)
    parts = set(map(attrgetter("part"), chosen))
    if rest := [row for row in slow if parts.isdisjoint(row.parts)]:
        fast = grouped((_copies(row), _table(row)) for row in rows if not row.slow)
        are_fast = all({*fast.get(_copies(row), ())} - {_table(row)} for row in rest)
        kinds = {row.peers for row in rest}
        equal = [row.slow for row in rows if row.peers in kinds]
        # A text may leave out a link that these cells share.
        is_unsure = evidence.tool is not None or 2 * sum(equal) > len(equal) > len(rest)
        yield _unexplained(rest, are_fast, is_unsure=is_unsure)


def _together(rows: Sequence[Row], evidence: Evidence) -> Iterator[Finding]:
    blames = suspects(rows, slowed(evidence), links_first=True)
    for (part, *others), loss, compared in small_losses(rows, blames):
        blame, own = blames[part].beside(map(blames.__getitem__, others)), compared.rows
        first = min(own, key=attrgetter("number")).case.name
        of = f"those before {first}" if compared.since else "their peers"
        found = f"{count_of(len(own))} through it together reach {math.exp(-loss):.1%} of {of}"
        why = "hardly one shows it alone, but chance does that to all of them once in 1,000 runs"
        yield blame.finding("slow", "warn", found, why, (), [row.case for row in own])


_UNLIKE = "nothing tells whether its slot is as fast as those that it is compared with"


def _may_be_unlike(part: Part, evidence: Evidence) -> bool:
    """Whether a text leaves out what a PCIe link carries, and few devices are like the one below:
    a board's slots differ, so that only several equal ones show which of them is slow."""
    devices = evidence.machine.by_memory
    own = devices.get(part.ends[0]) if part.kind == "PCIe link" else None
    if evidence.tool is None or own is None:
        return False
    function = evidence.machine.functions.get(own.pci or "")
    is_known = function is not None and function.link.max_speed and function.link.max_width
    return not is_known and sum(o.model == own.model for o in devices.values()) <= ENOUGH


def _is_as_slow(inner: Sequence[Row], outer: Sequence[Row], whole: Suspect) -> bool:
    """Whether cells of a part within `whole` are no slower than the others: it adds nothing."""
    own, around = ([row.shown for row in rows] for rows in (inner, outer))
    level = min(around) if whole.drifts else statistics.median(around)
    return statistics.median(own) > level + math.log(1 - 3 * LEAST_LOSS)


def _most_affected(suspect: Suspect, slow: Sequence[Row], fit: Fit) -> list[Row]:
    touched = [row for row in slow if suspect.part in row.parts]
    worse = {s.part for s, level in fit.levels.items() if level < fit.levels[suspect]}
    return [row for row in touched if worse.isdisjoint(row.parts)] or touched


def _slow(blame: Blame, suspect: Suspect, slow: Sequence[Row], rows: Sequence[Row]) -> Finding:
    onset = f"; the first slow one was {slow[0].case.name}" if suspect.since else ""
    found = f"{reach('through it', slow)}{onset}"
    kinds, is_fast = set(map(attrgetter("peers"), slow)), False
    own, others = list[bool](), list[bool]()
    for row in rows:
        uses = suspect.part in row.parts
        if row.peers not in kinds:
            is_fast = is_fast or (uses and not row.slow)
        elif row.number >= suspect.since:
            (own if uses else others).append(row.slow)
    why = "all comparable cells that use it are slow, and none of the others is"
    if not all(own) or any(others):
        why = f"{sum(own)} of {len(own)} comparable cells that use it are slow"
        why += f", and {sum(others) or 'none'} of {len(others)} that do not" if others else ""
    severity = _severity(slow)
    by_peers = all(map(attrgetter("is_by_peers"), slow))
    if by_peers and 2 * sum(others) > max(len(others), len(own)):  # it hardly differs from these
        severity = "warn"
    if is_fast and not others:
        severity, why = "warn", "its other cells are fast enough, and it has no peer to compare"
    return blame.finding("slow", severity, found, why, (), map(attrgetter("case"), slow))


def _drift(blame: Blame, level: float, slow: Sequence[Row], evidence: Evidence) -> Finding:
    lowest = min(slow, key=attrgetter("shown"))
    last = f"{lowest.case.name} is down to {math.exp(lowest.shown):.0%}"
    found = f"each cell through it is {-math.expm1(level):.2%} slower than the one before: {last}"
    why = "a part that slows down as it works may be heating up, or filling up"
    remedy = (*tools(evidence, "state"), "# Measure again after a pause.")
    return blame.finding("drift", "fail", found, why, remedy, [row.case for row in slow])


def _severity(slow: Sequence[Row]) -> Severity:
    """Returns `fail`, or `warn` for a small loss, because unlucky placement may cause one."""
    is_far = any(row.shown + row.off < math.log(FAR) for row in slow)
    return "fail" if share_of(slow) < FAR and is_far else "warn"


def _only_both_ways(part: Part, slow: Sequence[Row], rows: Sequence[Row]) -> set[Part]:
    """Returns two links or more that are slow only if both directions are used at once."""
    both = {one for row in slow for one in row.parts if one.both_ways}
    if part.both_ways or len(both) < 2 or any(both.isdisjoint(row.parts) for row in slow):
        return set()
    alone = [row for row in rows
             if part in row.parts and not any(one.both_ways for one in row.parts)]  # fmt: skip
    return both if alone and not any(row.slow for row in alone) else set()


def _opposed(slow: Mapping[Part, Sequence[Row]], evidence: Evidence) -> Finding:
    cells = list({row.number: row for some in slow.values() for row in some}.values())
    found = f"{reach('over them', cells)}; each direction alone is as fast as it should be"
    why = "they share what serves both directions at once: relaxed ordering, the root complex"
    remedy = ("sudo lspci -vv | grep -E '^([0-9a-f])|RlxdOrd'", *_remedy(evidence))
    subject = f"{len(slow)} links (both directions at once)"
    return Finding("slow", "warn", subject, found, why, remedy, named(row.case for row in cells))


def _copies(row: Row) -> Hashable:
    return row.case.result.benchmark, row.case.cell.transfers


def _table(row: Row) -> Hashable:
    return id(row.case.result), row.case.cell.bytes


def _unexplained(slow: Sequence[Row], are_fast: bool, *, is_unsure: bool) -> Finding:
    lowest = min(slow, key=attrgetter("shown"))
    found = reach("that share no slow part", slow, share_of([lowest]))
    if len(slow) > 1:
        found += f" at worst, in {lowest.case.name}"
    why = "each part that they use is fast in other cells: look at links that only they cross"
    if are_fast:
        why = "the same copies are fast in other cells: not a part but the size or moment is slow"
    severity = "warn" if are_fast or is_unsure else _severity([lowest])
    cells = named(row.case for row in slow)
    return Finding("slow", severity, str(lowest.case.cell), found, why, cells=cells)


def _remedy(evidence: Evidence) -> tuple[str, ...]:
    look = ("sudo lspci -vv | grep -E '^([0-9a-f])|LnkSta:'",)
    return (
        "linkgauge devices  # links, their speeds and the bridges above them",
        *(look if evidence.machine.functions else ()),
        *tools(evidence, "links"),
    )
