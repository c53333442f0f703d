"""The rank that the others wait for is named where it is no accident."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.stragglers import Straggler, at_least, find_straggler


def test_the_rank_that_is_last_in_most_iterations_is_named_with_the_wait():
    seconds = [[10.0] * 20, [7.0] * 15 + [10.5] * 5, [10.2] * 20]
    assert find_straggler((0, 2, 5), seconds) == Straggler(2, 15, 20, pytest.approx(3.1))


def test_ranks_that_are_last_equally_often_are_not():
    turns = [[1.0, 2.0] * 20, [2.0, 1.0] * 20]
    assert find_straggler((0, 1), turns) is None


def test_ranks_that_are_as_short_are_not_last():
    assert find_straggler((0, 1, 2), [[1.0] * 9, [1.0] * 9, [2.0] * 9]) is None
    assert find_straggler((0,), [[1.0] * 9]) is None
    assert find_straggler((0, 1), [[], []]) is None


def test_a_wait_of_nothing_is_none():
    assert find_straggler((0, 1), [[1.0] * 99, [0.999] * 99]) is None
    assert find_straggler((0, 1), [[1.0] * 99, [0.98] * 99]) is not None


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_of_ranks_that_are_alike_it_names_one_in_a_hundred_at_most(ranks):
    chance = random.Random(ranks)
    named = 0
    for _ in range(400):
        seconds = [[1 + chance.random() for _ in range(40)] for _ in range(ranks)]
        named += find_straggler(range(ranks), seconds) is not None
    assert named <= 10


@given(st.integers(1, 3000), st.integers(2, 64), st.data())
def test_the_binomial_tail(trials, ranks, data):
    successes = data.draw(st.integers(0, trials))
    share = 1 / ranks
    assert at_least(0, trials, share) == pytest.approx(1)
    more = at_least(min(successes + 1, trials), trials, share)
    assert 0 <= more <= at_least(successes, trials, share) <= 1 + 1e-9


def test_known_tails():
    assert at_least(2, 2, 0.5) == pytest.approx(0.25)
    assert at_least(8, 10, 0.5) == pytest.approx(56 / 1024)
