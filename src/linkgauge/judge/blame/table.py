"""The table from which slow parts are found: a row for each cell, with the loss of its figure
against its peers or its expectation, and the parts that it uses as columns.

Peers are cells of the same benchmark over routes of the same kinds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist

import msgspec

from linkgauge.judge.findings import Evidence
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Kind, Part
from linkgauge.model.stats.summary import LEAST_SAMPLES, median_deviation, robust_deviation
from linkgauge.model.units import count_of

from .cases import Case, timed_cases_of
from .limits import CHANCE, NOISE, SLOW


class Row(msgspec.Struct, frozen=True, eq=False):
    """A measured cell beside its `peers`, the fastest of which comes first. All losses are
    logarithms, and negative.

    relative: The figure relative to the fastest peer.
    lost: The loss that parts may explain: against the mean of the peers that are not slow or, if
        even the fastest peer is `low`, against the expectation.
    slow: Whether the cell is clearly below the fastest peer or its expectation.
    low: Whether even the fastest peer is below the expectation.
    fine: Whether the cell is as fast as expected.
    off: By how much the figure may be off by chance.
    weight: What the row counts: less for a figure that may be far off."""

    case: Case
    peers: tuple[Case, ...]
    relative: float
    lost: float
    slow: bool
    low: bool
    fine: bool
    off: float
    weight: float

    @property
    def shown(self) -> float:
        """Returns the loss to show: against the fastest peer, or the expectation if that is more."""
        return min(self.relative, self.lost)

    @property
    def number(self) -> int:
        return self.case.number

    @property
    def parts(self) -> frozenset[Part]:
        return self.case.touched


@lru_cache(maxsize=1)
def rows_of(evidence: Evidence) -> list[Row]:
    """Returns the rows of all cells that have peers, in the order of measuring. All checks of the
    same evidence share them."""
    classes = grouped(
        (case.peers, case)
        for case in timed_cases_of(evidence)
        if case.peers and case.result.better == "higher" and case.figure
    ).values()
    scatter = _usual_scatter(case for peers in classes for case in peers)
    rows = (row for peers in classes for row in _rows(peers, scatter))
    return sorted(rows, key=lambda row: row.number)


def _rows(peers: Iterable[Case], scatter: Mapping[Case, float]) -> Iterator[Row]:
    ordered = tuple(sorted(peers, key=lambda case: -case.figure))
    expected = max(map(_expected, ordered))
    deviations = NormalDist().inv_cdf(1 - CHANCE / 2 / len(ordered))
    # Samples that are far apart are no figure: it may be off by any factor.
    off = {case: min(deviations * _error(case, scatter[case]), 99.0) for case in ordered}
    low = {case for case in ordered if expected and _is_low(case, expected, off[case])}
    top = ordered[0].figure
    all_low = any(case.figure > SLOW * top for case in low)
    least = SLOW * top * math.exp(-off[ordered[0]])
    slow = low | {case for case in ordered if case.figure * math.exp(off[case]) < least}
    well = [math.log(case.figure) for case in ordered if case not in slow]
    usual = math.log(expected) if all_low else statistics.fmean(well) if well else math.log(top)
    for case in ordered:
        relative = math.log(case.figure / top)
        lost = min(0.0, math.log(case.figure) - usual)
        yield Row(
            case, ordered, relative, min(lost, relative) if all_low else lost,
            slow=case in slow, low=all_low,
            fine=case not in low and case.figure > SLOW * expected > 0,
            off=off[case], weight=1 / (1 + (off[case] / deviations / NOISE) ** 2),
        )  # fmt: skip


def _expected(case: Case) -> float:
    """Returns the expected rate in bytes/s, or 0 if it is unknown or comes from this run's own
    figures."""
    expected = case.cell.expected
    return 0.0 if expected is None or expected.measured else expected.achievable or 0.0


def _is_low(case: Case, expected: float, off: float) -> bool:
    """Whether the cell's median is lower than expected, also if it is off by chance."""
    return case.cell.verdict == "low" and case.figure * math.exp(off) < SLOW * expected


def _error(case: Case, scatter: float) -> float:
    return median_deviation(scatter, case.cell.summary.n) if case.cell.summary else 0.0


def scatter_of(case: Case) -> float:
    """Returns the relative standard deviation of the cell's samples. Rare stalls hardly count."""
    summary = case.cell.summary
    if summary is None or not summary.stddev:
        return 0.0
    stddev = summary.stddev
    if summary.n >= LEAST_SAMPLES:
        usual = robust_deviation(abs(sample - summary.median) for sample in case.cell.samples)
        stddev = min(stddev, usual)
    return stddev / summary.median


def kinds_of(parts: Iterable[Part]) -> frozenset[Kind]:
    """Returns the kinds of the parts that a cell uses. Cells over the same kinds vary alike: a
    node's own memory is steady, however much copies over PCIe vary."""
    return frozenset(part.kind for part in parts)


def _usual_scatter(cases: Iterable[Case]) -> dict[Case, float]:
    """Returns the scatter of each cell, at least that of the noisiest of its parts, because few
    samples may lie close together by chance. The scatter of a part is the median over its cells of
    the same kinds."""
    own = {case: scatter_of(case) for case in cases}
    usual = {
        key: statistics.median(some)
        for key, some in grouped(
            ((part, kinds_of(case.touched)), scatter)
            for case, scatter in own.items()
            for part in case.touched
        ).items()
    }
    return {
        case: max(scatter, *(usual[part, kinds_of(case.touched)] for part in case.touched))
        for case, scatter in own.items()
    }


def share_of(rows: Iterable[Row]) -> float:
    """Returns the share of their rate that these cells have left."""
    return math.exp(statistics.median(row.shown for row in rows))


def reach(which: str, slow: Sequence[Row], share: float | None = None) -> str:
    """Returns how slow cells are, in words: `device_local_copy sim:3 reaches 62% of its peers`.
    `which` describes the cells if there are several. `share` replaces the median of them."""
    lowest = min(slow, key=lambda row: row.shown)
    by_peers = lowest.shown >= lowest.relative
    if len(slow) == 1:
        who, peers = f"{lowest.case.name} reaches", "its peers"
    else:
        who, peers = f"{count_of(len(slow))} {which} reach", "their peers"
    of = peers if by_peers else "what the hardware should reach"
    return f"{who} {share or share_of(slow):.0%} of {of}"
