"""Which cells of a run form a path over sizes, and what its line is made of."""

import pytest
from msgspec.structs import replace

from linkgauge.judge.verdict import judge
from sweep_kit import LATENCY, RATE, SIZES, run, sweep


def test_each_path_of_a_sweep_has_a_line():
    lines = judge(run(*sweep({("0", "0"): 1.0, ("0", "1"): 0.5}))).lines
    assert [(line.row, line.column) for line in lines] == [("0", "0"), ("0", "1")]
    for line, share in zip(lines, (1.0, 0.5), strict=True):
        assert (line.benchmark, line.backend, line.sizes) == ("h2d", "sim", SIZES)
        assert line.latency == pytest.approx(LATENCY / share)
        assert line.bandwidth == pytest.approx(RATE * share)
        assert line.half_size == pytest.approx(LATENCY * RATE)
        assert line.error == pytest.approx(0, abs=1e-6)


def test_the_half_size_is_one_that_can_be_asked_for_whatever_the_bytes_counted():
    """Twice the bytes at twice the bandwidth: the same times of the same sizes."""
    (line,) = judge(run(*sweep({("0", "0"): 1.0}, counted=2))).lines
    assert line.bandwidth == pytest.approx(2 * RATE)
    assert line.half_size == pytest.approx(LATENCY * RATE)


def test_other_benchmarks_and_backends_do_not_mix():
    results = sweep({("0", "0"): 1.0})
    elsewhere = [replace(one, backend="host") for one in results]
    lines = judge(run(*results[:2], *elsewhere[2:])).lines
    assert lines == ()


@pytest.mark.parametrize(
    "change",
    [
        {"summary": None},
        {"kind": "wrong-bytes", "status": "fail"},
        {"bytes": None},
    ],
)
def test_cells_without_a_figure_that_counts_are_no_points(change):
    first, *others = sweep({("0", "0"): 1.0})
    first = replace(first, cells=tuple(replace(cell, **change) for cell in first.cells))
    (line,) = judge(run(first, *others)).lines
    assert line.sizes == SIZES[1:]
