"""Percentiles of any number of values, within a stated error, in bounded memory."""

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
