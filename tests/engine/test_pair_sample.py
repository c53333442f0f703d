"""A sample of pairs is stated, is the same in every benchmark, and leaves all other cells out."""

from hypothesis import given
from hypothesis import strategies as st

from fakes import device, machine
from linkgauge.model.settings import PairSample, Settings
from linkgauge.model.transfer import Place, SampledPairs
from repetition_kit import plan_of

PAIRWISE = (
    "device_to_device_memcpy_read_ce",
    "device_to_device_bidirectional_memcpy_write_sm",
    "device_to_device_latency_sm",
)


def drawn(devices, count=None, seed=1, names=PAIRWISE[:1], **more):
    here = machine([device(n) for n in range(devices)])
    sample = None if count is None else PairSample(count, seed)
    return plan_of(here, *names, settings=Settings((4096,), sample_pairs=sample, **more))


def places(table):
    return [cell.place for cell in table.cells]


def test_a_seed_draws_these_pairs():
    """They are part of what the option promises: a later version draws the same."""
    (table,) = drawn(8, 5)
    assert table.sampled == SampledPairs(5, 56, 1)
    assert places(table) == [Place(*both) for both in "02 06 14 42 51".split()]


@given(st.integers(2, 8), st.integers(1, 60), st.integers(0, (1 << 32) - 1))
def test_it_is_as_large_as_asked_for_in_the_matrix_order(devices, count, seed):
    (whole,), (table,) = drawn(devices), drawn(devices, count, seed)
    every = devices * (devices - 1)
    assert len(table.cells) == min(count, every)
    assert [place for place in places(whole) if place in places(table)] == places(table)
    assert table.sampled == (None if count >= every else SampledPairs(count, every, seed))


@given(st.integers(3, 8), st.integers(1, 60), st.integers(0, 1000))
def test_it_is_the_same_in_every_benchmark_and_has_the_pairs_of_a_smaller_one(devices, count, seed):
    one, *others = drawn(devices, count, seed, PAIRWISE)
    assert [places(other) for other in others] == [places(one)] * 2
    (larger,) = drawn(devices, count + 1, seed)
    assert set(places(one)) <= set(places(larger))


@given(st.integers(2, 8), st.integers(1, 60), st.integers(0, 1000))
def test_pairs_that_are_measured_at_once_share_no_device(devices, count, seed):
    (table,) = drawn(devices, count, seed, parallel_pairs=True)
    assert set(places(table)) == set(places(drawn(devices, count, seed)[0]))
    for number in {cell.round for cell in table.cells}:
        ends = [end for cell in table.cells if cell.round == number for end in cell.place]
        assert number is not None
        assert len(ends) == len(set(ends))
