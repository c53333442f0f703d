"""What one setting changes against another, by their figures in rounds."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.stats.ranks import change


def p_by_counting(logs):
    """By trying all signs: how many have as few of one sign's ranks as these."""
    ranks = {abs(x): rank for rank, x in enumerate(sorted(logs, key=abs), start=1)}
    seen = sum(rank for x, rank in ranks.items() if x in logs)
    seen = min(seen, sum(ranks.values()) - seen)
    sums = [sum(chosen) for n in range(len(logs) + 1)
            for chosen in itertools.combinations(ranks.values(), n)]  # fmt: skip
    return min(1.0, 2 * sum(one <= seen for one in sums) / len(sums))


@pytest.mark.parametrize(
    "logs",
    [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [-1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [-1, -2, -3, 5], [0.5],
     [1, -2, 4, -8, 16, 32, 64, 128]],
)  # fmt: skip
def test_the_probability_is_that_of_all_signs_of_the_differences_in_rounds(logs):
    """So that of two alike settings at most one in a hundred is called different."""
    found = change([(1.0, math.exp(x)) for x in logs], 0.01)
    assert found.p == pytest.approx(p_by_counting(logs))
    drifting = change([(3.0**n, 3.0**n * math.exp(x)) for n, x in enumerate(logs)], 0.01)
    assert (drifting.ratio, drifting.p) == (pytest.approx(found.ratio), found.p)


@pytest.mark.parametrize(("alpha", "least"), [(0.01, 8), (0.05, 6), (0.2, 4)])
def test_the_fewest_rounds_are_those_that_can_prove_anything(alpha, least):
    agreed = [(1.0, 2.0)] * least
    found = change(agreed, alpha)
    assert (found.is_proven, found.low, found.high) == (True, pytest.approx(2), pytest.approx(2))
    assert change(agreed[1:], alpha).low is None
    assert not change([(3.0, 3.0)] * least, alpha).is_proven


@given(st.lists(st.tuples(st.floats(1e-6, 1e12), st.floats(1e-6, 1e12)), min_size=1, max_size=12))
def test_turned_round_a_change_is_its_inverse(pairs):
    there, back = change(pairs, 0.01), change([(y, x) for x, y in pairs], 0.01)
    assert (back.ratio, back.p) == (pytest.approx(1 / there.ratio), there.p)
    assert there.is_proven == (there.low is not None and there.p <= 0.01)
    assert there.low is None or there.low <= there.ratio <= there.high
