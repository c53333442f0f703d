"""Sustained rates: each copy's while all run, whatever the loops and whoever goes on alone."""

import itertools
import random

import pytest

from linkgauge.backends.protocol import MOST_LAPS
from linkgauge.engine.sustained import marks_of, sustained


def laps(start, *seconds):
    return tuple(itertools.accumulate(seconds, initial=start))


def steady(rate, amount, count, start=0.0):
    """Progress of `count` laps of `amount` each."""
    return laps(start, *[amount / rate] * count)


@pytest.mark.parametrize("seed", range(20))
def test_copies_of_constant_rates_have_those(seed):
    draw = random.Random(seed)
    rates = [draw.uniform(50, 400) for _ in range(draw.randint(1, 7))]
    count = draw.choice([4, 16, 64])
    progress = [steady(rate, 8, count, draw.uniform(0, 0.01)) for rate in rates]
    found = sustained(progress, [8 * count] * len(rates))
    assert found == pytest.approx(rates, rel=1e-9)


@pytest.mark.parametrize("count", [8, 16, 64])
def test_how_fast_the_last_one_goes_on_alone_does_not_matter(count):
    """Two share 400: the slower has 100 until the faster is done, then 400."""
    fast = steady(300, 1, count)
    end, slow = fast[-1], [0.0]
    for done in range(1, count + 1):
        together = done / 100
        slow.append(together if together <= end else end + (done - end * 100) / 400)
    assert sum(sustained([fast, slow], [count] * 2)) == pytest.approx(400, rel=0.01)


def test_a_start_that_lags_behind_and_what_runs_before_it_do_not_count():
    early = laps(0.0, 0.1, 0.1, 1.0, 1.0, 1.0)  # alone at first
    late = laps(0.2, 1.0, 1.0, 1.0)
    assert sustained([early, late], [5, 3]) == pytest.approx((1, 1))


def test_of_a_copy_without_a_whole_lap_the_part_that_overlaps_counts():
    short, long = laps(0.0, 1.0, 1.0), laps(0.0, 10.0, 10.0)
    assert sustained([short, long], [2, 2]) == pytest.approx((1, 0.1))
    # Start and end alone are enough.
    assert sustained([(0.0, 2.0), (0.0, 4.0)], [4, 2]) == pytest.approx((2, 0.5))


def test_a_copy_that_stands_still_while_others_run_does_not_run_with_them():
    assert sustained([laps(0.0, 1.0, 1.0, 1.0), laps(0.0, 4.0, 1.0, 1.0)], [3, 3]) is None


@pytest.mark.parametrize(
    "progress",
    [
        [(0.0, 1.0), (1.0, 2.0)],  # one after the other
        [(0.0, 1.0), (0.95, 1.95)],  # but for a twentieth
        [(0.0, 1.0), (0.5, 1.5), (1.2, 2.2)],  # never all three
        [],
    ],
)
def test_copies_that_never_all_run_together_have_none(progress):
    assert sustained(progress, [1] * len(progress)) is None


class TestMarks:
    @pytest.mark.parametrize(
        ("loops", "marks"),
        [(1, 1), (2, 2), (16, 16), (17, 17), (64, 64), (66, 33), (128, 64), (67, 1)],
    )
    def test_divide_the_loops(self, loops, marks):
        assert marks_of(loops) == marks
        assert loops % marks == 0
        assert marks <= MOST_LAPS
