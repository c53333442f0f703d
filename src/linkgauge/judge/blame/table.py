"""A table with a row for each cell: its loss compared with its peers (cells of the same benchmark
over routes of the same kinds) or with its expected figure."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from statistics import NormalDist

import msgspec
from msgspec.structs import replace

from linkgauge.judge.findings import Evidence
from linkgauge.judge.verdict import LOW
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Kind, Part
from linkgauge.model.stats.summary import LEAST_SAMPLES, median_deviation, robust_deviation
from linkgauge.model.units import count_of

from .cases import Case, timed_cases_of
from .limits import CHANCE, NOISE, SLOW


class Row(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A cell and its losses, as negative logarithms. `lost` is relative to the mean of its `peers`
    that are not slow or, if even the fastest peer is `low`, to the expected figure. A `slow` cell
    is clearly below its fastest peer or its expected figure. `figure` may be a mean of cells that
    share parts. `relative` is the loss against the fastest peer, which may be `off` by chance."""

    case: Case
    peers: Hashable
    lost: float
    slow: bool
    low: bool = False
    figure: float = 0.0
    relative: float = 0.0
    off: float = 0.0
    weight: float = 1.0

    @property
    def shown(self) -> float:
        """Returns the loss to show: against the fastest peer or, if larger, `lost`."""
        return min(self.relative, self.lost)

    @property
    def is_by_peers(self) -> bool:
        """Whether the loss to show is the one against the fastest peer."""
        return self.shown >= self.relative - 1e-9

    @property
    def number(self) -> int:
        return self.case.number

    @property
    def parts(self) -> frozenset[Part]:
        return self.case.touched


@lru_cache(maxsize=1)
def rows_of(evidence: Evidence) -> list[Row]:
    """Returns the rows of all cells that have peers, in the order in which they were measured."""
    cases = [
        case for case in timed_cases_of(evidence)
        if case.equivalent and case.result.better == "higher" and case.figure
    ]  # fmt: skip
    scatter = _usual_scatter(cases)
    rows: list[Row] = []
    for equivalent in grouped((case.equivalent, case) for case in cases).values():
        is_shared = equivalent[0].is_oversubscribed
        figures = _shares(equivalent) if is_shared else [(one, one.figure) for one in equivalent]
        rows += _rows(figures, scatter)
    return sorted(rows, key=attrgetter("number"))


def _shares(equivalent: Sequence[Case]) -> list[tuple[Case, float]]:
    """Returns each oversubscribed cell with the mean figure of its group: cells that use the same
    shared parts. (A slow transfer leaves more of a shared part to the rest of its group.) A cell's
    new `touched` are the parts that the whole group uses, and those of its clearly slow cells."""
    uses = Counter(part for case in equivalent for part in case.touched)
    several = frozenset(part for part, number in uses.items() if 1 < number < len(equivalent))
    found = []
    shared = (((id(case.result), case.touched & several), case) for case in equivalent)
    for own in grouped(shared).values():
        mean = statistics.fmean(case.figure for case in own)
        behind = (case.touched for case in own if case.figure < SLOW * mean)
        parts = frozenset.intersection(*(case.touched for case in own)).union(*behind)
        found += [(replace(case, touched=parts), mean) for case in own]
    return found


def _rows(equivalent: Sequence[tuple[Case, float]], scatter: Mapping[int, float]) -> Iterator[Row]:
    ordered = sorted(equivalent, key=itemgetter(1), reverse=True)
    peers = tuple(map(itemgetter(0), ordered))
    expected, top = max(map(_expected, peers)), ordered[0][1]
    deviations = NormalDist().inv_cdf(1 - CHANCE / 2 / len(peers))
    off, slow, all_low = dict[Case, float](), set[Case](), False
    for case, figure in ordered:
        summary = case.cell.summary
        error = median_deviation(scatter[case.number], summary.n) if summary else 0.0
        # Samples that are far apart are no figure: it may be off by any factor.
        off[case] = min(deviations * error, 99.0)
        is_low = _is_low(case, expected, off[case])
        # What is low among its peers says nothing of these.
        all_low = all_low or (is_low and _expected(case) > 0 and figure > SLOW * top)
        if is_low or figure * math.exp(off[case]) < SLOW * top * math.exp(-off[peers[0]]):
            slow.add(case)
    well = [math.log(figure) for case, figure in ordered if case not in slow]
    usual = math.log(expected) if all_low else statistics.fmean(well or [math.log(top)])
    for case, figure in ordered:
        relative, lost = math.log(figure / top), min(0.0, math.log(figure) - usual)
        yield Row(
            case=case, peers=case.equivalent, figure=figure, relative=relative,
            lost=min(lost, relative) if all_low else lost, slow=case in slow, low=all_low,
            off=off[case], weight=1 / (1 + (off[case] / deviations / NOISE) ** 2),
        )  # fmt: skip


def _expected(case: Case) -> float:
    expected = case.cell.expected
    return 0.0 if expected is None or expected.measured else expected.achievable or 0.0


def _is_low(case: Case, expected: float, off: float) -> bool:
    of, verdict = case.cell.expected, case.cell.verdict
    if of is not None and of.measured:
        return verdict == "low"
    # A copy that varies less is perhaps low from a smaller loss on.
    is_below = verdict == "low" or (verdict == "perhaps low" and case.figure >= LOW * expected)
    return is_below and case.figure * math.exp(off) < SLOW * expected


def scatter_of(case: Case) -> float:
    """Returns the relative standard deviation of the samples. Rare stalls hardly change it."""
    summary = case.cell.summary
    if summary is None or not summary.stddev:
        return 0.0
    stddev = summary.stddev
    if summary.n >= LEAST_SAMPLES:
        usual = robust_deviation(abs(sample - summary.median) for sample in case.cell.samples)
        stddev = min(stddev, usual)
    return stddev / summary.median


def kinds_of(case: Case) -> frozenset[Kind]:
    """Returns the kinds of a cell's parts. Cells over the same kinds of parts vary alike."""
    return frozenset(map(attrgetter("kind"), case.touched))


def _usual_scatter(cases: Iterable[Case]) -> dict[int, float]:
    """Returns each cell's scatter, which is at least that of its noisiest part."""
    known = dict[tuple[Part, Hashable], list[float]]()
    own = dict[int, tuple[float, list[tuple[Part, Hashable]]]]()
    for case in cases:
        kinds, scatter = kinds_of(case), scatter_of(case)
        own[case.number] = scatter, [(part, kinds) for part in case.touched]
        for each in own[case.number][1]:
            known.setdefault(each, []).append(scatter)
    usual = {each: statistics.median(some) for each, some in known.items()}
    return {at: max(scatter, *map(usual.__getitem__, of)) for at, (scatter, of) in own.items()}


def share_of(rows: Iterable[Row]) -> float:
    return math.exp(statistics.median(map(attrgetter("shown"), rows)))


def reach(which: str, slow: Sequence[Row], share: float | None = None) -> str:
    """Formats how slow cells are: `device_local_copy sim:3 reaches 62% of its peers' speed`."""
    lowest = min(slow, key=attrgetter("shown"))
    peers = "their peers" if slow[1:] else "its peers"
    of = f"{peers}' speed" if lowest.is_by_peers else "what the hardware should reach"
    who = they_reach(which, [row.case for row in slow])
    return f"{who} {share or share_of(slow):.0%} of {of}"


def they_reach(which: str, cases: Sequence[Case]) -> str:
    if not cases[1:]:
        return f"{cases[0].name} reaches"
    cells = count_of(len(cases))
    # The figure of such a cell is that of one of its transfers.
    is_of_one = any(case.cell.report.is_first and case.cell.transfers[1:] for case in cases)
    return f"in {cells}, transfers {which} reach" if is_of_one else f"{cells} {which} reach"


def onset(rows: Sequence[Row], lost: Sequence[float]) -> int:
    """Finds by cumulative sums where `lost` rises most (E. Page, Biometrika 41, 1954)."""
    count, later, found = len(rows), 0.0, (0.0, 0)
    mean = statistics.fmean(lost)
    for before in range(count - 1, 0, -1):
        later += lost[before] - mean
        found = max(found, (later / math.sqrt(before * (count - before)), rows[before].number))
    return found[1]
