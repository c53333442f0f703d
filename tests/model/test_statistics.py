"""The interval of the median covers what it says, whatever the distribution."""

import math
import random
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.stats.moments import Moments, median_without
from linkgauge.model.stats.summary import (
    deviation,
    interval_rank,
    known_percentile,
    median_deviation,
    percentile,
    relative_error,
    summarize,
)

samples = st.lists(st.floats(1e-9, 1e15), min_size=1, max_size=200)


@pytest.mark.parametrize(
    ("n", "rank"), [(5, None), (6, 1), (9, 2), (14, 3), (21, 6), (30, 10), (41, 14)]
)
def test_ranks_are_those_of_the_published_tables(n, rank):
    assert interval_rank(n) == rank


@given(st.integers(6, 1000))
def test_the_interval_covers_at_least_95_percent_and_no_narrower_one_does(n):
    rank = interval_rank(n)
    tail = sum(math.comb(n, k) for k in range(rank)) / 2**n
    assert 1 - 2 * tail >= 0.95
    if 2 * (rank + 1) <= n:
        assert 1 - 2 * (tail + math.comb(n, rank) / 2**n) < 0.95


@given(samples)
def test_a_summary_agrees_with_numpy(values):
    summary = summarize(values)
    assert summary.n == len(values)
    assert summary.min == min(values)
    assert summary.max == max(values)
    assert summary.median == pytest.approx(np.median(values))
    assert summary.p95 == pytest.approx(np.percentile(values, 95))
    assert summary.p99 == pytest.approx(np.percentile(values, 99))
    assert summary.slow_p95 == pytest.approx(np.percentile(values, 5))
    assert summary.slow_p99 == pytest.approx(np.percentile(values, 1))
    assert (summary.stddev is None) == (len(values) == 1)
    if summary.stddev is not None:
        largest = max(map(abs, values))
        assert summary.stddev == pytest.approx(np.std(values, ddof=1), abs=1e-9 * largest)
    assert (summary.ci95 is None) == (len(values) < 6)
    if summary.ci95 is not None:
        assert summary.min <= summary.ci95[0] <= summary.median <= summary.ci95[1] <= summary.max


def test_the_slow_side_is_low_for_a_bandwidth_and_high_for_a_time():
    bandwidth = summarize([10.0, 50.0, 50.0, 50.0, 51.0], "higher")
    assert bandwidth.slow_p99 < bandwidth.slow_p95 < 50 < bandwidth.p95 < bandwidth.p99
    time = summarize([10.0, 50.0, 50.0, 50.0, 51.0], "lower")
    assert (time.slow_p95, time.slow_p99) == (time.p95, time.p99)


@given(samples, st.floats(0, 1))
def test_a_percentile_lies_between_the_ends(values, fraction):
    ordered = sorted(values)
    assert ordered[0] <= percentile(ordered, fraction) * (1 + 1e-12)
    assert percentile(ordered, fraction) <= ordered[-1] * (1 + 1e-12)


def test_the_relative_error_is_that_of_the_farther_end():
    assert relative_error(summarize([10, 10, 10, 10, 10, 12])) == pytest.approx(0.2)
    assert relative_error(summarize([1, 2, 3])) is None


@given(st.lists(st.floats(1e-9, 1e12), min_size=2, max_size=50))
def test_deviation_is_that_of_a_sample(values):
    exact = statistics.stdev(values)
    assert deviation(values) == pytest.approx(exact, rel=1e-6, abs=1e-9 * max(values))


@pytest.mark.parametrize(("fraction", "least"), [(0.5, 2), (0.95, 20), (0.99, 100), (0.999, 1000)])
def test_a_percentile_is_known_once_a_sample_lies_beyond_it(fraction, least):
    values = [float(value) for value in range(least)]
    assert known_percentile(values, fraction) == percentile(values, fraction)
    assert known_percentile(values[1:], fraction) is None


def test_medians_of_normal_samples_deviate_as_much():
    """What is expected of a median holds for many of them, drawn from a fixed seed."""
    dice = random.Random(3)
    medians = [statistics.median(dice.gauss(0, 2) for _ in range(101)) for _ in range(2000)]
    assert median_deviation(2, 101) == pytest.approx(deviation(medians), rel=0.05)


@given(st.lists(st.floats(1, 1e3), min_size=3, max_size=30), st.data())
def test_values_can_be_left_out_without_a_pass_over_the_rest(values, data):
    ordered = sorted(values)
    out = data.draw(st.sets(st.integers(0, len(values) - 1), max_size=len(values) - 2))
    rest = [value for at, value in enumerate(ordered) if at not in out]
    assert median_without(ordered, out) == pytest.approx(statistics.median(rest))
    left = Moments.over(ordered).without(Moments.over(ordered[at] for at in out))
    assert left.n == len(rest)
    assert left.mean == pytest.approx(statistics.fmean(rest))
    squares = statistics.pvariance(rest) * len(rest)
    assert left.rest == pytest.approx(squares, abs=1e-9 * sum(one**2 for one in ordered))
