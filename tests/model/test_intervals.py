"""The interval holds what another run finds, about as often as it says, and is not wider."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.intervals import difference, estimates, student

RUNS = 400


def drawn(dice, cells, visits, samples, between, within, figure=100.0):
    """Runs of alike cells: each visit is off by `between`, each sample of it by `within`."""
    return [
        [
            [figure * math.exp(off + dice.gauss(0, within)) for _ in range(samples)]
            for off in (dice.gauss(0, between) for _ in range(visits))
        ]
        for _ in range(cells)
    ]


@pytest.mark.parametrize(("cells", "visits"), [(1, 7), (2, 4), (4, 3), (12, 2)])
@pytest.mark.parametrize(("between", "within"), [(0.01, 0.001), (0.01, 0.01), (0.0, 0.01)])
def test_another_run_falls_within_about_as_often_as_it_says(cells, visits, between, within):
    dice = random.Random(f"{cells} {visits} {between} {within}")
    covered, halves, figures = 0, [], []
    for _ in range(12 * RUNS // cells // visits):
        for found in estimates(drawn(dice, cells, visits, 3, between, within)):
            low, high = found.interval()
            covered += low <= 100.0 <= high
            halves.append(math.log(high / low) / 2)
            figures.append(found.log)
    assert 0.92 <= covered / len(figures) <= 0.98
    assert statistics.median(halves) <= 2.6 * statistics.stdev(figures)


def test_one_that_scatters_more_than_the_others_has_its_own_variance():
    dice = random.Random(1)
    quiet = drawn(dice, 5, 3, 3, 0.001, 0.0001)
    (noisy,) = drawn(dice, 1, 3, 3, 0.1, 0.0001)
    *others, one = estimates([*quiet, noisy])
    assert (one.alike, one.degrees) == (1, 2)
    assert {(other.alike, other.degrees) for other in others} == {(5, 10)}
    assert math.sqrt(others[0].variance) < 0.002


def test_a_single_visit_borrows_what_alike_cells_know():
    dice = random.Random(2)
    known = drawn(dice, 4, 3, 3, 0.01, 0.001)
    *_, one = estimates([*known, [[100.0, 100.1]]])
    assert (one.alike, one.degrees) == (4, 8)
    assert one.variance > estimates(known)[0].variance


@pytest.mark.parametrize("cells", [[], [[]], [[[1.0, 2.0]]], [[[1.0], [0.0]]]])
def test_nothing_is_claimed_where_no_variance_is_known(cells):
    assert [each for each in estimates(cells) if each is not None] == []


@given(st.lists(st.lists(st.floats(1e-9, 1e15), min_size=1, max_size=5), min_size=2, max_size=6),
       st.floats(1e-3, 1e3))  # fmt: skip
def test_it_is_relative_and_holds_its_figure(visits, factor):
    (one,) = estimates([visits])
    (scaled,) = estimates([[[sample * factor for sample in visit] for visit in visits]])
    assert scaled.variance == pytest.approx(one.variance, rel=1e-4, abs=1e-12)
    low, high = one.interval()
    figure = statistics.median(sample for visit in visits for sample in visit)
    assert low <= figure * (1 + 1e-6)
    assert high >= figure * (1 - 1e-6) or high == math.inf


@pytest.mark.parametrize(
    ("degrees", "value"),
    [(1, 12.706), (4, 2.776), (10, 2.228), (15, 2.131), (40, 2.021), (1000, 1.962)],
)
def test_students_t_is_that_of_the_published_tables(degrees, value):
    assert student(degrees) == pytest.approx(value, abs=6e-4)


def test_a_difference_is_proven_where_there_is_one_and_seldom_where_there_is_none():
    dice = random.Random(3)
    alarms = found = 0
    for _ in range(RUNS):
        (first,) = drawn(dice, 1, 6, 3, 0.01, 0.003)
        (same,) = drawn(dice, 1, 6, 3, 0.01, 0.003)
        (slower,) = drawn(dice, 1, 6, 3, 0.01, 0.003, figure=95.0)
        alarms += difference(first, same).is_proven
        found += difference(first, slower).is_proven
    assert alarms / RUNS <= 0.08
    assert found / RUNS >= 0.95


def test_no_difference_is_told_of_too_few_visits():
    assert difference([[1.0]], [[1.0], [1.1]]) is None
