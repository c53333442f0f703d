"""What suspects explain of slow cells: medians by weight."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.judge.slow_model import _weighted_median

numbers = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(numbers, st.floats(0.01, 1.0)), min_size=1))
def test_a_weighted_median_is_one_of_the_values_with_half_of_the_weight_on_either_side(values):
    found = _weighted_median(values)
    whole = sum(weight for _, weight in values)
    assert found in [value for value, _ in values]
    assert sum(weight for value, weight in values if value < found) <= whole / 2 + 1e-9
    assert sum(weight for value, weight in values if value > found) <= whole / 2 + 1e-9


def test_values_of_little_weight_hardly_move_it():
    assert _weighted_median([(-0.4, 1.0), (-0.41, 1.0), (-2.0, 0.1), (-3.0, 0.1)]) == -0.41
    assert _weighted_median([(-0.4, 1.0)]) == pytest.approx(-0.4)
