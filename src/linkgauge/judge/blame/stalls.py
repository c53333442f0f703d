"""Finds parts whose cells have more spikes than their peers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.remedies import BUSIEST, kernel_log
from linkgauge.model.hardware.part import Part
from linkgauge.model.stats.summary import deviation
from linkgauge.model.units import count_of

from .alike import CHANCE, Classes, classes, more_events, more_often, said_of
from .cases import named
from .causes import Cause, Strength, causes, suspects
from .spikes import NOISE, SCATTER, Steadiness, by_moment, longest, pooled, steadiness_of

_MORE = 1.7
"""The largest ratio between the scatter of cells with spikes, without these spikes, and the scatter
of quiet cells."""
_CLEAR = 4.0
"""The least ratio of a cell's scatter with its spikes to that without, if the rest scatters,
too."""
_AGAIN = 0.125
"""The least share of the later visits with spikes if a part is the cause: with two samples a visit,
a stall in every eighth sample affects a quarter of the visits."""
_WHY = "occasional stalls delay programs that wait for every transfer"


def check_stalls(evidence: Evidence) -> Iterator[Finding]:
    """Yields findings on parts whose cells have samples that sometimes last much longer."""
    cells = steadiness_of(evidence)
    bad = [cell for cell in cells if cell.spikes]
    if not bad:
        return
    stall, first = longest(bad), min(cell.case.number for cell in bad)
    quiet = [cell for cell in cells if not cell.spikes and _would_show(cell, stall)]
    if not _are_stalls(bad, [cell for cell in quiet if cell.case.number > first]):
        return
    strengths = (
        Strength({cell.case: lost for cell in bad if (lost := cell.lost)}),
        Strength({cell.case: len(cell.spikes) for cell in bad}, slack=1.0),
    )
    blamed, _ = causes(
        [cell.case for cell in bad], [cell.case for cell in quiet], strengths=strengths
    )
    blames = suspects([cell.case for cell in bad], [cell.case for cell in (*bad, *quiet)])
    beside = {blame.part: both for blame in blames if (both := _beside(blame.part, bad, quiet))}
    left = bad
    for cause in blamed:
        struck = [cell for cell in bad if cell.case in cause.cases]
        chance = _chance(beside.get(cause.blame.part, ())) * len(beside)
        is_often = len(struck) > 1 and _is_often(cause, quiet)
        if is_often and chance < CHANCE and _is_confirmed(struck):
            left = [cell for cell in left if cell not in struck]
            yield _stall(cause, struck)
    if len(left) > 1:
        yield _anywhere(left, len(cells))


def _is_often(cause: Cause, quiet: Sequence[Steadiness]) -> bool:
    """Whether at least half of the part's cells have spikes, from the first cell with spikes on."""
    first = min(case.number for case in cause.cases)
    calm = [cell for cell in quiet
            if cause.blame.part in cell.case.touched and cell.case.number > first]  # fmt: skip
    return len(cause.cases) >= len(calm)


def _is_confirmed(struck: Sequence[Steadiness]) -> bool:
    """Whether spikes return in later visits, if there are any. A neighbour's passing disturbance
    does not return."""
    again = [
        any(place in visit for place in cell.spikes)
        for cell in struck
        for visit in cell.visits
        if visit.start > cell.spikes[0]
    ]
    return not again or sum(again) >= max(1.0, _AGAIN * len(again))


def _beside(
    part: Part, bad: Sequence[Steadiness], quiet: Sequence[Steadiness]
) -> Classes[Sequence[Steadiness]]:
    """Returns the cells that touch the part, and their peers, by moment and class. If the part was
    steady before its first spikes, earlier cells are left out."""
    first = min(cell.case.number for cell in bad if part in cell.case.touched)
    began = any(part in cell.case.touched and cell.case.number < first for cell in quiet)
    cells = [c for c in (*bad, *quiet) if c.case.number >= first or not began]
    return classes(
        by_moment(cell for cell in cells if part in cell.case.touched),
        by_moment(cell for cell in cells if part not in cell.case.touched),
    )


def _chance(beside: Classes[Sequence[Steadiness]]) -> float:
    """Returns the probability that chance alone gives the part's cells so many spikes."""
    if not beside:
        return math.inf
    often = more_often(said_of(beside, lambda cells: any(cell.spikes for cell in cells)))
    many = more_events(said_of(beside, _events))
    return min(often, many)


def _events(cells: Sequence[Steadiness]) -> tuple[int, int]:
    return sum(cell.episodes for cell in cells), sum(cell.count for cell in cells)


def _worst(bad: Sequence[Steadiness]) -> Steadiness:
    return max(bad, key=lambda cell: cell.longest)


def _stall(cause: Cause, struck: Sequence[Steadiness]) -> Finding:
    remedy = (
        "# Look for monitoring that polls the device, interrupts, CPU steal, or a retraining link:",
        kernel_log("aer", "pciehp", "xid"),
        BUSIEST,
    )
    cases = [cell.case for cell in struck]
    return cause.blame.finding("stall", "warn", _longest_of(struck), _WHY, remedy, cases)


def _anywhere(struck: Sequence[Steadiness], count: int) -> Finding:
    """Returns the finding for spikes that cannot be blamed on one part."""
    found = f"{_longest_of(struck)}; no part has more such samples than its peers"
    subject = f"{len(struck)} of {count_of(count)}"
    cells = named(cell.case for cell in struck)
    return Finding("stall", "note", subject, found, _WHY, (BUSIEST,), cells)


def _longest_of(struck: Sequence[Steadiness]) -> str:
    """Returns the longest spike in words: `2 of 128 samples of core_to_core_latency (0, 1) took up
    to 65 times as long as usual`."""
    worst = _worst(struck)
    more = f"; {len(struck) - 1} more of the cells have such samples" if len(struck) > 1 else ""
    return (
        f"{len(worst.spikes)} of {worst.count} samples of {worst.case.name} took up to "
        f"{worst.longest:.3g} times as long as usual{_period(worst)}{more}"
    )


def _would_show(cell: Steadiness, stall: float | None) -> bool:
    """Whether a stall of this many seconds would be visible as a spike in this cell."""
    if stall is None or cell.seconds is None:
        return True
    return 1 + stall / cell.seconds > max(cell.least, 2 * cell.longest - 1)


def _are_stalls(bad: Sequence[Steadiness], calm: Sequence[Steadiness]) -> bool:
    """Whether these cells have stalls and do not just scatter. There must be several cells, and
    without the spikes they must be about as steady as the others."""
    if len(bad) < 2:
        return False
    whole = math.sqrt(statistics.fmean(deviation(cell.times) ** 2 for cell in bad))
    rest = pooled(bad)
    usual = max(pooled(calm), NOISE / 4)
    return whole > 2 * rest and (rest < max(_MORE * usual, SCATTER) or whole > _CLEAR * rest)


def _period(cell: Steadiness) -> str:
    """Returns the distance between spikes in words, or an empty text if it is not regular."""
    gaps = {later - earlier for earlier, later in zip(cell.spikes, cell.spikes[1:], strict=False)}
    return f", every {gaps.pop()} samples" if len(gaps) == 1 and gaps != {1} else ""
