"""A sample of pairs is stated, is the same in every benchmark, and leaves all other cells out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import device, machine
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.engine.pair_sample import draw
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.model.errors import InputError
from linkgauge.model.settings import PairSample
from linkgauge.model.transfer import Drawn, Place

PAIRWISE = (
    "device_to_device_memcpy_read_ce",
    "device_to_device_bidirectional_memcpy_write_sm",
    "device_to_device_latency_sm",
)


def laid_out(devices, *names):
    here = machine([device(n, "x") for n in range(devices)])
    return list(lay_out([CATALOG[name] for name in names], fabrics(here, ()), here.host.nodes))


def places(benchmark):
    return [cell.place for cell in benchmark.cells]


def test_a_seed_draws_these_pairs():
    """They are part of what the option promises: a later version draws the same."""
    (drawn,) = draw(laid_out(8, PAIRWISE[0]), PairSample(5))
    assert drawn.drawn == Drawn(5, 56, 1)
    assert places(drawn) == [Place(*both) for both in "02 06 14 42 51".split()]


@given(st.integers(2, 12), st.integers(1, 140), st.integers(0, (1 << 32) - 1))
def test_it_is_as_large_as_asked_for_in_the_matrix_order(devices, count, seed):
    (whole,) = laid_out(devices, PAIRWISE[0])
    (drawn,) = draw([whole], PairSample(count, seed))
    every = devices * (devices - 1)
    assert len(drawn.cells) == min(count, every)
    assert [cell for cell in whole.cells if cell in drawn.cells] == list(drawn.cells)
    assert drawn.drawn == (None if count >= every else Drawn(count, every, seed))


@given(st.integers(3, 12), st.integers(1, 100), st.integers(0, 1000))
def test_it_is_the_same_in_every_benchmark(devices, count, seed):
    found = draw(laid_out(devices, *PAIRWISE), PairSample(count, seed))
    assert places(found[0]) == places(found[1]) == places(found[2])


@given(st.integers(3, 12), st.integers(1, 100), st.integers(0, 1000))
def test_a_larger_sample_has_the_pairs_of_a_smaller_one(devices, count, seed):
    benchmarks = laid_out(devices, PAIRWISE[0])
    (small,) = draw(benchmarks, PairSample(count, seed))
    (large,) = draw(benchmarks, PairSample(count + 1, seed))
    assert set(places(small)) <= set(places(large))


def test_where_no_benchmark_is_of_pairs_it_is_refused():
    with pytest.raises(InputError, match=r"^--sample-pairs has no effect: no benchmark"):
        draw(laid_out(4, "host_to_device_memcpy_ce"), PairSample(2))


@given(st.integers(2, 10), st.integers(1, 60), st.integers(0, 1000))
def test_pairs_that_are_measured_at_once_share_no_device(devices, count, seed):
    here = machine([device(n, "x") for n in range(devices)])
    drawn = draw(laid_out(devices, PAIRWISE[0]), PairSample(count, seed))
    (sheet,) = make_plan(drawn, here, (4096,), parallel_pairs=True)
    assert {cell.place for cell in sheet.cells} == set(places(drawn[0]))
    for number in {cell.round for cell in sheet.cells}:
        ends = [end for cell in sheet.cells if cell.round == number for end in cell.place]
        assert number is not None
        assert len(ends) == len(set(ends))
