"""Bandwidth below what equal cells reach, or below what is expected: which parts slow it?

Each cell is compared with the fastest of its peers (the same benchmark over routes of the same
kinds) and, where that is known, with what is expected of it. A part that is to blame has a constant
fraction of its rate wherever it is the bottleneck, from the beginning or from some cell on, or a
rate that falls exponentially with the cell's number. The fewest parts that explain all slow cells
and contradict no healthy one win, by the least squares of logarithms.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.model.result import Expected
from linkgauge.model.statistics import LEAST_SAMPLES, median_deviation
from linkgauge.model.units import count_of

from .cases import Case, named, timed_cases_of
from .causes import Blame, fewest, remembered, suspects
from .counters import troubled
from .findings import Evidence, Finding, Severity
from .vendor import tools
from .verdict import LOOSE, LOW

SLOW = 0.9
"""Part of its peers' figure below which a cell is slow. Equal cells differ by some percent: a
median of six samples with 2 % of noise errs by 1 %, the fastest of many by two or three times
that."""
FAR = 0.75
"""Part below which it is a failure: down to it, an unlucky placement may be all there is."""
_SPARED = 0.004
"""What a cell costs that touches the part and is not slow, in squared logarithms (6 % off): other
parts may be its bottleneck, but the part that needs the fewest such excuses explains best."""


_PART = 0.008
"""What it costs to blame a part: as much as the excuses of two cells …"""
_UNSEEN = 0.014
"""… that its links counted no errors …"""
_SAME = 1e-3
"""Difference of what is unexplained that says nothing …"""
_PREFERENCE = 0.007
"""… and of what it costs to blame parts that makes one likelier, but not sure."""
_SPLIT = 0.012
"""What a slow cell costs whose peers are fast, although they touch the part as well."""
_BEGAN = 0.006
"""… that it was well at first …"""
_DRIFTS = 0.008
"""… that it changes from cell to cell: time is blamed only where it explains better than parts."""
_NOISY = 0.02
"""Error of a median from which a cell counts for half."""
_LEAST = math.log(0.95)
_LEAST_DRIFT = math.log(0.9995)
"""Levels above which a part is as good as well, as logarithms; of a drift per cell."""
_LEAST_TREND = math.log(0.985)
"""Logarithm by which the last slow cell is below the first if the rate falls."""
_LEAST_OF_DRIFT = 2
"""Fewest slow cells that distinguish a trend from a level."""
_ANYTHING = math.log(1000)
"""A figure that is known no better may be any."""
_DEVIATIONS = 3.5
"""Standard deviations that a median may be off: one in 2000 is further."""
_NORMAL = 1.4826
"""Standard deviation of normal samples, as a multiple of their median distance from the median."""
_STEADY = 0.05
"""A median that is off by no more is as good as exact: nine samples of 3.5 % are."""


class RelativeRate(msgspec.Struct, frozen=True, eq=False):
    """A cell beside its peers, the fastest first: logarithm of its figure over that one's (never
    above 0); `slow` where it is below by more than chance. What is expected of it may be
    known: then it may be `low`, by more than chance as well (and the logarithm over what is
    expected, if that is less), or `fine`.
    `relative` is over the peer's in any case. `weight` is how much it counts: as the inverse of its
    variance and of what other things vary."""

    case: Case
    log: float
    peers: tuple[Case, ...]
    slow: bool
    relative: float
    weight: float
    low: bool = False
    fine: bool = False

    @property
    def fastest(self) -> Case:
        return self.peers[0]


def relative_rates(evidence: Evidence) -> list[RelativeRate]:
    classes: dict[tuple[str, ...], list[Case]] = {}
    for case in timed_cases_of(evidence):
        cell = case.cell
        if case.peers and case.result.better == "higher" and cell.summary and cell.summary.median:
            classes.setdefault(case.peers, []).append(case)
    ordered = [(peers, sorted(peers, key=_median, reverse=True)) for peers in classes.values()]
    return [_pace(case, tuple(fastest)) for peers, fastest in ordered for case in peers]


def _median(case: Case) -> float:
    return case.cell.summary.median if case.cell.summary else 0.0


def _pace(case: Case, peers: tuple[Case, ...]) -> RelativeRate:
    log = math.log(_median(case) / _median(peers[0]))
    slow = _highest(case) < SLOW * _lowest(peers[0])
    weight = 1 / (1 + (_error(case) / _DEVIATIONS / _NOISY) ** 2)
    expected = case.cell.expected.achievable if case.cell.expected else None
    if expected is None or (case.cell.expected or Expected()).measured:
        return RelativeRate(case, log, peers, slow, log, weight)
    share = _median(case) / expected
    if _is_low(case, expected):
        return RelativeRate(case, min(log, math.log(share)), peers, True, log, weight, low=True)
    return RelativeRate(case, log, peers, slow, log, weight, fine=share > SLOW)


def _is_low(case: Case, expected: float) -> bool:
    """A verdict is of the median: where that may be off, so must the end of its interval be."""
    if case.cell.verdict != "low" or _error(case) < _STEADY:
        return case.cell.verdict == "low"
    bound = LOW if _median(case) >= LOOSE * expected else LOOSE
    return _highest(case) < bound * expected


def _highest(case: Case) -> float:
    return _median(case) * math.exp(_error(case))


def _lowest(case: Case) -> float:
    return _median(case) * math.exp(-_error(case))


def _error(case: Case) -> float:
    """By how much the median may be off by chance, as a logarithm. Few samples that scatter tell
    little, so an interval of ranks would be too narrow. Stalls, which no median minds, count as
    little as the median distance from it lets them."""
    summary = case.cell.summary
    if summary is None or not summary.stddev:
        return 0.0
    usual = statistics.median(abs(sample - summary.median) for sample in case.cell.samples)
    stddev = min(summary.stddev, _NORMAL * usual) if summary.n >= LEAST_SAMPLES else summary.stddev
    deviation = median_deviation(stddev, summary.n)
    return min(_DEVIATIONS * deviation / summary.median, _ANYTHING)


class _Suspect(msgspec.Struct, frozen=True):
    """A part, and how it may be slow: by a constant fraction `since` the cell of that number, or
    ever slower (`drifts`)."""

    part: str
    drifts: bool = False
    since: int = 0

    @property
    def cost(self) -> float:
        return _PART + (_BEGAN if self.since else 0.0) + (_DRIFTS if self.drifts else 0.0)

    @property
    def least(self) -> float:
        return _LEAST_DRIFT if self.drifts else _LEAST

    def strikes(self, member: RelativeRate) -> bool:
        return self.part in member.case.touched and member.case.number >= self.since

    def slows(self, member: RelativeRate, left: _Left) -> bool:
        """Whether a cell should be slower for it than the one that it is compared with."""
        return self.strikes(member) and (self.drifts or self.part not in left.base)


class _Left(msgspec.Struct, frozen=True):
    """What is left of the rate of each cell of a class, as logarithms, beside one that is taken to
    be well. That one, of number `begin`, touches suspects of its own: `base`."""

    logs: list[float]
    base: frozenset[str] = frozenset()
    begin: int = 0


class _Class:
    """Peers, and what is left of the rate of each beside those that are well."""

    def __init__(self, members: Sequence[RelativeRate]) -> None:
        self.members = members
        self.fastest = max(members, key=lambda m: m.relative)
        # If one is low that is as fast as the fastest, all are.
        self.is_low = any(m.low and m.relative > math.log(SLOW) for m in members)
        self.logs = {m.case.number: math.log(_median(m.case)) for m in members}

    def left(self, suspects: tuple[_Suspect, ...]) -> _Left:
        """Beside those that are well and that none of them strikes, else what is expected if all
        are low, else the fastest."""
        if self.is_low and not any(s.drifts and s.strikes(self.fastest) for s in suspects):
            return _Left([m.log for m in self.members])
        free = [m for m in self.members if not any(s.strikes(m) for s in suspects)]
        well = [m for m in free if not m.slow]
        top = self._mean(well) if well else self.logs[self.fastest.case.number]
        logs = [min(0.0, self.logs[m.case.number] - top) for m in self.members]
        if well:
            return _Left(logs)
        base = frozenset(s.part for s in suspects if s.strikes(self.fastest))
        return _Left(logs, base, self.fastest.case.number if base else 0)

    def _mean(self, members: Sequence[RelativeRate]) -> float:
        """The fastest of many that scatter is faster than any of them."""
        weights = [m.weight for m in members]
        return sum(self.logs[m.case.number] * m.weight for m in members) / sum(weights)


class _Fit(msgspec.Struct, frozen=True):
    """What suspects leave `unexplained`, and what it costs to blame them; the logarithm of the rate
    that each leaves, of a drift per cell."""

    unexplained: float
    levels: dict[_Suspect, float]
    cost: float = 0.0

    @property
    def loss(self) -> float:
        return self.unexplained + self.cost

    def is_as_good(self, other: _Fit) -> bool:
        """Whether no cell speaks more against this one, and little else does."""
        same = abs(self.unexplained - other.unexplained) < _SAME
        return same and self.cost < other.cost + _PREFERENCE


class _Model:
    """What suspects leave unexplained of all cells."""

    def __init__(self, rates: Sequence[RelativeRate], seen: frozenset[str]) -> None:
        self._seen = seen
        by_peers: dict[tuple[str, ...] | None, list[RelativeRate]] = {}
        for rate in rates:
            by_peers.setdefault(rate.case.peers, []).append(rate)
        self._classes = [_Class(members) for members in by_peers.values()]
        self._cells: dict[str, set[int]] = {}
        for rate in rates:
            for part in rate.case.touched:
                self._cells.setdefault(part, set()).add(rate.case.number)

    def fit(self, suspects: tuple[_Suspect, ...]) -> _Fit:
        """Infinitely bad of suspects that leave a part as good as well, and of one part twice."""
        left = [group.left(suspects) for group in self._classes]
        own = {s: self._own_level(s, suspects, left) for s in suspects}
        levels = {s: statistics.median(of.values()) for s, of in own.items() if of}
        twice = len({s.part for s in suspects}) < len(suspects)
        if twice or any(levels.get(s, 0.0) > s.least for s in suspects):
            return _Fit(math.inf, levels)
        cost = sum(s.cost + (_UNSEEN if self._is_unseen(s, suspects) else 0.0) for s in suspects)
        loss = sum(_SPARED * (len(of) - 1) for s, of in own.items() if not s.drifts)
        for at, (group, one) in enumerate(zip(self._classes, left, strict=True)):
            for member, log in zip(group.members, one.logs, strict=True):
                expected = [
                    level * (member.case.number - one.begin) if s.drifts else level
                    for s in suspects
                    if s.slows(member, one)
                    for level in (own[s].get(at, levels[s]),)
                ]
                left_over = _unexplained_part(member, log, expected, bool(one.base))
                for s in suspects:
                    if s.part in one.base and s.strikes(member) and not s.drifts:
                        left_over = min(left_over, (log - levels[s]) ** 2 + _SPLIT)
                loss += member.weight * left_over
        return _Fit(loss, levels, cost)

    def _is_unseen(self, s: _Suspect, suspects: tuple[_Suspect, ...]) -> bool:
        """Whether no errors speak against it, or only those that a part around it explains."""
        around = (o.part for o in suspects if self._cells[s.part] < self._cells[o.part])
        return s.part not in self._seen or not self._seen.isdisjoint(around)

    def _own_level(
        self, s: _Suspect, suspects: tuple[_Suspect, ...], left: Sequence[_Left]
    ) -> dict[int, float]:
        """By class: from slow cells that no other suspect slows, if there are any in any class."""
        alone: dict[int, list[float]] = {}
        shared: dict[int, list[float]] = {}
        for at, (group, one) in enumerate(zip(self._classes, left, strict=True)):
            for member, log in zip(group.members, one.logs, strict=True):
                if member.slow and s.slows(member, one):
                    of = shared if any(o.slows(member, one) for o in suspects if o != s) else alone
                    away = member.case.number - one.begin or 1
                    of.setdefault(at, []).append(log / away if s.drifts else log)
        found = alone or shared
        if s.drifts and found:
            slope = statistics.median(log for logs in found.values() for log in logs)
            return dict.fromkeys(found, slope)
        return {at: statistics.median(logs) for at, logs in found.items()}


def _unexplained_part(
    member: RelativeRate, log: float, expected: Sequence[float], is_within: bool
) -> float:
    """What is left unexplained of a cell of which suspects leave so much. Where even the fastest
    peer touches a suspect (`is_within`), that a cell is as fast as it should be speaks against."""
    if expected:
        # Several slow it by as much as the slowest at least, by all of them together at most.
        off = max(0.0, log - min(expected), sum(expected) - log)
        return min(off**2, log**2 + _SPARED)
    if is_within:
        return member.relative**2 + (_SPARED if member.fine else 0.0)
    return (member.log if member.low else log) ** 2


def check_slow(evidence: Evidence) -> Iterator[Finding]:
    """Parts that slow what touches them, or whose rate falls from cell to cell."""
    rates = relative_rates(evidence)
    slow = [each for each in rates if each.slow]
    if not slow:
        return
    seen = troubled(evidence, frozenset().union(*(each.case.touched for each in rates)))
    found = suspects([each.case for each in slow], [each.case for each in rates], seen)
    blames = {blame.part: blame for blame in found}
    model = _Model(rates, seen)
    candidates = [s for part in blames for s in _ways_to_be_slow(part, rates)]
    chosen = fewest(candidates, remembered(lambda tried: model.fit(tried).loss))
    fit = model.fit(chosen)
    levels = fit.levels
    for suspect in chosen:
        others = [(s.part, levels[s]) for s in chosen if s != suspect]
        touched = [each for each in slow if suspect.part in each.case.touched]
        most = [each for each in touched if not any(
            part in each.case.touched and level < levels[suspect] for part, level in others
        )]  # fmt: skip
        beside = tuple(s for s in chosen if s != suspect)
        as_good = [s.part for s in candidates if s.part not in {c.part for c in chosen}
                   and model.fit((*beside, s)).is_as_good(fit)]  # fmt: skip
        cells, blame = most or touched, blames[suspect.part].beside(blames[p] for p in as_good)
        if suspect.drifts:
            yield _drift(blame, levels[suspect], cells, evidence)
        else:
            yield _slow(blame, cells, evidence, began=suspect.since > 0)
    parts = {s.part for s in chosen}
    if rest := [each for each in slow if parts.isdisjoint(each.case.touched)]:
        yield _unexplained(rest, evidence)


def _ways_to_be_slow(part: str, rates: Sequence[RelativeRate]) -> Iterator[_Suspect]:
    """From the beginning; since some cell, if cells like those that are slow were well before it;
    ever slower."""
    touching = [each for each in rates if part in each.case.touched]
    slow = sorted((each for each in touching if each.slow), key=_number)
    yield _Suspect(part)
    kinds = {each.case.peers for each in slow}
    well = [each for each in touching if not each.slow and each.case.peers in kinds]
    alike = (each for each in slow if any(_is_well_before(other, each) for other in touching))
    any_kind = (each for each in slow if any(_number(other) < _number(each) for other in well))
    for first in dict.fromkeys((next(alike, None), next(any_kind, None))):
        if first is not None:
            yield _Suspect(part, since=_number(first))
    equal = [[each for each in slow if each.case.peers == kind] for kind in kinds]
    if any(_falls(some) for some in equal) or (len(slow) == len(equal) and _falls(slow)):
        yield _Suspect(part, drifts=True)


def _falls(slow: Sequence[RelativeRate]) -> bool:
    """Whether the last is slower than the first."""
    return slow[-1].relative < slow[0].relative + _LEAST_TREND


def _is_well_before(one: RelativeRate, other: RelativeRate) -> bool:
    """Whether an equal cell was faster before it."""
    is_equal = one.case.peers == other.case.peers and _number(one) < _number(other)
    return is_equal and other.relative < one.relative + math.log(SLOW)


def _number(each: RelativeRate) -> int:
    return each.case.number


def _slow(
    blame: Blame, slow: Sequence[RelativeRate], evidence: Evidence, *, began: bool
) -> Finding:
    share = math.exp(statistics.median(each.log for each in slow))
    severity: Severity = "fail" if share < FAR else "warn"
    of = _compared(min(slow, key=_log))
    first = min(slow, key=_number).case
    onset = f"; before {first.name} it was well" if began else ""
    few = f"{count_of(len(slow))} that touch it reach"
    reach = "1 cell that touches it reaches" if len(slow) == 1 else few
    reach = f"{reach} {share:.0%} of what {of}"
    found = f"{reach}{onset}{blame.doubt}"
    why = "what all the slow cells share, and the others do not, is what slows them"
    cells = named(each.case for each in slow)
    return Finding("slow", severity, blame.part, found, why, _remedy(evidence), cells)


def _compared(each: RelativeRate) -> str:
    if each.log < math.log(_median(each.case) / _median(each.fastest)) - 1e-9:
        return "the hardware should"
    return f"equal cells do, as {each.fastest.name}"


def _drift(blame: Blame, level: float, slow: Sequence[RelativeRate], evidence: Evidence) -> Finding:
    lowest = min(slow, key=_log)
    at = f"{lowest.case.name} is at {math.exp(lowest.log):.0%}{blame.doubt}"
    found = f"its rate changes by {math.expm1(level):.2%} from cell to cell: {at}"
    why = "what grows slower as it works heats up, or fills up"
    remedy = (*tools(evidence, "state"), "measure once more after a pause")
    cells = named(each.case for each in slow)
    return Finding("drift", "fail", blame.part, found, why, remedy, cells)


def _unexplained(slow: Sequence[RelativeRate], evidence: Evidence) -> Finding:
    lowest = min(slow, key=_log)
    share, of = math.exp(lowest.log), _compared(lowest)
    severity: Severity = "fail" if share < FAR else "warn"
    few = f"{count_of(len(slow))} that share no part reach down to"
    found = f"{'1 cell reaches' if len(slow) == 1 else few} {share:.0%} of what {of}"
    why = "a single pair, not a device: look at what only these cells cross"
    cells = named(each.case for each in slow)
    return Finding("slow", severity, str(lowest.case.cell), found, why, _remedy(evidence), cells)


def _log(each: RelativeRate) -> float:
    return each.log


def _remedy(evidence: Evidence) -> tuple[str, ...]:
    return (
        "linkgauge devices  # links, their speeds and what is above them",
        "sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:'",
        *tools(evidence, "links"),
    )


CHECKS = (check_slow,)
