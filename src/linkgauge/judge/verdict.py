"""Verdicts: whether a figure is what the hardware should achieve."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from msgspec.structs import replace

from linkgauge.model.machine import Machine
from linkgauge.model.result import CellResult, NotJudged, Part, Result, Run, Verdict

from .as_one import with_ranks
from .crowds import Crowds
from .dram import Ceilings, measured_ceilings
from .expect import Expectation, Expectations
from .findings import Evidence
from .lines import with_lines
from .nominal import Nominal
from .peers import with_peers
from .plateaus import with_levels
from .readings import run_of

LOW = 0.75
"""Below this share of the achievable figure a cell is low. The lowest known figures of healthy
hardware are 0.83 of it, reading from the host (Zhenwu 810E), and 0.85, kernels both ways over
NVLink (H200); all others are 0.91 or more (docs/expect.md). A tenth is margin for hardware not seen
yet. A loss of half the lanes, speed or links is well below."""

LOOSE = 0.5
"""Replaces LOW where the achievable figure is only known roughly: kernels reading over PCIe, both
ways over one PCIe link, fabrics whose protocol is not published, threads against the DIMMs' rate,
collectives. The lowest known figures there are 0.58 (IPU-M2000) and 0.60 (Zhenwu 810E)."""

HIGH = 1.03
"""A figure above this share of the bound that no sharing exceeds comes from a cache, or the
expectation is wrong; 3 % are margin for clocks."""

_WORST_FIRST: tuple[Verdict, ...] = ("low", "unknown")


class Judge:
    """Judges a run as it grows: what the machine should do is worked out once, and a result that
    has not changed since keeps its verdicts."""

    def __init__(self) -> None:
        self._machine: Machine | None = None
        self._ceilings: Ceilings | None = None
        self._known: list[tuple[Result, Result]] = []
        """Results as they were measured and as they were judged, in the order of the run."""

    def verdicts(self, run: Run) -> tuple[Result, ...]:
        """The results with what is expected of each cell, and whether it is that; their peers tell
        nothing yet."""
        alone = run_of(run)
        ceilings = measured_ceilings(alone.results, alone.machine)
        if (alone.machine, ceilings) != (self._machine, self._ceilings):
            self._machine, self._ceilings, self._known = alone.machine, ceilings, []
            self._expectations = Expectations(alone.machine, ceilings)
            self._nominal = Nominal(alone.machine, ceilings)
        before = [*self._known, *[None] * len(alone.results)]
        self._known = [
            known
            if known is not None and known[0] == result
            else (result, judge_result(result, self._expectations, self._nominal))
            for known, result in zip(before, alone.results, strict=False)
        ]
        return tuple(judged for _, judged in self._known)

    def __call__(self, run: Run) -> Run:
        """As `judge`."""
        if run.is_profiled or run.machine.shared:
            return with_lines(replace(run, results=tuple(map(unjudged, run.results))))
        results = self.verdicts(run)
        alone = run.machine.alone
        results = with_peers(Evidence(alone, run.after, results))
        if alone is not run.machine:
            results = with_ranks(results, run.results)
        return with_lines(replace(run, results=results))


def judge(run: Run) -> Run:
    """The run, with the expectation and the verdict of each cell, and the lines of its sweeps.
    Nothing is expected of figures that a profiler has a part in, or of ranks that share a
    device."""
    return Judge()(run)


def unjudged(result: Result) -> Result:
    """The result as it was measured, without expectations and verdicts."""
    cells = (
        replace(cell, expected=None, verdict="unknown", not_judged="run", peers=None)
        for cell in result.cells
    )
    return replace(result, cells=tuple(cells))


def judge_result(
    result: Result, expectations: Expectations, nominal: Nominal | None = None
) -> Result:
    """One result with expectations and verdicts, and with `nominal` figures if they are asked
    for."""
    crowds = expectations.crowds(result)
    cells = tuple(_judge_cell(cell, result, expectations, crowds, nominal) for cell in result.cells)
    return with_levels(replace(result, cells=cells))


def _judge_cell(
    cell: CellResult,
    result: Result,
    expectations: Expectations,
    crowds: Crowds,
    nominal: Nominal | None,
) -> CellResult:
    if cell.status == "skip":
        return cell
    estimate = expectations.of(cell, result.size, result.unit)
    if crowds.of(cell) is None:
        estimate = _shared(estimate)
    parts = cell.parts
    if estimate.each and estimate.expected.achievable is not None:
        parts = tuple(replace(one, expected=estimate.each[one.transfer]) for one in parts)
    expected = estimate.expected
    if nominal is not None:
        best = nominal.of(cell, expected, result.size, result.unit)
        expected = expected if best is None else replace(expected, nominal=best)
    cell = replace(cell, expected=expected, parts=parts, peers=None)
    word, why = verdict(cell, estimate)
    return replace(cell, verdict=word, not_judged=why)


def _shared(estimate: Expectation) -> Expectation:
    """What remains of a cell's estimate where other pairs that are measured at the same time want
    the same links."""
    expected = estimate.expected
    if expected.achievable is None:
        return estimate
    because = f"{expected.because}, if measured alone; other pairs ran at the same time"
    return replace(
        estimate, expected=replace(expected, achievable=None, because=because), without="shared"
    )


def verdict(cell: CellResult, estimate: Expectation) -> tuple[Verdict, NotJudged | None]:
    """Judges the median, or says why not. A cell is low only with its whole interval and in its
    last visit, which measured it once more: where the median alone is low, that is unknown. A total
    is as good as the worst of its transfers that should be as fast as alone: of many, one slow one
    hardly lowers the sum. With only a theoretical figure a cell may be ok, but never low."""
    if cell.summary is None or not cell.bytes:
        return "unknown", "no-figure"
    expected, most = estimate.expected, estimate.most
    if most is not None and cell.summary.median > HIGH * most:
        return "high", None
    if expected.achievable is None:
        share = cell.share(expected.theoretical)
        enough = share is not None and share >= LOW
        return ("ok", None) if enough else ("unknown", estimate.without)
    found = [_beside(cell, cell, expected.achievable, estimate)]
    found += [_beside(one, cell, one.expected, estimate) for one in cell.parts if one.expected]
    word: Verdict = next((word for word in _WORST_FIRST if word in found), "ok")
    return word, "unsure" if word == "unknown" else None


def _beside(
    one: CellResult | Part, cell: CellResult, expected: float, estimate: Expectation
) -> Verdict:
    """The figure of a cell, or of a part of it, beside what is expected of it."""
    if one.summary is None or not one.bytes:
        return "unknown"
    seconds = _seconds(cell, one.bytes)
    longest = seconds(expected) / (LOOSE if estimate.loose else LOW) + estimate.start
    if seconds(one.summary.median) <= longest:
        return "ok"
    last = one.samples[-sum(cell.visits[-1]) :] if cell.visits else ()
    figures = (one.summary.median, *(one.summary.ci95 or ()), *([median(last)] if last else ()))
    return "low" if min(map(seconds, figures)) > longest else "unknown"


def _seconds(cell: CellResult, size: int) -> Callable[[float], float]:
    """Makes the time of so many bytes of a figure of the cell, which may be a time itself."""
    return (lambda time: time) if cell.report.is_latency else (lambda rate: size / rate)
