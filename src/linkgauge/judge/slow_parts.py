"""Bandwidth below what equal cells reach, or below what is expected: is it one device, one link,
one node, one pair; and does it fall from cell to cell?

Each cell is compared with the fastest of its peers (the same benchmark over a way of the same
kinds) and, where that is known, with what is expected of it. Models are fitted for each part that
slow cells share: it has a constant fraction of its rate wherever it is the bottleneck, from the
beginning or from some cell on, or a rate that falls exponentially with the cell's number. The least
squares, of logarithms, win.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from linkgauge.model.result import Expected
from linkgauge.model.statistics import median_deviation
from linkgauge.model.units import count_of

from .cases import Blame, Case, blame, cases_of, named, suspects
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


_BEGAN = 0.02
"""What it costs that a part was well at first: as much as the excuses of five cells."""
_SEEN = 0.02
"""What it counts for a part that its links counted errors: as much as the excuses of five cells."""
_ANYTHING = math.log(1000)
"""A figure that is known no better may be any."""
_DEVIATIONS = 3.5
"""Standard deviations that a median may be off: one in 2000 is further."""
_STEADY = 0.05
"""A median that is off by no more is as good as exact: nine samples of 3.5 % are."""


class RelativeRate(msgspec.Struct, frozen=True, eq=False):
    """A cell beside its peers, the fastest first: logarithm of its figure over that one's (never
    above 0); `slow` where it is below by more than chance. What is expected of it may be
    known: then it may be `low`, by more than chance as well (and the logarithm over what is
    expected, if that is less), or `fine`.
    `relative` is over the peer's in any case."""

    case: Case
    log: float
    peers: tuple[Case, ...]
    slow: bool
    relative: float
    low: bool = False
    fine: bool = False

    @property
    def fastest(self) -> Case:
        return self.peers[0]


def relative_rates(evidence: Evidence) -> list[RelativeRate]:
    classes: dict[tuple[str, ...], list[Case]] = {}
    for case in cases_of(evidence):
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
    expected = case.cell.expected.achievable if case.cell.expected else None
    if expected is None or (case.cell.expected or Expected()).measured:
        return RelativeRate(case, log, peers, slow, log)
    share = _median(case) / expected
    if _is_low(case, expected):
        return RelativeRate(case, min(log, math.log(share)), peers, True, log, low=True)
    return RelativeRate(case, log, peers, slow, log, fine=share > SLOW)


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
    little, so an interval of ranks would be too narrow."""
    summary = case.cell.summary
    if summary is None or not summary.stddev:
        return 0.0
    deviation = median_deviation(summary.stddev, summary.n)
    return min(_DEVIATIONS * deviation / summary.median, _ANYTHING)


class _Fit(msgspec.Struct, frozen=True):
    """A model's loss; `level` is the logarithm of the rate that is left, of a drift that of each
    cell. It holds `since` the cell of that number."""

    loss: float
    level: float
    drifts: bool = False
    since: int = 0


def check_slow(evidence: Evidence) -> Iterator[Finding]:
    """One part slows what touches it, or its rate falls from cell to cell."""
    paced = relative_rates(evidence)
    slow = [each for each in paced if each.slow]
    if not slow:
        return
    parts = suspects([each.case for each in slow])
    fits = {part: _fit(part, paced) for part in parts}
    seen = troubled(evidence, frozenset().union(*(each.case.touched for each in paced)))

    losses = {part: fits[part].loss - (_SEEN if part in seen else 0.0) for part in parts}
    least = min(losses.values(), default=0.0) + _SPARED / 2  # noise decides nothing
    culprit = blame((each.case for each in paced), lambda part: max(losses[part], least), parts)
    if culprit is None:
        yield _unexplained(slow, evidence)
        return
    touched = [each for each in slow if culprit.part in each.case.touched]
    if fits[culprit.part].drifts:
        yield _drift(culprit, fits[culprit.part], touched, evidence)
    else:
        yield _slow(culprit, fits[culprit.part], touched, evidence)
    rest = [each for each in slow if culprit.part not in each.case.touched]
    if rest:
        yield _unexplained(rest, evidence)


def _fit(part: str, paced: Sequence[RelativeRate]) -> _Fit:
    touching = [each for each in paced if part in each.case.touched]
    elsewhere = sum(each.log**2 for each in paced if part not in each.case.touched)
    began = min(each.case.number for each in touching if each.slow)
    constant, later = _constant(touching, part), _constant(touching, part, began)
    best = min(constant, later, _drifting(touching, part), key=lambda fit: fit.loss)
    return replace(best, loss=best.loss + elsewhere)


def _constant(touching: Sequence[RelativeRate], part: str, since: int = 0) -> _Fit:
    """A fraction of its rate, from the beginning or `since` a cell on: before, it was well. Each
    class of cells has a fraction of its own: another part may have been its bottleneck."""
    beside = _beside(touching, part, since)
    before = [each for each in touching if each.case.number < since]
    after = [each for each in touching if each.case.number >= since]
    left = [(each, _left(each, beside[each.case.peers])) for each in after]
    lost: dict[tuple[str, ...] | None, list[float]] = {}
    for each, log in left:
        if each.slow:
            lost.setdefault(each.case.peers, []).append(each.log if log is None else log)
    levels = {name: statistics.median(logs) for name, logs in lost.items()}
    level = statistics.median(levels.values())
    loss = sum(each.relative**2 for each in before) + (_BEGAN if since else 0.0)
    loss += sum(_loss(each, log, levels.get(each.case.peers, level)) for each, log in left)
    return _Fit(loss + _SPARED * (len(levels) - 1), level, since=since)


def _beside(
    touching: Sequence[RelativeRate], part: str, since: int = 0
) -> dict[tuple[str, ...] | None, Case | None]:
    """Of each class, the fastest that does not touch the part, or did so while it was well."""
    classes = {each.case.peers: each.peers for each in touching}
    return {
        name: next((c for c in peers if part not in c.touched or c.number < since), None)
        for name, peers in classes.items()
    }


def _left(each: RelativeRate, beside: Case | None) -> float | None:
    """The logarithm of what is left of a cell's figure, compared with a peer that does not touch
    the part: that is known better than what is expected, which counts if all peers are low. None
    where neither tells anything."""
    if each.low and each.fastest.cell.verdict == "low":
        return each.log
    if beside is None:
        return None
    return min(0.0, math.log(_median(each.case) / _median(beside)))


def _loss(each: RelativeRate, left: float | None, level: float) -> float:
    """What the part leaves unexplained of a cell. Where all peers touch it, it does not explain
    that one is slower than another; nor that they are alike, if both are known to be fine."""
    if left is None:
        return each.relative**2 + (_SPARED if each.fine else 0.0)
    return min((left - level) ** 2, left**2 + _SPARED)


def _drifting(touching: Sequence[RelativeRate], part: str) -> _Fit:
    """Rates of e^(level × number), from the first cell of the run on."""
    beside = _beside(touching, part)
    fallen = [_fallen(each, beside[each.case.peers]) for each in touching]
    slopes = [log / away for each, (log, away) in zip(touching, fallen, strict=True)
              if each.slow and away]  # fmt: skip
    if len(slopes) < _LEAST_OF_DRIFT:
        return _Fit(math.inf, 0.0)
    level = statistics.median(slopes)
    loss = sum(
        min((log - level * away) ** 2, _SPARED + log**2, _SPARED + (log - level * number) ** 2)
        + _unexpected(each, level)
        for each, (log, away) in zip(touching, fallen, strict=True)
        for number in (each.case.number,)
    )
    return _Fit(loss, level, drifts=True)


def _fallen(each: RelativeRate, beside: Case | None) -> tuple[float, int]:
    """How far a cell is below one that the drift leaves alone, and the cells since the run began;
    or below its fastest peer, and the cells that lie between the two (if that one drifts, too)."""
    if beside is not None:
        return math.log(_median(each.case) / _median(beside)), each.case.number
    return each.relative, each.case.number - each.fastest.number


def _unexpected(each: RelativeRate, level: float) -> float:
    """How much lower than expected a cell is than the drift has come to by then, if all its peers
    are low: else these tell better how fast it should be."""
    if not each.low or each.fastest.cell.verdict != "low":
        return 0.0
    return max(0.0, abs(each.log - level * each.case.number) - _ROUGHLY) ** 2


_ROUGHLY = 0.3
"""How well expectations are known, as a logarithm."""
_LEAST_OF_DRIFT = 3
"""Slow cells from which a trend is told from a level."""


def _slow(culprit: Blame, fit: _Fit, slow: Sequence[RelativeRate], evidence: Evidence) -> Finding:
    share = math.exp(statistics.median(each.log for each in slow))
    severity: Severity = "fail" if share < FAR else "warn"
    of = _compared(min(slow, key=_log))
    first = min(slow, key=lambda each: each.case.number).case
    onset = f"; before {first.name} it was well" if fit.since else ""
    reach = f"{count_of(len(slow))} that touch it reach {share:.0%} of what {of}"
    found = f"{reach}{onset}{culprit.doubt}"
    why = "what all the slow cells share, and the others do not, is what slows them"
    cells = named(each.case for each in slow)
    return Finding("slow", severity, culprit.part, found, why, _remedy(evidence), cells)


def _compared(each: RelativeRate) -> str:
    if each.log < math.log(_median(each.case) / _median(each.fastest)) - 1e-9:
        return "the hardware should"
    return f"equal cells do, as {each.fastest.name}"


def _drift(culprit: Blame, fit: _Fit, slow: Sequence[RelativeRate], evidence: Evidence) -> Finding:
    lowest = min(slow, key=_log)
    at = f"{lowest.case.name} is at {math.exp(lowest.log):.0%}{culprit.doubt}"
    found = f"its rate changes by {math.expm1(fit.level):.2%} from cell to cell: {at}"
    why = "what grows slower as it works heats up, or fills up"
    remedy = (*tools(evidence, "state"), "measure once more after a pause")
    cells = named(each.case for each in slow)
    return Finding("drift", "fail", culprit.part, found, why, remedy, cells)


def _unexplained(slow: Sequence[RelativeRate], evidence: Evidence) -> Finding:
    lowest = min(slow, key=_log)
    share, of = math.exp(lowest.log), _compared(lowest)
    severity: Severity = "fail" if share < FAR else "warn"
    found = f"{count_of(len(slow))} that share no part reach down to {share:.0%} of what {of}"
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
