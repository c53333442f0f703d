"""Two groups are found where there are two, and seldom where there is one."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.stats.modes import LEAST, groups, split

RUNS = 400


def normal(dice, count):
    return [dice.gauss(100, 0.5) for _ in range(count)]


def lognormal(dice, count):
    return [100 * math.exp(dice.gauss(0, 0.5)) for _ in range(count)]


def autocorrelated(dice, count):
    level = dice.gauss(0, 1)
    found = []
    for _ in range(count):
        found.append(100 + 2 * level)
        level = 0.9 * level + math.sqrt(1 - 0.81) * dice.gauss(0, 1)
    return found


def drifting(dice, count):
    return [100 + 5 * at / count + dice.gauss(0, 0.5) for at in range(count)]


@pytest.mark.parametrize("kind", [normal, lognormal, autocorrelated, drifting])
@pytest.mark.parametrize("count", [LEAST, 9, 12, 30])
def test_one_group_is_seldom_taken_for_two(kind, count):
    dice = random.Random(f"{kind.__name__} {count}")
    found = sum(split(kind(dice, count), (1,) * count) is not None for _ in range(RUNS))
    assert found / RUNS <= 0.01


def test_repetitions_that_differ_from_each_other_are_no_groups():
    """Buffers differ more than samples in the same buffers do: four repetitions are four values."""
    dice = random.Random(6)
    found = 0
    for _ in range(RUNS):
        levels = [dice.gauss(100, 0.7) for _ in range(4)]
        samples = [level + dice.gauss(0, 0.05) for level in levels for _ in range(4)]
        found += split(samples, (1,) * 16, (4,) * 4) is not None
    assert found / RUNS <= 0.01


def test_groups_within_a_repetition_are_found_by_its_gates():
    samples = [100.0, 90.0, 100.1, 90.1, 100.2, 90.2, 100.0, 90.0]
    assert split(samples, (1,) * 8, (4, 4)) == pytest.approx(95, abs=1)


def test_two_groups_five_percent_apart_are_found():
    dice = random.Random(4)
    found = 0
    for _ in range(RUNS):
        samples = [dice.gauss(100 if dice.random() < 0.7 else 95, 0.5) for _ in range(30)]
        found += split(samples, (1,) * 30) is not None
    assert found / RUNS >= 0.95


def test_both_are_reported_the_larger_first():
    samples = [396.0, 356.1, 396.2, 356.0, 396.1, 396.3, 356.2, 396.2, 396.0]
    larger, smaller = groups(samples, (1,) * 9, split(samples, (1,) * 9))
    assert (larger.median, larger.gates, larger.samples) == (statistics.median([396.0, 396.2, 396.1, 396.3, 396.2, 396.0]), 6, 6)  # fmt: skip  # noqa: E501
    assert (smaller.median, smaller.gates) == (356.1, 3)


def test_samples_behind_one_gate_are_one_vote():
    samples = [396.0] * 20 + [356.0] * 20
    assert split(samples, (20, 20)) is None
    assert split(samples, (5,) * 8) is not None


@given(st.lists(st.floats(0, 1e15), max_size=40))
def test_no_samples_raise(samples):
    gates = (1,) * len(samples)
    border = split(samples, gates)
    if border is not None:
        assert sum(mode.samples for mode in groups(samples, gates, border)) == len(samples)
