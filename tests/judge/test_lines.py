"""Which cells of a run form a path over sizes, and what its line is made of."""

import pytest
from msgspec.structs import replace

from linkgauge.judge.lines import with_lines
from linkgauge.judge.verdict import judge
from linkgauge.model.result import SizeLine
from sweep_kit import LATENCY, MI, RATE, SIZES, ping_pongs, run, sweep


def test_each_path_of_a_sweep_has_a_line():
    lines = with_lines(run(*sweep({("0", "0"): 1.0, ("0", "1"): 0.5}))).lines
    assert [(line.row, line.column) for line in lines] == [("0", "0"), ("0", "1")]
    for line, share in zip(lines, (1.0, 0.5), strict=True):
        assert (line.benchmark, line.backend, line.sizes) == ("h2d", "sim", SIZES)
        assert line.latency == pytest.approx(LATENCY / share)
        assert line.bandwidth == pytest.approx(RATE * share)
        assert line.half_size == pytest.approx(LATENCY * RATE)
        assert line.error == pytest.approx(0, abs=1e-6)


def test_the_half_size_is_one_that_can_be_asked_for_whatever_the_bytes_counted():
    """Twice the bytes at twice the bandwidth: the same times of the same sizes."""
    (line,) = with_lines(run(*sweep({("0", "0"): 1.0}, counted=2))).lines
    assert line.bandwidth == pytest.approx(2 * RATE)
    assert line.half_size == pytest.approx(LATENCY * RATE)


def test_a_latency_by_size_has_a_line_for_each_row():
    (line,) = with_lines(run(ping_pongs())).lines
    assert line == SizeLine(
        "latency_copy_pingpong", "sim", "host:0-0", None, SIZES, line.error, line.worst,
        pytest.approx(LATENCY), pytest.approx(RATE), pytest.approx(LATENCY * RATE),
    )  # fmt: skip


def test_judging_a_run_forms_its_lines_anew():
    old = run(*sweep({("0", "0"): 1.0}))
    assert judge(judge(old)).lines == judge(old).lines != ()


def test_other_benchmarks_and_backends_do_not_mix():
    results = sweep({("0", "0"): 1.0})
    elsewhere = [replace(one, backend="host") for one in results]
    lines = with_lines(run(*results[:2], *elsewhere[2:])).lines
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
    (line,) = with_lines(run(first, *others)).lines
    assert line.sizes == SIZES[1:]


def test_staged_traffic_and_rates_that_move_no_bytes_have_no_line():
    staged = sweep({("0", "0"): 1.0}, transfer="sim:0 -> host:0/staging by sim:0.ce")
    events = [replace(one, unit="1/s") for one in sweep({("0", "0"): 1.0})]
    assert with_lines(run(*staged, *events)).lines == ()


def test_a_single_size_has_none():
    (result,) = sweep({("0", "0"): 1.0}, sizes=(64 * MI,))
    assert judge(run(result)).lines == ()
