"""Compares each cell's bandwidth with that of its peers, and with its expectation.

Peers are cells of the same benchmark over routes of the same kinds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from statistics import NormalDist

import msgspec

from linkgauge.judge.expected.healthy import LOOSE
from linkgauge.judge.expected.link_rates import figure
from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.verdict import FAR, LOW
from linkgauge.model.earlier import Earlier
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part
from linkgauge.model.stats.summary import LEAST_SAMPLES, median_deviation, robust_deviation
from linkgauge.model.units import count_of

from .cases import Case, timed_cases_of
from .causes import causes
from .counters import troubled
from .spikes import LEAST

SLOW = 0.9
"""The share of its peers' figure below which a cell is slow. Equal cells differ by some percent: a
median of six samples with 2 % of noise errs by 1 %, the fastest of many by two or three times
that."""
NOISY = 0.02
"""The error of a median from which a cell has half the weight."""
_ANYTHING = math.log(1000)
"""The largest error of a figure, as a logarithm: such a figure may have any value."""
_DEVIATIONS = 3.5
"""The number of standard deviations by which a median may be off: one in 2000 is farther off."""
_CHANCE = 2 * (1 - NormalDist().cdf(_DEVIATIONS))
"""The probability that a median is farther off by chance. It is divided by the number of compared
medians (Bonferroni)."""
_MANY = 24
"""The number of peers from which their scatter is shared. Among a thousand cells with few samples
each, the samples of some are close together by chance."""
_STEADY = 0.05
"""The error up to which a median is as good as exact: nine samples that scatter by 3.5 % reach
it."""


_Noise = frozenset[str] | None
"""The kinds of a cell's parts. Cells with parts of the same kinds vary alike: a node's own memory
is steady, however much copies over PCIe from and to it vary."""


class RelativeRate(msgspec.Struct, frozen=True, eq=False):
    """A measured cell compared with its peers. `relative` is the logarithm of its figure relative
    to the fastest peer. `slow` means that the cell is clearly below the fastest peer or its
    expectation. `low` means that even its fastest peers are below the expectation. `fine` means
    that the cell is as fast as expected. `log` is its loss as a logarithm, relative to the fastest
    peer or, for a `low` cell, to the expectation. `weight` is the inverse of the figure's variance.
    `off` is how far the figure may be off by chance, as a logarithm."""

    case: Case
    log: float
    peers: tuple[Case, ...]
    slow: bool
    relative: float
    weight: float
    off: float
    low: bool = False
    fine: bool = False

    @property
    def fastest(self) -> Case:
        return self.peers[0]


@lru_cache(maxsize=1)
def relative_rates(evidence: Evidence) -> list[RelativeRate]:
    """Returns the relative rate of each cell that has peers. All checks of the same evidence share
    the result."""
    classes = grouped(
        (case.peers, case)
        for case in timed_cases_of(evidence)
        if case.peers and case.result.better == "higher" and case.figure
    )
    ordered = [
        tuple(sorted(peers, key=attrgetter("figure"), reverse=True)) for peers in classes.values()
    ]
    scatters = {case: scatter_of(case) for peers in ordered for case in peers}
    usual = _usual_scatter(scatters)
    # Few samples may lie close together by chance, far from the median of many.
    scatters = {case: max(scatter, usual(case)) for case, scatter in scatters.items()}
    return [rate for peers in ordered for rate in _beside_each_other(peers, scatters)]


def _beside_each_other(
    peers: tuple[Case, ...], scatter_of_each: Mapping[Case, float]
) -> Iterator[RelativeRate]:
    """Compares cells that should be equal, the fastest first. The scatter of each is at least that
    of its parts' cells. All cells get the highest expectation among them."""
    top = math.log(peers[0].figure)
    deviations = NormalDist().inv_cdf(1 - _CHANCE / 2 / len(peers))
    scatters = [scatter_of_each[case] for case in peers]
    usual = statistics.median(scatters) if len(peers) >= _MANY else 0.0
    errors = [
        _error(case, max(scatter, usual), deviations)
        for case, scatter in zip(peers, scatters, strict=True)
    ]
    expected = max((_expected(case) for case in peers), default=0.0)
    low = [
        bool(expected) and _is_low(case, expected, error)
        for case, error in zip(peers, errors, strict=True)
    ]
    logs = [math.log(case.figure) - top for case in peers]
    # If one is low that is as fast as the fastest, all are.
    all_low = any(is_low and log > math.log(SLOW) for is_low, log in zip(low, logs, strict=True))
    lowest = peers[0].figure * math.exp(-errors[0])
    for case, log, is_low, error in zip(peers, logs, low, errors, strict=True):
        slow = is_low or _highest(case, error) < SLOW * lowest
        share = math.log(case.figure / expected) if expected else 0.0
        yield RelativeRate(
            case,
            min(log, share) if all_low else log,
            peers,
            slow,
            log,
            weight=1 / (1 + (error / deviations / NOISY) ** 2),
            off=error,
            low=all_low,
            fine=bool(expected) and not is_low and share > math.log(SLOW),
        )


def _expected(case: Case) -> float:
    """Returns the expected rate in bytes/s, or 0 if it is unknown or comes from this run's own
    figures."""
    expected = case.cell.expected
    return 0.0 if expected is None or expected.measured else expected.achievable or 0.0


def _is_low(case: Case, expected: float, error: float) -> bool:
    """Whether the cell's median is clearly lower than expected. If the samples vary, the upper end
    of the median's interval must be low, too."""
    if case.cell.verdict != "low" or error < _STEADY:
        return case.cell.verdict == "low"
    bound = LOW if case.figure >= LOOSE * expected else LOOSE
    return _highest(case, error) < bound * expected


def _highest(case: Case, error: float) -> float:
    return case.figure * math.exp(error)


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


def noise_of(touched: Iterable[Part]) -> frozenset[str]:
    return frozenset(part.kind for part in touched)


def _usual_scatter(scatters: Mapping[Case, float]) -> Callable[[Case], float]:
    """Returns the usual scatter of the noisiest part of a case. Only cells with the same kinds of
    parts count. Few samples do not tell how they scatter: all cells of their parts count."""
    by_way = grouped((case.touched, scatter) for case, scatter in scatters.items())
    found: dict[tuple[Part, _Noise], list[float]] = {}
    for touched, some in by_way.items():
        noise = noise_of(touched)
        for part in touched:
            found.setdefault((part, noise), []).extend(some)
    usual = {key: statistics.median(some) for key, some in found.items()}
    most = grouped((part, scatter) for (part, _), scatter in usual.items())
    usual |= {(part, None): max(some) for part, some in most.items()}

    @cache
    def of(touched: frozenset[Part], is_few: bool) -> float:
        noise = None if is_few else noise_of(touched)
        return max(usual[part, noise] for part in touched)

    def usual_of(case: Case) -> float:
        summary = case.cell.summary
        return of(case.touched, summary is not None and summary.n < LEAST)

    return usual_of


def _error(case: Case, scatter: float, deviations: float) -> float:
    """Returns how far the median may be off by chance, as a logarithm. It is computed from the
    scatter of the samples."""
    samples = case.cell.summary.n if case.cell.summary else 0
    return min(deviations * median_deviation(scatter, samples), _ANYTHING) if scatter else 0.0


# Parts that have nothing like them beside them: earlier runs of the machine are their peer.

MOST_FACTS = 3


def alone(rates: Sequence[RelativeRate]) -> frozenset[Part]:
    """Returns the parts that cannot be compared, because no cell has a peer without the part."""
    every = grouped((each.case.peers, each.case.touched) for each in rates)
    touched = frozenset[Part]().union(*(of for some in every.values() for of in some))
    told = (frozenset.union(*some) - frozenset.intersection(*some) for some in every.values())
    return touched - frozenset[Part]().union(*told)


def shows(evidence: Evidence, number: int) -> bool:
    """Whether the earlier runs suffice to show a loss of 10 % in the cell with this number."""
    return evidence.earlier is not None and number not in evidence.earlier.unknown


def lost_parts(
    rates: Sequence[RelativeRate],
    evidence: Evidence,
    blamed: Collection[Part | str],
    remedy: Sequence[str],
) -> Iterator[Finding]:
    """Yields findings on parts that explain why cells are slower than in earlier runs. Only parts
    that cannot be compared with peers are included. `blamed` parts are left out."""
    earlier = evidence.earlier
    if earlier is None or not earlier.lost:
        return
    lost = {one.cell: one for one in earlier.lost}
    cases = [each.case for each in rates if each.case.touched.isdisjoint(blamed)]
    bad = [case for case in cases if case.number in lost]
    good = [case for case in cases if case.number not in lost and shows(evidence, case.number)]
    seen = troubled(evidence, frozenset().union(*(case.touched for case in bad)))
    sole = alone(rates)
    for cause in causes(bad, good, seen=seen)[0] if bad else ():
        if cause.blame.part not in sole:
            continue
        own = sorted((lost[case.number].share, case.name, case) for case in cause.cases)
        share, lowest = statistics.median(each[0] for each in own), own[0][2]
        of = f"{figure(lowest.figure)} of {figure(lost[lowest.number].figure)}"
        who, of = (
            (f"{count_of(len(own))} through it reach", f"{lowest.name} {of}")
            if own[1:]
            else (f"{lowest.name} reaches", of)
        )
        found = f"{who} {share:.0%} of what {count_of(earlier.runs, 'earlier run')} reached ({of})"
        if earlier.since:
            found += f", as did {count_of(earlier.since, 'run')} before this one"
        first = f"linkgauge history trend {lowest.result.benchmark}  # since when"
        lines = (_ONCE_MORE, first, *remedy) if _may_be_off(earlier) else (first, *remedy)
        severity = _severity(share, earlier)
        yield cause.blame.finding("slow", severity, found, _why(earlier), lines, cause.cases)


_ONCE_MORE = "# Measure again: one run may be off, but hardly two in a row."


def _may_be_off(earlier: Earlier) -> bool:
    """Whether the loss may be a passing disturbance. Only this run shows it, and nothing in the
    machine changed before."""
    return not (earlier.since or earlier.changed)


def _severity(share: float, earlier: Earlier) -> Severity:
    """Returns the severity of a loss. A small loss that only a single run shows may be a passing
    disturbance."""
    if _may_be_off(earlier):
        return "warn" if share < FAR else "note"
    return "fail" if share < FAR and earlier.since else "warn"


def _why(earlier: Earlier) -> str:
    changed = [f"{name} {was} → {now}" for name, (was, now) in earlier.changed.items()]
    if changed:
        return f"since then changed: {'; '.join(changed[:MOST_FACTS])}"
    return "nothing beside it shows what is usual, but the runs of this machine vary by less"
