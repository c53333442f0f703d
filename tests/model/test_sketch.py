"""Percentiles of any number of values, within a stated error, in bounded memory."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.sketch import ERROR, MOST_BINS, Sketch

POSITIVE = st.lists(st.floats(1e-9, 1e12), min_size=1, max_size=200)


@given(POSITIVE, st.floats(0, 1))
def test_a_quantile_lies_near_the_value_of_its_rank(values, fraction):
    sketch = Sketch()
    sketch.add(values)
    exact = sorted(values)[int(fraction * (len(values) - 1))]
    assert sketch.quantile(fraction) == pytest.approx(exact, rel=1.01 * ERROR)


@given(POSITIVE)
def test_the_ends_are_exact(values):
    sketch = Sketch()
    sketch.add(values)
    assert (sketch.least, sketch.most, sketch.count) == (min(values), max(values), len(values))


def test_a_million_values_take_few_bins():
    draw = random.Random(1)
    values = [draw.lognormvariate(0, 0.01) for _ in range(100_000)]
    sketch = Sketch()
    for _ in range(3):
        sketch.add(values)
    assert len(sketch._bins) < 100
    assert sketch.quantile(0.5) == pytest.approx(statistics.median(values), rel=2 * ERROR)


def test_values_of_any_scale_are_bounded():
    sketch = Sketch()
    sketch.add(10 ** (n / 100) for n in range(-3000, 3000))
    assert len(sketch._bins) <= MOST_BINS
    assert sketch.quantile(1.0) == pytest.approx(10**29.99, rel=ERROR)


def test_no_values_have_no_quantile_and_zeros_are_values():
    sketch = Sketch()
    assert sketch.quantile(0.5) is None
    sketch.add([0.0, 0.0, 5.0])
    assert sketch.quantile(0.5) == 0.0
