"""Which parts shake cells: variances add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.judge.scatter import _sums_of_parts

variances = st.floats(1e-3, 0.5)


@given(variances, variances, variances)
def test_what_two_parts_add_is_found_if_each_has_cells_of_its_own(noise, one, other):
    groups = {
        (True, False, False): (noise, 80),
        (True, True, False): (noise + one, 80),
        (True, False, True): (noise + other, 80),
        (True, True, True): (noise + one + other, 80),
    }
    expected = [variance for variance, _ in groups.values()]
    assert _sums_of_parts(groups) == pytest.approx(expected, rel=0.2)


def test_no_part_makes_cells_steadier():
    groups = {(True, False): (0.04, 80), (True, True): (0.01, 80)}
    quiet, shaken = _sums_of_parts(groups)
    assert shaken == pytest.approx(quiet)
