"""Judges figures by the expected figures of the hardware, and by their peers."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import count
from operator import attrgetter, itemgetter, truediv
from statistics import median

from msgspec.structs import replace

from linkgauge.judge.blame.cases import Case, exchanging
from linkgauge.judge.expected.assumed import rests_on
from linkgauge.judge.expected.dram import Ceilings, measured_ceilings
from linkgauge.judge.expected.expect import Expectation, Expectations
from linkgauge.judge.expected.link_rates import CALL, LOOSE
from linkgauge.judge.expected.link_sharing import LinkSharing
from linkgauge.judge.expected.nominal import Nominal
from linkgauge.judge.expected.readings import run_of, with_ranks
from linkgauge.model.documents.result import (
    CellResult,
    Expected,
    NotJudged,
    Result,
    Run,
    TransferFigure,
    Verdict,
)
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.stats.moments import median_without
from linkgauge.model.transfer import Transfer

from .findings import Evidence
from .peers import LOW as LOSS
from .peers import Behind, behind, classes, figures_of

FAR = 0.75
"""The share of peers below which a cell is far from them, as if half of the lanes were lost."""
MOST_UNSURE = 2
"""The largest class in which a fast cell shows only that the other one is slow."""
ENOUGH = 4
"""Among fewer equal cells, one slow cell moves the median too far."""
_UNLIMITED: tuple[NotJudged, ...] = ("no-limit", "path", "bound", "start")
"""The reasons for a missing expectation with which cells are judged by their peers instead."""


def with_peers(evidence: Evidence) -> tuple[Result, ...]:
    """Returns the results, in which cells far from their peers have the peers' median as `peers`.
    This median judges cells that are clearly slower, or that have no other expectation."""
    found = {case.number: cell for own in classes(evidence) for case, cell in _against_peers(own)}
    for one in behind(evidence):
        found[one.case.number] = _behind(one, found.get(one.case.number, one.case.cell))
    if not found:
        return evidence.results
    numbers = count()
    return tuple(
        result.with_cells(lambda cell: found.get(next(numbers), cell))
        for result in evidence.results
    )


def _behind(one: Behind, cell: CellResult) -> CellResult:
    known = cell.verdict in ("ok", "perhaps low") or cell.not_judged in _UNLIMITED
    if not (one.is_sure and known):
        return cell
    because = f"the median of {one.peers - 1} peers, which should be as fast"
    if one.at_best:
        because = f"the median of the best repetitions of {one.peers - 1} peers; "
        because += "a part of this one counted errors"
    expected = _as_peers(cell, one.usual, one.peers, because)
    word: Verdict = "low" if one.loss >= LOSS else "perhaps low"
    return replace(cell, expected=expected, peers=one.usual, verdict=word, not_judged=None)


def _against_peers(equivalent: Sequence[Case]) -> Iterator[tuple[Case, CellResult]]:
    figures, count = sorted(map(attrgetter("figure"), equivalent)), len(equivalent)
    if count == 1:
        return
    usual, because = median(figures), f"the median of {count} peers"
    for case in equivalent:
        cell, others = case.cell, median_without(figures, (bisect_left(figures, case.figure),))
        is_near = FAR * usual <= case.figure <= usual / FAR
        ends = (case.figure, *((cell.summary and cell.summary.ci95) or ()))
        is_below, is_above = max(ends) < FAR * others, min(ends) * FAR > others
        is_far = is_below if case.result.better == "higher" else is_above
        if count > MOST_UNSURE:
            is_far = is_below or is_above
        if case.equivalent is not None and is_far:
            yield case, replace(cell, peers=others)
        elif count >= ENOUGH and cell.not_judged in _UNLIMITED and is_near:
            expected = _as_peers(cell, usual, count, because)
            yield case, replace(cell, expected=expected, verdict="ok", not_judged=None)


def _as_peers(cell: CellResult, usual: float, count: int, because: str) -> Expected:
    best = cell.expected.theoretical if cell.expected is not None else None
    return Expected(best, usual, because, measured=True, peers=count)


def with_lines(run: Run) -> Run:
    """Returns the run with fits of latency + size ÷ bandwidth for each path with several sizes."""
    sized = any(cell.does.of_sizes for result in run.results for cell in result.cells)
    if len(run.results) < 2 and not sized:
        return run
    from .size_lines import lines_of

    return replace(run, lines=lines_of(run))


HELD = 0.9
"""The share of the figure with all links at best, below which an expected figure is degraded."""
LOW = 0.75
"""The share of the achievable figure below which a cell is low. The lowest known figures of healthy
hardware are 0.83 of it, reading from the host (Zhenwu 810E), and 0.85, kernels both ways over
NVLink (H200); all others are 0.91 or more (docs/expect.md). A tenth is margin for hardware not seen
yet. A loss of half the lanes, speed or links is well below."""

SURE = 0.82
"""The share below which a copy from a device to another memory is perhaps low, because slow reads
from the host are not among these: a tenth below 0.91."""

COPIED = 0.9
"""The same for a single copy between two devices: healthy ones reach 0.91 or more."""

HIGH = 1.03
"""A higher figure comes from a cache, or the expectation is wrong. 3 % are margin for clocks."""

BELOW = "low", "perhaps low"
_WORST_FIRST: tuple[Verdict, ...] = ("low", "perhaps low", "not judged", "ok")


class Judge:
    """Judges a growing run repeatedly. Only what changed is judged anew, and what depends on it."""

    def __init__(self) -> None:
        self._machine: Machine | None = None
        self._ceilings: Ceilings | None = None
        self._known: list[tuple[Result, Result]] = []
        """The results as they were measured and as they were judged, in the order of the run."""
        self._last: Run | None = None
        """The run that was judged from these results."""

    def verdicts(self, run: Run) -> tuple[Result, ...]:
        """Returns the judged results. Cells are not compared with their peers yet."""
        alone = run_of(run)
        ceilings = measured_ceilings(alone.results, alone.machine)
        if (alone.machine, ceilings) != (self._machine, self._ceilings):
            self._machine, self._ceilings, self._known = alone.machine, ceilings, []
            self._expectations = Expectations(alone.machine, ceilings)
            self._nominal = Nominal(alone.machine, ceilings)
        before = [*self._known, *[None] * len(alone.results)]
        found = [
            known
            if known is not None and known[0] == result
            else (result, judge_result(result, self._expectations, self._nominal))
            for known, result in zip(before, alone.results, strict=False)
        ]
        if found != self._known:
            self._known, self._last = found, None
        return tuple(map(itemgetter(1), self._known))

    def __call__(self, run: Run) -> Run:
        if run.is_profiled or run.machine.shared:
            return with_lines(run.with_cells(unjudged))
        verdicts, judged = self.verdicts(run), self._last
        if judged is None:
            alone = run.machine.alone
            evidence = Evidence(alone, run.after, verdicts)
            results = _by_links(with_peers(evidence), behind(evidence))
            if alone is not run.machine:
                results = with_ranks(results, run.results)
            judged = self._last = with_lines(replace(run, results=results))
        run = replace(run, results=judged.results, lines=judged.lines)
        if not run.waivers:
            return run
        from .waivers import waive_cells

        return waive_cells(run)


def pair_of(transfer: Transfer) -> tuple[str, ...]:
    return tuple(str(end.place) for end in transfer.memories)


def _by_links(results: Sequence[Result], slower: Sequence[Behind]) -> tuple[Result, ...]:
    """Returns the results with more cells judged low: collectives that are perhaps low, if a copy
    between devices that exchange data in them is slow; and copies between such devices, if they are
    slower than on healthy machines."""
    sent = {
        pair for result in results for cell in result.cells
        if cell.verdict in BELOW for pair in exchanging(cell)
    }  # fmt: skip
    if not sent:
        return tuple(results)
    cells = [cell for result in results for cell in result.cells]
    copies = [one.case.cell for one in slower if one.loss >= LOSS]
    copies += [cell for cell in cells if cell.verdict == "low" or _is_short(cell, sent)]
    low = {pair_of(one) for cell in copies for one in cell.transfers}

    def judged(cell: CellResult) -> CellResult:
        # A slow copy shows that a link is the reason, not the algorithm.
        is_low = cell.verdict == "perhaps low" and not low.isdisjoint(exchanging(cell))
        is_low = is_low or _is_short(cell, sent)
        return replace(cell, verdict="low", not_judged=None) if is_low else cell

    return tuple(each.with_cells(judged) for each in results)


def _is_short(cell: CellResult, pairs: Collection[tuple[str, ...]]) -> bool:
    is_near = cell.verdict in ("ok", "perhaps low") and len(cell.transfers) == 1
    if not is_near or pair_of(cell.transfers[0]) not in pairs:
        return False
    share = cell.achieved
    return share is not None and share < COPIED and not cell.transfers[0].both_ways


def judge(run: Run) -> Run:
    """Judges a run. With a profiler, or if ranks share a device, figures get no expectation."""
    return Judge()(run)


def unjudged(cell: CellResult) -> CellResult:
    return replace(cell, expected=None, verdict="not judged", not_judged="run", peers=None)


def judge_result(
    result: Result, expectations: Expectations, nominal: Nominal | None = None
) -> Result:
    sharing = LinkSharing(expectations.machine.wiring, result)
    cells = [_judge_cell(cell, result, expectations, sharing, nominal) for cell in result.cells]
    if any(cell.does.collective is not None for cell in cells):
        return replace(result, cells=spared(cells))
    judged = replace(result, cells=tuple(cells))
    if cells and cells[0].does.follows_pointers:
        from .plateaus import with_levels

        return with_levels(judged)
    return judged


def _judge_cell(
    cell: CellResult,
    result: Result,
    expectations: Expectations,
    sharing: LinkSharing,
    nominal: Nominal | None,
) -> CellResult:
    if cell.status == "skip":
        return cell
    estimate = expectations.of(cell, result.size, result.unit)
    if sharing.of(cell) is None:
        estimate = _shared(estimate)
    expected = estimate.expected
    if estimate.each and expected.achievable is not None:
        parts = tuple(replace(one, expected=estimate.each[one.transfer]) for one in cell.parts)
        cell = replace(cell, parts=parts)
    word, why = verdict(cell, estimate)
    if (rests := rests_on(cell, expected, expectations.machine)) is not None:
        return replace(cell, expected=rests, peers=None, verdict="not judged", not_judged="assumed")
    if nominal is not None:
        best = nominal.of(cell, expected, result.size, result.unit)
        expected = expected if best is None else replace(expected, nominal=best)
        held = cell.share(expected.nominal, expected.figure)
        is_held = held is not None and held < HELD and word in ("ok", "perhaps low")
        word = "degraded" if is_held else word
    return replace(cell, expected=expected, peers=None, verdict=word, not_judged=why)


def _shared(estimate: Expectation) -> Expectation:
    expected = estimate.expected
    if expected.achievable is None:
        return estimate
    because = f"{expected.because}, if measured alone; other pairs ran at the same time"
    return replace(
        estimate, expected=replace(expected, achievable=None, because=because), without="shared"
    )


def verdict(cell: CellResult, estimate: Expectation) -> tuple[Verdict, NotJudged | None]:
    """Returns the verdict, and why a cell is not judged. A cell is low if its median, whole
    interval and last repetition are below the first bound, and perhaps low if the median is below
    the second. A total gets the worst verdict of itself and of transfers with expected figures."""
    if cell.summary is None or not _size(cell, cell):
        return "not judged", "no-figure"
    expected, most = estimate.expected, estimate.most
    if most is not None and cell.summary.median > HIGH * most:
        return "high", None
    if expected.achievable is None:  # then a cell is never low
        share = cell.share(expected.theoretical)
        enough = share is not None and share >= LOW
        return ("ok", None) if enough else ("not judged", estimate.without)
    found = [_beside(cell, cell, expected.achievable, estimate)]
    found += [_beside(one, cell, one.expected, estimate) for one in cell.parts if one.expected]
    word = min(found, key=_WORST_FIRST.index)
    return word, "no-figure" if word == "not judged" else None


def _beside(
    one: CellResult | TransferFigure, cell: CellResult, expected: float, estimate: Expectation
) -> Verdict:
    size = _size(one, cell)
    if one.summary is None or not size:
        return "not judged"
    seconds = float if cell.report.is_latency else partial(truediv, size)
    usual, (low, perhaps) = seconds(expected), bounds(estimate)
    if seconds(one.summary.median) <= usual / perhaps + estimate.start:
        return "ok"
    best = min(map(seconds, figures_of(one, cell)))
    return "low" if best > usual / low + estimate.start else "perhaps low"


def bounds(estimate: Expectation) -> tuple[float, float]:
    # Below the first a figure is low, below the second perhaps low.
    usual = (LOOSE, LOOSE) if estimate.loose else (LOW, SURE if estimate.sure else LOW)
    return estimate.bounds or usual


def _size(one: CellResult | TransferFigure, cell: CellResult) -> int:
    return 1 if cell.work or cell.does.product else one.bytes or 0


RISING = 1.05
"""The ratio by which the rate at the largest size exceeds that at the one before. Rates of healthy
machines differ by 4 % from 512 MiB to 1 GiB, and by 2 % beyond (`healthy.yml`)."""
NEAR = 4
"""The most by which the two sizes differ: curves over larger steps always rise."""


def spared(cells: Sequence[CellResult]) -> tuple[CellResult, ...]:
    """Returns the cells. A collective that is low at its largest size becomes `perhaps low` if its
    rate still rises with the size."""
    known = ((one, one.bytes or 0) for one in cells if one.does.collective and one.bytes)
    rows = grouped((one.row, (size, one)) for one, size in known)
    ends = [sorted(own, key=itemgetter(0))[-2:] for own in rows.values()]
    risen = {
        large.place
        for (little, before), (much, large) in (end for end in ends if len(end) == 2)
        if much <= NEAR * little and _moved(large) > RISING * _moved(before)
    }
    return tuple(
        replace(one, verdict="perhaps low") if one.verdict == "low" and one.place in risen else one
        for one in cells
    )


def _moved(cell: CellResult) -> float:
    moving = (cell.headline or math.inf) - CALL
    return (cell.bytes or 0) / moving if moving > 0 else math.inf
