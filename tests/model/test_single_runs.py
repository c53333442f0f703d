"""Single runs: what their intervals tell of other runs, and what they do not."""

import math
import random

import pytest

from linkgauge.model.run_changes import Aim, Side, compare_sides, needed
from linkgauge.model.run_spread import Spread
from linkgauge.model.single_runs import Moved, Single, doubted, stretches

QUIET, NOISY = Spread(1e-6, 70.0), Spread(4e-4, 13.0)


def kind(quiet, noisy):
    return doubted([*[Single("k", QUIET)] * quiet, *[Single("k", NOISY)] * noisy])


def test_where_all_cells_are_alike_nothing_is_doubted():
    assert kind(8, 0) == [QUIET] * 8
    slightly = doubted([Single("k", QUIET), Single("k", Spread(4e-6, 70.0)), None])
    assert [one and one.doubted for one in slightly] == [0.0, 0.0, None]


def test_a_quiet_cell_among_noisy_ones_may_be_one_of_them():
    found = kind(42, 14)
    assert found[-1] == NOISY
    assert (found[0].variance, found[0].alone.variance) == (QUIET.variance, NOISY.variance)
    assert found[0].doubted == pytest.approx(0.25 * 14 / 56)
    assert doubted([Single("k", QUIET), Single("other", NOISY)]) == [QUIET, NOISY]


def compared(loss, quiet, noisy):
    first, second = kind(quiet, 0)[0], kind(quiet, noisy)[0]
    sides = Side((0.0,), first), Side((math.log(1 - loss),), second)
    return compare_sides(*sides, None, 0)


def test_a_difference_that_noisy_fellows_show_as_well_proves_nothing_and_a_larger_one_does():
    assert compared(0.03, 56, 0).p < 1e-20
    assert compared(0.03, 42, 14).p * 56 > 0.01
    assert compared(0.15, 42, 14).p * 56 < 0.01


def test_what_would_be_found_knows_of_the_doubt():
    aim = Aim(least=1e-9)
    sure = needed(compared(0.0, 56, 0), (1, 1), aim, 56, "higher").detectable
    doubtful = needed(compared(0.0, 42, 14), (1, 1), aim, 56, "higher").detectable
    assert sure < 0.02 < doubtful
    assert compared(doubtful, 42, 14).p * 56 < 0.01


def moved(scale, *, shifts=()):
    generator = random.Random(5)
    found = [(n // 4, scale * generator.gauss(0, 1)) for n in range(40)]
    return [Moved(of, "all", value + dict(shifts).get(of, 0.0)) for of, value in found]


def test_errors_are_scaled_by_how_far_cells_moved_that_should_not():
    assert stretches(moved(5.0)) == [pytest.approx(5.0, rel=0.4)] * 40
    assert stretches(moved(1.0)) == [pytest.approx(1.0, rel=0.2)] * 40
    assert stretches(moved(0.3)) == [pytest.approx(0.4, abs=0.05)] * 40


def test_a_cell_does_not_widen_its_own_error():
    lost = [Moved(0, "all", 20.0), *moved(0.3)[1:]]
    assert stretches(lost)[0] < 0.5
    assert max(stretches(lost)) <= 1.0


def test_a_family_is_not_judged_by_another_one():
    other = [Moved("other", "other", cell.errors) for cell in moved(1.0)]
    found = stretches([*moved(0.2), *other])
    assert max(found[:40]) < 0.5 < 0.8 < min(found[40:])


def test_neither_a_few_cells_that_lost_nor_a_kind_that_lost_alike_stretch_them():
    usual = max(stretches(moved(1.0)))
    shifted = moved(1.0, shifts=dict.fromkeys(range(10), -100.0).items())
    assert max(stretches(shifted)) < 1.3 * usual
    lost = [Moved(one.kind, "all", one.errors - 100.0 * (n < 6))
            for n, one in enumerate(moved(1.0))]  # fmt: skip
    assert max(stretches(lost)) < 2 * usual


def test_of_few_cells_nothing_can_be_said():
    few = [Moved("a", "all", 0.0), Moved("a", "all", 50.0), Moved("b", "all", 100.0)]
    assert stretches(few) == [1.0] * 3
    assert stretches([Moved("a", "all", 0.0)] * 12) == [1.0] * 12
