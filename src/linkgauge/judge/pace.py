"""Bandwidth below what equal cells reach, or below what is expected: is it one device, one link,
one node, one pair; and does it fall from cell to cell?

Each cell is compared with the fastest of its peers (the same benchmark over a way of the same
kinds) and, where that is known, with what is expected of it. Two models are fitted for each part
that slow cells share: it has a constant fraction of its rate wherever it is the bottleneck, or a
rate that falls exponentially with the cell's number. The least squares, of logarithms, win.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.model.result import Expected

from .cases import Blame, Case, blame, cases_of, named, suspects
from .findings import Evidence, Finding

SLOW = 0.9
"""Part of its peers' figure below which a cell is slow. Equal cells differ by some percent: a
median of six samples with 2 % of noise errs by 1 %, the fastest of many by two or three times
that."""
FAR = 0.75
"""Part below which it is a failure: down to it, an unlucky placement may be all there is."""
_SPARED = 0.004
"""What a cell costs that touches the part and is not slow, in squared logarithms (6 % off): other
parts may be its bottleneck, but the part that needs the fewest such excuses explains best."""


class Paced(msgspec.Struct, frozen=True, eq=False):
    """A cell beside its fastest peer: logarithm of its figure over that one's (never above 0), and
    that one's case; `slow` where it is below by more than chance. What is expected of it may be
    known: then it is `low` (and the logarithm over what is expected, if that is less) or `fine`.
    `relative` is over the peer's in any case."""

    case: Case
    log: float
    fastest: Case
    slow: bool
    relative: float
    low: bool = False
    fine: bool = False


def paces(evidence: Evidence) -> list[Paced]:
    classes: dict[tuple[str, ...], list[Case]] = {}
    for case in cases_of(evidence):
        cell = case.cell
        if case.peers and case.result.better == "higher" and cell.summary and cell.summary.median:
            classes.setdefault(case.peers, []).append(case)
    return [
        _pace(case, fastest)
        for peers in classes.values()
        for fastest in (max(peers, key=_median),)
        for case in peers
    ]


def _median(case: Case) -> float:
    return case.cell.summary.median if case.cell.summary else 0.0


def _pace(case: Case, fastest: Case) -> Paced:
    log = math.log(_median(case) / _median(fastest))
    slow = _highest(case) < SLOW * _lowest(fastest)
    expected = case.cell.expected.achievable if case.cell.expected else None
    if expected is None or MEASURED in (case.cell.expected or Expected()).because:
        return Paced(case, log, fastest, slow, log)
    share = _median(case) / expected
    if case.cell.verdict == "low":
        return Paced(case, min(log, math.log(share)), fastest, True, log, low=True)
    return Paced(case, log, fastest, slow, log, fine=share > SLOW)


def _highest(case: Case) -> float:
    """The end of the median's interval; without one, of the samples."""
    summary = case.cell.summary
    if summary is None:
        return 0.0
    return summary.ci95[1] if summary.ci95 else summary.max


def _lowest(case: Case) -> float:
    summary = case.cell.summary
    if summary is None:
        return 0.0
    return summary.ci95[0] if summary.ci95 else summary.min


class _Fit(msgspec.Struct, frozen=True):
    """A model's loss; `level` is the logarithm of the rate that is left, of a drift that of each
    cell."""

    loss: float
    level: float
    drifts: bool


def check_slow(evidence: Evidence) -> Iterator[Finding]:
    """One part slows what touches it, or its rate falls from cell to cell."""
    paced = paces(evidence)
    slow = [each for each in paced if each.slow]
    if not slow:
        return
    parts = suspects([each.case for each in slow])
    fits = {part: _fit(part, paced) for part in parts}
    culprit = blame((each.case for each in paced), lambda part: fits[part].loss, parts)
    if culprit is None:
        yield _unexplained(slow)
        return
    touched = [each for each in slow if culprit.part in each.case.touched]
    if fits[culprit.part].drifts:
        yield _drift(culprit, fits[culprit.part], touched)
    else:
        yield _slow(culprit, touched)
    rest = [each for each in slow if culprit.part not in each.case.touched]
    if rest:
        yield _unexplained(rest)


def _fit(part: str, paced: Sequence[Paced]) -> _Fit:
    touching = [each for each in paced if part in each.case.touched]
    elsewhere = sum(each.log**2 for each in paced if part not in each.case.touched)
    constant, drifting = _constant(touching, part), _drifting(touching, part)
    best = min(constant, drifting, key=lambda fit: fit.loss)
    return _Fit(best.loss + elsewhere, best.level, best.drifts)


def _constant(touching: Sequence[Paced], part: str) -> _Fit:
    level = statistics.median(each.log for each in touching if each.slow)
    return _Fit(sum(_loss(each, part, level) for each in touching), level, drifts=False)


def _loss(each: Paced, part: str, level: float) -> float:
    """What the part leaves unexplained of a cell. That it is slower than a peer which touches the
    part as well, the part does not explain; nor does it if they are alike, unless both are known
    to be fine."""
    if part in each.fastest.touched and not each.low:
        return each.log**2 + (_SPARED if each.fine else 0.0)
    return min((each.log - level) ** 2, each.log**2 + _SPARED)


def _drifting(touching: Sequence[Paced], part: str) -> _Fit:
    """Rates of e^(level × number): a cell and its fastest peer differ by as many cells as lie
    between them, or since the first where the peer does not touch the part."""

    def away(each: Paced) -> int:
        start = each.fastest.number if part in each.fastest.touched else 0
        return each.case.number - start

    slopes = [each.relative / away(each) for each in touching if each.slow and away(each)]
    if len(slopes) < _LEAST_OF_DRIFT:
        return _Fit(math.inf, 0.0, drifts=True)
    level = statistics.median(slopes)
    loss = sum(
        min((each.relative - level * away(each)) ** 2, each.relative**2 + _SPARED)
        + _unexpected(each, level)
        for each in touching
    )
    return _Fit(loss, level, drifts=True)


def _unexpected(each: Paced, level: float) -> float:
    """How much lower than expected a low cell is than the drift has come to by then."""
    if not each.low:
        return 0.0
    return max(0.0, abs(each.log - level * each.case.number) - _ROUGHLY) ** 2


_ROUGHLY = 0.3
"""How well expectations are known, as a logarithm."""
MEASURED = "measured here"
"""What an expectation says that comes from the figures themselves."""
_LEAST_OF_DRIFT = 3
"""Slow cells from which a trend is told from a level."""


def _slow(culprit: Blame, slow: Sequence[Paced]) -> Finding:
    share = math.exp(statistics.median(each.log for each in slow))
    lowest = min(slow, key=lambda each: each.log)
    return Finding(
        check="slow",
        severity="fail" if share < FAR else "warn",
        subject=culprit.part,
        found=f"{_cells(len(slow))} that touch it reach {share:.0%} of what {_compared(lowest)}"
        f"{culprit.doubt}",
        why="what all the slow cells share, and the others do not, is what slows them",
        remedy=_REMEDY,
        cells=named(each.case for each in slow),
    )


def _compared(each: Paced) -> str:
    if each.log < math.log(_median(each.case) / _median(each.fastest)) - 1e-9:
        return "the hardware should"
    return f"equal cells do, as {each.fastest.name}"


def _drift(culprit: Blame, fit: _Fit, slow: Sequence[Paced]) -> Finding:
    lowest = min(slow, key=lambda each: each.log)
    return Finding(
        check="drift",
        severity="fail",
        subject=culprit.part,
        found=f"its rate changes by {math.expm1(fit.level):.2%} from cell to cell: "
        f"{lowest.case.name} is at {math.exp(lowest.log):.0%}{culprit.doubt}",
        why="what grows slower as it works heats up, or fills up",
        remedy=("nvidia-smi -q -d TEMPERATURE,PERFORMANCE; measure once more after a pause",),
        cells=named(each.case for each in slow),
    )


def _unexplained(slow: Sequence[Paced]) -> Finding:
    lowest = min(slow, key=lambda each: each.log)
    return Finding(
        check="slow",
        severity="fail" if math.exp(lowest.log) < FAR else "warn",
        subject=" & ".join(lowest.case.cell.transfers),
        found=f"{_cells(len(slow))} that share no part reach down to {math.exp(lowest.log):.0%} of "
        f"what {_compared(lowest)}",
        why="a single pair, not a device: look at what only these cells cross",
        remedy=_REMEDY,
        cells=named(each.case for each in slow),
    )


_REMEDY = (
    "linkgauge devices  # links, their speeds and what is above them",
    "nvidia-smi nvlink -s; sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:'",
)


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


CHECKS = (check_slow,)
