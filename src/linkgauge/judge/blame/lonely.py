"""Judges parts without peers by earlier runs of the machine."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Sequence

from linkgauge.judge.expected.link_rates import figure
from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.verdict import FAR
from linkgauge.model.documents.expected import Earlier
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part
from linkgauge.model.units import count_of

from .counters import troubled
from .explain import causes
from .table import Row, they_reach


def alone(rows: Sequence[Row]) -> frozenset[Part]:
    """Returns the parts that cannot be compared, because no cell has a peer without the part."""
    every = grouped((each.peers, each.parts) for each in rows)
    touched = frozenset[Part]().union(*(of for some in every.values() for of in some))
    differing = (frozenset.union(*some) - frozenset.intersection(*some) for some in every.values())
    return touched - frozenset[Part]().union(*differing)


def shows(evidence: Evidence, number: int) -> bool:
    """Whether the earlier runs suffice to show a loss of 10 % in the cell with this number."""
    return evidence.earlier is not None and number not in evidence.earlier.unknown


def lost_parts(
    rows: Sequence[Row],
    evidence: Evidence,
    blamed: Collection[Part | str],
    remedy: Sequence[str],
) -> Iterator[Finding]:
    earlier = evidence.earlier
    if earlier is None or not earlier.lost:
        return
    lost = {one.cell: one for one in earlier.lost}
    cases = [each.case for each in rows if each.parts.isdisjoint(blamed)]
    bad = [case for case in cases if case.number in lost]
    good = [case for case in cases if case.number not in lost and shows(evidence, case.number)]
    seen = troubled(evidence, frozenset().union(*(case.touched for case in bad)))
    sole = alone(rows)
    for blame, explained in causes(bad, good, seen=seen)[0] if bad else ():
        if blame.part not in sole:
            continue
        own = sorted((lost[case.number].share, case.name, case) for case in explained)
        share, lowest = statistics.median(each[0] for each in own), own[0][2]
        of = f"{figure(lowest.figure)} of {figure(lost[lowest.number].figure)}"
        of = f"{lowest.name} {of}" if own[1:] else of
        who = they_reach("through it", explained)
        found = f"{who} {share:.0%} of what {count_of(earlier.runs, 'earlier run')} reached ({of})"
        if earlier.since:
            before = "run" if earlier.since == 1 else f"{earlier.since} runs"
            found += f"; so did the {before} before this one"
        trend = f"linkgauge history trend {lowest.result.benchmark}"
        first = f"{trend}  # shows when it began; linkgauge history accept takes it as normal"
        lines = (_ONCE_MORE, first, *remedy) if _may_be_off(earlier) else (first, *remedy)
        severity = _severity(share, earlier)
        yield blame.finding("slow", severity, found, _why(earlier), lines, explained)


_ONCE_MORE = "# Measure again: one run may be off, but hardly two in a row."


def _may_be_off(earlier: Earlier) -> bool:
    return not (earlier.since or earlier.changed)


def _severity(share: float, earlier: Earlier) -> Severity:
    if _may_be_off(earlier):
        return "warn" if share < FAR else "note"
    return "fail" if share < FAR and earlier.since else "warn"


def _why(earlier: Earlier) -> str:
    changed = [f"{name} {was} → {now}" for name, (was, now) in earlier.changed.items()]
    if changed:
        return f"changed since then: {'; '.join(changed[:3])}"
    return "nothing beside it shows what is usual, but the runs of this machine vary by less"
