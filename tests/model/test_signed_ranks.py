"""A difference is told from pairs, and whatever the figures: what does not differ is seldom called
different."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.signed_ranks import MOST_ROUNDS, change, least_rounds

figures = st.floats(1e-9, 1e15)
pairs = st.lists(st.tuples(figures, figures), min_size=1, max_size=14)
ALPHA = 0.01


def p_by_counting(logs):
    """By trying all signs: how many have as few of one sign's ranks as these."""
    ranks = {abs(x): rank for rank, x in enumerate(sorted(logs, key=abs), start=1)}
    seen = sum(rank for x, rank in ranks.items() if x in logs)
    all_ranks = sum(ranks.values())
    seen = min(seen, all_ranks - seen)
    sums = [sum(chosen) for n in range(len(logs) + 1)
            for chosen in itertools.combinations(ranks.values(), n)]  # fmt: skip
    return min(1.0, 2 * sum(one <= seen for one in sums) / len(sums))


@pytest.mark.parametrize(
    "logs",
    [
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        [-1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        [1, -2, 4, -8, 16, 32, 64, 128],
        [-1, -2, -3, 5],
        [0.5],
    ],
)
def test_the_probability_is_that_of_all_signs(logs):
    found = change([(1.0, math.exp(x)) for x in logs], ALPHA)
    assert found.p == pytest.approx(p_by_counting(logs))


@given(pairs)
def test_an_interval_leaves_out_1_just_where_the_probability_is_small(pairs):
    found = change(pairs, ALPHA)
    assert found.is_known == (len(pairs) >= least_rounds(ALPHA))
    assert found.is_proven == (found.is_known and found.p <= ALPHA)
    if found.is_known:
        assert found.low <= found.ratio <= found.high


@given(pairs)
def test_turned_round_a_change_is_its_inverse(pairs):
    there, back = change(pairs, ALPHA), change([(y, x) for x, y in pairs], ALPHA)
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.p == there.p
    if there.is_known:
        assert (back.low, back.high) == pytest.approx((1 / there.high, 1 / there.low))


@given(pairs, st.floats(1e-3, 1e3))
def test_drift_that_both_of_a_round_share_does_not_matter(pairs, factor):
    drifting = [(x * factor**n, y * factor**n) for n, (x, y) in enumerate(pairs[:4])]
    still, moved = change(pairs[:4], ALPHA), change(drifting, ALPHA)
    assert moved.ratio == pytest.approx(still.ratio, rel=1e-6)


@given(st.lists(st.floats(-30, 30), min_size=8, max_size=9))
def test_of_all_signs_of_any_differences_at_most_one_in_a_hundred_is_proven(sizes):
    """The guarantee, whatever the distribution: each sign is as likely where nothing differs."""
    found = [
        change([(1.0, math.exp(sign * x)) for sign, x in zip(signs, sizes, strict=True)], ALPHA)
        for signs in itertools.product((1, -1), repeat=len(sizes))
    ]
    assert sum(one.is_proven for one in found) <= ALPHA * len(found)


def test_the_fewest_rounds_are_those_that_can_prove_anything():
    for alpha, rounds in ((0.01, 8), (0.05, 6), (0.2, 4), (0.001, 11)):
        assert least_rounds(alpha) == rounds
        agreed = [(1.0, 2.0)] * rounds
        assert change(agreed, alpha).is_proven
        assert not change(agreed[1:], alpha).is_known


def test_what_never_varies_is_exactly_known():
    found = change([(3.0, 6.0)] * 10, ALPHA)
    assert (found.ratio, found.low, found.high) == pytest.approx((2, 2, 2))
    assert not change([(3.0, 3.0)] * 10, ALPHA).is_proven


@pytest.mark.parametrize(
    "pairs", [[], [(1.0, 0.0)] * 9, [(-1.0, 1.0)] * 9, [(1.0, 1.0)] * (MOST_ROUNDS + 1)]
)
def test_there_is_no_change_without_figures_above_0_or_of_too_many_rounds(pairs):
    assert change(pairs, ALPHA) is None
