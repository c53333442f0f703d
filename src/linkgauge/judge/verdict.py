"""Whether a figure is what the hardware should do."""

from __future__ import annotations

from msgspec.structs import replace

from linkgauge.model.notes import Beside
from linkgauge.model.result import CellResult, Result, Run, Verdict

from .dram import measured_ceilings
from .expect import START, Expectation, Expectations

LOW = 0.75
"""Below this share of the achievable figure a cell is low. The lowest figures known of healthy
hardware are 0.83 of it, reading from the host (Zhenwu 810E), and 0.85, kernels both ways over
NVLink (H200); all others are 0.91 and more (docs/expect.md). A tenth is left for what was not seen
yet. What loses half of its lanes, speed or links is well below."""

LOOSE = 0.5
"""In place of LOW where the achievable figure is known roughly: kernels reading over PCIe, both
ways over one PCIe link, fabrics whose protocol is not published, threads against the DIMMs' rate.
There the lowest known are 0.58 (IPU-M2000) and 0.60 (Zhenwu 810E)."""

HIGH = 1.03
"""Above this share of what no sharing exceeds, a figure comes from a cache or the expectation is
wrong; 3 % are left for clocks."""


def judge(run: Run) -> Run:
    """The run with what is expected of each cell, and its verdict."""
    expectations = Expectations(run.machine, measured_ceilings(run.results, run.machine))
    return replace(
        run,
        results=tuple(
            result if _is_judged(result) else judge_result(result, expectations)
            for result in run.results
        ),
    )


def _is_judged(result: Result) -> bool:
    """Whether it was, and without the host's memory: nothing that the run has measured since can
    change what is expected of it."""
    return all(
        (cell.expected is not None or cell.status == "skip")
        and not any(m.is_host for t in cell.transfers for m in (t.source, t.destination))
        for cell in result.cells
    )


def judge_result(result: Result, expectations: Expectations) -> Result:
    """One result with expectations and verdicts."""
    cells = tuple(_judge_cell(cell, result, expectations) for cell in result.cells)
    return replace(result, cells=cells)


def _judge_cell(cell: CellResult, result: Result, expectations: Expectations) -> CellResult:
    if cell.status == "skip":
        return cell
    estimate = expectations.of(cell, result.size, result.unit)
    if any(isinstance(note, Beside) for note in cell.notes):
        estimate = _shared(estimate)
    return replace(cell, expected=estimate.expected, verdict=verdict(cell, estimate))


def _shared(estimate: Expectation) -> Expectation:
    """What is left of an estimate for one cell where others are measured beside it."""
    expected = estimate.expected
    if expected.achievable is None:
        return estimate
    because = f"{expected.because}, if alone: other pairs were measured at the same time"
    return replace(estimate, expected=replace(expected, achievable=None, because=because))


def verdict(cell: CellResult, estimate: Expectation) -> Verdict:
    """Of its median. Where only a theoretical figure is known, it may be ok, but never low."""
    if cell.summary is None or not cell.bytes:
        return "unknown"
    figure = cell.summary.median
    expected, most = estimate.expected, estimate.most
    if most is not None and figure > HIGH * most:
        return "high"
    if expected.achievable is None:
        enough = expected.theoretical is not None and figure >= LOW * expected.theoretical
        return "ok" if enough else "unknown"
    share = LOOSE if estimate.loose else LOW
    longest = cell.bytes / (share * expected.achievable) + START
    return "low" if cell.bytes / figure > longest else "ok"
