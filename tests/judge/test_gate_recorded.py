"""The gate on ten runs of two healthy H100s, in a virtual machine whose host others use."""

import os
from functools import cache
from itertools import pairwise

import pytest
from msgspec.structs import replace

from gate_kit import AIM
from linkgauge.judge.compare.gate import hold, suspects
from linkgauge.judge.compare.likeness import figures_of
from linkgauge.model.recorded import path_kind
from linkgauge.model.stats.summary import summarize
from recorded_kit import HEALTHY, OF_ONE, recorded_of_four, recorded_of_one, recorded_run

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


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_no_healthy_run_fails_however_many_runs_the_baseline_has(count):
    for last in range(len(HEALTHY))[:: 1 if FULL else 3]:
        order = [*HEALTHY[last:], *HEALTHY[:last]]
        gate = hold([figures(name) for name in order[1 : count + 1]], [figures(order[0])], [], AIM)
        assert gate.code == 0, (order[0], gate.of("regression", "measure again", "too noisy"))


@cache
def of_one(name):
    return figures_of(recorded_of_one(name))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_nor_does_one_whose_latencies_vary_much(count):
    for last in range(len(OF_ONE)):
        order = [*OF_ONE[last:], *OF_ONE[:last]]
        gate = hold([of_one(name) for name in order[1 : count + 1]], [of_one(order[0])], [], AIM)
        assert gate.code != 1, (order[0], gate.of("regression"))


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_more_runs_of_a_baseline_find_no_less(count):
    baseline = [figures(name) for name in HEALTHY[:count]]
    (lost,) = hold(baseline, [scaled(HEALTHY[8], 0.95)], [], AIM).of("regression")
    assert (lost.cell.benchmark, lost.cell.row, lost.cell.column) == LOST


@pytest.mark.parametrize("names", [("16cpus/04", "16cpus/05"), ("2cpus/05", "2cpus/02")])
def test_default_sizes_that_differ_from_run_to_run_are_compared(names):
    """They follow the memory that is free: 320 and 640 MiB, 512 and 128 MiB."""
    before, after = map(of_one, names)
    for sides in ((before, after), (after, before)):
        gate = hold([sides[0]], [sides[1]], [], AIM)
        assert (gate.code, gate.of("not compared")) == (0, ())
        cells = {(one.table, one.place) for one in sides[1].cells}
        assert {(one.cell.table, one.cell.place) for one in gate.cells} == cells


@pytest.mark.parametrize(("third", "current"), [("05", "07"), ("05", "08"), ("02", "04")])
def test_one_run_of_a_baseline_that_is_far_off_makes_none_blind_that_is_as_the_others(
    third, current
):
    """Its arrays were so small that they lay in caches: 30 GB/s, where others have 15 to 19."""
    baseline = [of_one(f"2cpus/{number}") for number in ("01", "06", third)]
    gate = hold(baseline, [of_one(f"2cpus/{current}")], [], AIM)
    assert (gate.code, gate.of("too noisy")) == (0, ())


def test_a_figure_of_a_single_run_that_is_far_off_must_come_again():
    """Copies that cross to the host are, in healthy runs, up to a fifth off."""
    place = "host_to_device_memcpy_ce", "0", "0"
    baseline = [of_one(name) for name in OF_ONE[:3]]

    def one_at(factor, name):
        run = of_one(name)
        cells = tuple(
            replace(cell, **{of: factor * getattr(cell, of) for of in ("figure", "low", "high")})
            if (cell.benchmark, cell.row, cell.column) == place
            else cell
            for cell in run.cells
        )
        return replace(run, cells=cells)

    def verdict(*current):
        gate = hold(baseline, current, [], AIM)
        (one,) = (
            one
            for one in gate.cells
            if (one.cell.benchmark, one.cell.row, one.cell.column) == place
        )
        return one.verdict, gate.code, one.cell.id in suspects(gate)

    assert verdict(one_at(0.9, OF_ONE[3])) == ("far off", 0, True)
    assert verdict(one_at(0.6, OF_ONE[3])) == ("measure again", 3, True)
    again = [replace(of_one(name), again=True) for name in OF_ONE[4:]]
    assert verdict(one_at(0.6, OF_ONE[3]), *again)[1] == 0
    lost = [replace(one_at(0.9, name), again=True) for name in OF_ONE[4:]]
    assert verdict(one_at(0.9, OF_ONE[3]), *lost)[:2] == ("regression", 1)


def test_kernels_of_several_devices_at_once_share_a_third_unevenly():
    """Of 30 pairs of six healthy runs of four H200s, 9 had such a figure 3.8 to 6.1 % lower."""
    kinds = {
        result.benchmark: {path_kind(cell, result.size) for cell in result.cells}
        for result in recorded_of_four("02").results
    }
    for name in ("all_to_one_write_sm", "one_to_all_read_sm"):
        assert kinds[name] == {"kernels of several devices"}
    for name in ("all_to_one_write_ce", "device_to_device_memcpy_write_sm"):
        assert kinds[name] == {"between devices"}
