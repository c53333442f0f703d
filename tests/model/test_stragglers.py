"""The rank that the others wait for is named where it is no accident."""

import random

import pytest

from linkgauge.model.operations.stragglers import Straggler, find_straggler


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


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_of_ranks_that_are_alike_it_names_one_in_a_hundred_at_most(ranks):
    chance = random.Random(ranks)
    named = 0
    for _ in range(400):
        seconds = [[1 + chance.random() for _ in range(40)] for _ in range(ranks)]
        named += find_straggler(range(ranks), seconds) is not None
    assert named <= 10
