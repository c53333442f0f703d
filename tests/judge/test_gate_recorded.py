"""The gate on ten runs of two healthy H100s, in a virtual machine whose host others use."""

import os
from functools import cache
from itertools import pairwise

import pytest
from msgspec.structs import replace

from gate_kit import AIM
from linkgauge.judge.compare.gate import hold
from linkgauge.judge.compare.likeness import figures_of
from linkgauge.model.stats.summary import summarize
from recorded_kit import HEALTHY, recorded_run

FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
LOST = "device_to_device_memcpy_read_ce", "0", "1"


@cache
def figures(name):
    return figures_of(recorded_run(name))


def scaled(name, factor, place=LOST):
    """The run, with all that was measured of one cell so many times as fast."""
    benchmark, row, column = place
    run = recorded_run(name)
    results = list(run.results)
    (at,) = (n for n, result in enumerate(results) if result.benchmark == benchmark)
    one = results[at]
    cells = tuple(
        _times(cell, factor, one.better) if (cell.row, cell.column) == (row, column) else cell
        for cell in one.cells
    )
    results[at] = replace(one, cells=cells)
    return figures_of(replace(run, results=tuple(results)))


def _times(cell, factor, better):
    samples = tuple(factor * sample for sample in cell.samples)
    low, high = cell.summary.ci95
    whole = replace(summarize(samples, better), ci95=(factor * low, factor * high))
    parts = tuple(
        replace(part, samples=tuple(factor * sample for sample in part.samples))
        for part in cell.parts
    )
    return replace(cell, samples=samples, summary=whole, parts=parts)


def test_a_healthy_run_passes_against_the_one_before():
    codes = [hold([figures(a)], [figures(b)], [], AIM).code for a, b in pairwise(HEALTHY)]
    assert codes.count(0) >= 8
    assert 1 not in codes


def test_no_healthy_run_fails_against_any_other():
    """Every seventh of the 90 pairs, or all of them in a full campaign."""
    pairs = [(a, b) for a in HEALTHY for b in HEALTHY if a != b][:: 1 if FULL else 7]
    assert not [pair for pair in pairs if hold(*([figures(x)] for x in pair), [], AIM).code == 1]


@pytest.mark.parametrize(("before", "after"), [*pairwise(HEALTHY)][::2][:4])
def test_a_loss_of_five_percent_between_the_gpus_is_found(before, after):
    gate = hold([figures(before)], [scaled(after, 0.95)], [], AIM)
    (lost,) = gate.of("regression")
    assert (gate.code, (lost.cell.benchmark, lost.cell.row, lost.cell.column)) == (1, LOST)


def test_a_copy_from_the_host_at_half_its_bandwidth_never_passes():
    place = "host_to_device_bidirectional_memcpy_ce", "0", "1"
    codes = [
        hold([figures(a)], [scaled(b, 0.5, place)], [], AIM).code for a, b in pairwise(HEALTHY)
    ]
    assert set(codes) <= {1, 3}
