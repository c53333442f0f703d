"""Real runs on a host that others use, and runs of their form with samples that are drawn."""

from __future__ import annotations

import math
import random
from functools import cache

from msgspec.structs import replace

from linkgauge.judge.blame import unsteady
from linkgauge.judge.findings import Evidence, Finding, evidence_of
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.stats.summary import summarize
from recorded_kit import recorded_run


@cache
def real(name: str) -> Run:
    return judge(recorded_run(name))


def redrawn(
    seed: str, *, noise: float, spikes: float = 0.0, louder: float = 1.0, run: str = "01"
) -> Evidence:
    """The cells of a real run with other samples: of copies over PCIe with so much noise (of
    `cuda:1` `louder` times as much) and a share of `spikes`, of others with 0.2 %."""
    draw, was = random.Random(seed), evidence_of(real(run))
    results = tuple(
        replace(result, cells=tuple(_redrawn(c, result, draw, noise, spikes, louder)
                                    for c in result.cells))
        for result in was.results
    )  # fmt: skip
    return Evidence(was.machine, was.after, results)


def _redrawn(
    cell: CellResult, of: Result, draw: random.Random, noise: float, spikes: float, louder: float
) -> CellResult:
    ends = _memories(cell)
    over_pcie = "host:0" in ends and len(ends) > 1
    sigma = noise * (louder if "cuda:1" in ends else 1.0) if over_pcie else 0.002
    times = [
        math.exp(draw.gauss(0, sigma))
        * (draw.uniform(1.3, 2) if over_pcie and draw.random() < spikes else 1.0)
        for _ in cell.samples
    ]
    middle = cell.summary.median
    samples = [middle * time if of.better == "lower" else middle / time for time in times]
    return replace(cell, samples=tuple(samples), summary=summarize(samples, of.better))


def _memories(cell: CellResult, *, all_of: bool = False) -> set[str]:
    some = cell.transfers[:1] if cell.report.is_first and not all_of else cell.transfers
    return {
        str(end.place) for transfer in some for end in (*transfer.memories, transfer.engine.owner)
    }


def warned(evidence: Evidence) -> list[Finding]:
    found = [finding for check in unsteady.CHECKS for finding in check(evidence)]
    return [finding for finding in found if finding.severity == "warn"]
