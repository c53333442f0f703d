"""Changes of level in series of runs: found where they are, and nowhere else."""

import random
from itertools import accumulate
from statistics import median

import pytest

from campaigns import trials
from linkgauge.model.stats.change_points import change_points, holding

BACK = "history: both ends of a level that comes back are seen"
MODES = "history: a change is seen where runs have two modes"
RARE = "history: a change is seen where nothing changed"
SEEN = {
    False: "history: a loss is seen where it is",
    True: "history: a loss is seen after many runs",
}


def normal(draw):
    return draw.gauss(0, 1)


def heavy(draw):
    """Student's t with three degrees of freedom: now and then a run is far off."""
    return draw.gauss(0, 1) / (draw.gammavariate(1.5, 1 / 1.5) ** 0.5)


def skewed(draw):
    """Runs that are slower by chance, never faster."""
    return -draw.expovariate(1)


def series(draw, *levels, noise=normal, deviation=0.01):
    """Values at each (count, level)."""
    return [level * (1 + deviation * noise(draw)) for count, level in levels for _ in range(count)]


@pytest.mark.parametrize("noise", [normal, heavy, skewed])
@pytest.mark.parametrize("count", [8, 30])
def test_where_nothing_changed_changes_are_rare(noise, count, holds):
    draw = random.Random(f"{noise.__name__} {count}")
    found = [
        bool(change_points(series(draw, (count, 1.0), noise=noise))) for _ in range(trials(RARE))
    ]
    holds(RARE, sum(found), len(found), f"{noise.__name__}, {count} runs")


@pytest.mark.parametrize(("before", "after", "loss"), [
    (5, 5, 0.05), (30, 3, 0.05), (10, 10, 0.03), (30, 30, 0.02),
])  # fmt: skip
def test_a_loss_is_found_where_it_is(before, after, loss, holds):
    draw = random.Random(f"{before} {after} {loss}")
    found = [
        change_points(series(draw, (before, 4e11), (after, 4e11 * (1 - loss))))
        for _ in range(trials(SEEN[before == 30]))
    ]
    hits = [one[0] for one in found if len(one) == 1]
    holds(SEEN[before == 30], len(hits), len(found), f"{loss:.0%} in {after} runs after {before}")
    assert sum(one.first <= before <= one.last for one in hits) / len(hits) >= 0.85
    assert median(one.ratio for one in hits) == pytest.approx(1 - loss, abs=0.005)


@pytest.mark.parametrize(("runs", "loss"), [(3, 0.1), (5, 0.1), (10, 0.05)])
def test_both_ends_of_a_level_that_comes_back_are_found(runs, loss, holds):
    draw = random.Random(f"{runs} {loss}")

    def is_found(at):
        found = change_points(series(draw, (at, 1.0), (runs, 1 - loss), (60 - runs - at, 1.0)))
        ends = [
            one.first <= end <= one.last for one, end in zip(found, (at, at + runs), strict=False)
        ]
        return ends == [True, True] and [one.ratio < 1 for one in found] == [True, False]

    hits = [is_found(draw.randrange(5, 55 - runs)) for _ in range(trials(BACK))]
    holds(BACK, sum(hits), len(hits), f"{loss:.0%} in {runs} of 60 runs")


@pytest.mark.parametrize(("stays", "apart"), [(0.5, 0.05), (0.7, 0.1), (0.85, 0.05), (0.85, 0.1)])
def test_runs_that_go_to_and_fro_between_two_levels_have_not_changed(stays, apart, holds):
    draw, found = random.Random(f"{stays} {apart}"), []
    for _ in range(trials(MODES)):
        mode = accumulate(range(60), lambda was, _: was if draw.random() < stays else 1 - was)
        found.append(bool(change_points(series(draw, *((1, 1 - apart * (m % 2)) for m in mode)))))
    holds(MODES, sum(found), len(found), f"{apart:.0%} apart, a run as the last one in {stays:.0%}")


@pytest.mark.parametrize("slow", [[7], [7, 8], [7, 21]])
def test_one_slow_run_is_no_change_and_hides_none(slow):
    draw = random.Random(2)
    values = series(draw, (15, 1.0), (15, 0.95))
    for at in slow:
        values[at] = 0.6
    assert [one.at for one in change_points(values)] == [15]


def test_what_is_equal_has_no_change_and_an_exact_step_has_one():
    assert change_points([5.0] * 20) == ()
    (change,) = change_points([5.0] * 10 + [4.0] * 5)
    assert (change.at, change.first, change.last, change.ratio) == (10, 10, 10, 0.8)


TO_AND_FRO = "90990909900900909099090009989988988888999889998989990900009900900000099909909"
"""Rounded figures of runs: 8.1, 9 and 10, each by a digit."""


def test_a_level_that_comes_back_exactly_is_compared_with_itself():
    figures = {"8": 8.1, "9": 9.0, "0": 10.0}
    assert change_points([figures[digit] for digit in TO_AND_FRO]) == ()


def test_many_series_have_to_hold_more_than_one():
    assert holding([0.005], 1) == 0.005
    assert holding([0.005], 10) == 0.0
    assert holding([0.005] * 5 + [0.9], 10) == 0.005
    assert holding([], 3) == 0.0
