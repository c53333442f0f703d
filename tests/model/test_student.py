"""Student's t: against tables, against scipy 1.16's values, and against what defines it."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.stats.student import (
    beyond,
    critical,
    digamma,
    shift_found,
    trigamma,
    two_sided,
)

DEGREES = st.floats(0.5, 1e6)


@pytest.mark.parametrize(
    ("degrees", "p", "t"),
    [(1, 0.05, 12.706), (2, 0.05, 4.303), (10, 0.05, 2.228), (30, 0.01, 2.750), (5, 0.001, 6.869),
     (120, 0.05, 1.980), (math.inf, 0.05, 1.960)],
)  # fmt: skip
def test_critical_values_are_those_of_the_tables(degrees, p, t):
    assert critical(p, degrees) == pytest.approx(t, abs=6e-4)


def test_far_tails_keep_their_digits():
    # By scipy 1.16.
    assert two_sided(20, 30) == pytest.approx(6.7490836658e-19, rel=1e-6)
    assert two_sided(8, 500) == pytest.approx(8.7296627939e-15, rel=1e-6)
    assert two_sided(9, 4.5) == pytest.approx(4.8115294713e-4, rel=1e-6)
    assert two_sided(1e3, 1) == pytest.approx(2 / (math.pi * 1e3), rel=1e-5)  # Cauchy's


@given(DEGREES, st.floats(1e-9, 0.999))
def test_a_critical_value_is_exceeded_as_often_as_asked(degrees, p):
    t = critical(p, degrees)
    assert t > 1e100 or two_sided(t, degrees) == pytest.approx(p, rel=1e-6)


def test_the_shift_that_a_test_finds_is_that_of_sample_size_tables():
    # J. Cohen, Statistical Power Analysis, 1988, table 2.4.1: d = 1, a2 = .05, power .90: n = 22
    assert math.sqrt(22 / 2) == pytest.approx(shift_found(0.05, 42, 0.9), rel=0.002)
    # With many degrees of freedom the sum of two quantiles of the normal distribution.
    assert shift_found(0.05, 100_000, 0.9) == pytest.approx(1.95996 + 1.28155, abs=1e-3)


@pytest.mark.parametrize(("degrees", "p"), [(3, 0.05), (8, 0.001)])
def test_the_shift_is_found_as_often_as_asked(degrees, p):
    draw = random.Random(1)
    shift, bound = shift_found(p, degrees, 0.9), critical(p, degrees)
    found = [
        draw.gauss(shift, 1) / math.sqrt(draw.gammavariate(degrees / 2, 2) / degrees) > bound
        for _ in range(20_000)
    ]
    assert statistics.fmean(found) == pytest.approx(0.9, abs=0.01)


def test_digamma_and_trigamma_have_their_known_values():
    assert digamma(1) == pytest.approx(-0.5772156649015329, rel=2e-6)
    assert digamma(0.5) == pytest.approx(-0.5772156649015329 - 2 * math.log(2), rel=2e-6)
    assert trigamma(1) == pytest.approx(math.pi**2 / 6, rel=2e-6)
    assert trigamma(0.5) == pytest.approx(math.pi**2 / 2, rel=2e-6)


@pytest.mark.parametrize(
    ("ratio", "degrees", "of", "p"),
    [(6.388, 4, 4, 0.05), (3.119, 6, 60, 0.01), (161.45, 1, 1, 0.05), (0, 3, 9, 1)],
)
def test_ratios_of_variances_are_those_of_the_tables(ratio, degrees, of, p):
    assert beyond(ratio, degrees, of) == pytest.approx(p, rel=2e-3)
