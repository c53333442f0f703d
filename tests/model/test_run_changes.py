"""Differences between sets of runs: exact small cases, Holm's p, and how many runs it takes."""

import math
import random
from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.stats.changes import (
    Aim,
    Side,
    SideTest,
    compare_sides,
    holm,
    log_of_loss,
    loss,
    loss_of_log,
    needed,
    within,
)
from linkgauge.model.stats.moments import Spread
from linkgauge.model.stats.spread import CellLogs, doubted, spreads


def side(*figures, of=None):
    return Side(tuple(map(math.log, figures)), of)


def spread_of(*sets):
    return spreads(
        [CellLogs("kind", [dict(enumerate(own, 10 * at)) for at, own in enumerate(sets)])]
    )[0]


def test_one_cell_alone_has_students_t_with_its_pooled_variance():
    a, b = [math.log(x) for x in (100, 102, 101)], [math.log(x) for x in (95, 96)]
    own = spread_of(a, b)
    assert own.degrees == 3
    one = compare_sides(Side(tuple(a)), Side(tuple(b)), own)
    # scipy.stats.ttest_ind of the logarithms
    assert math.log(one.ratio) / one.error == pytest.approx(-6.705008460795227)
    assert one.p == pytest.approx(0.0067688, rel=1e-4)
    assert one.basis == "runs"


@pytest.mark.parametrize(
    ("t", "degrees", "p"),
    [
        (12.706, 1, 0.05), (4.303, 2, 0.05), (2.228, 10, 0.05), (2.750, 30, 0.01),
        (6.869, 5, 0.001), (1.980, 120, 0.05), (1.960, math.inf, 0.05), (0, 5, 1),
        # Far tails keep their digits; by scipy 1.16, and Cauchy's.
        (20, 30, 6.7490836658e-19), (8, 500, 8.7296627939e-15), (9, 4.5, 4.8115294713e-4),
        (1e3, 1, 2 / (math.pi * 1e3)),
    ],
)  # fmt: skip
def test_the_probability_is_students(t, degrees, p):
    spread = Spread(0.5 * 1e-4, degrees)  # of the difference of two runs: a variance of 1e-4
    one = compare_sides(Side((0.0,)), Side((t * 1e-2,)), spread)
    assert one.p == pytest.approx(p, rel=1e-3 if t < 8 or t == 12.706 else 1e-6)


def test_alike_cells_lend_degrees_of_freedom_and_unlike_ones_fewer():
    def cells(*scales):
        shape = (-1.2, 0.3, 1.1, -0.4, 0.2)
        return [
            CellLogs("kind", [{run: scale * shape[(run + at) % 5] for run in range(5)}])
            for at, scale in enumerate(scales)
        ]

    equivalent = spreads(cells(*[0.01] * 12))
    unlike = spreads(cells(*[0.001 * 2**n for n in range(12)]))
    assert equivalent[0].degrees > 25
    assert unlike[0].degrees < 8
    assert unlike[11].deviation > 50 * unlike[0].deviation
    assert spreads(cells(0.0005, *[0.05] * 30))[0].deviation < 0.001


def test_few_runs_that_agree_by_chance_do_not_make_one_of_many_cells_quiet():
    """Of 300 cells, runs of one agree so well in one of ten comparisons."""
    shape = (-1.2, 0.3, 1.1, -0.4, 0.2)
    scales = [0.0013, *[0.01] * 299]
    found = spreads(
        [
            CellLogs(f"kind {at // 4}", [{run: scale * shape[(run + at) % 5] for run in range(5)}])
            for at, scale in enumerate(scales)
        ]
    )
    assert found[0].deviation > 0.5 * found[8].deviation


def test_figures_that_are_off_together_lend_little():
    together = dict(enumerate((0.012, -0.009, 0.004, -0.007)))
    generator = random.Random(1)
    apart = [dict(enumerate(generator.gauss(0, 0.01) for _ in range(4))) for _ in range(30)]
    shared = spreads([CellLogs("kind", [together])] * 30)
    assert shared[0].degrees < 3 + 3 + 1e-6
    assert spreads([CellLogs("kind", [one]) for one in apart])[0].degrees > 8


def test_a_cell_without_several_runs_takes_what_its_peers_show():
    known = CellLogs("kind", [{0: 0.01, 1: -0.01}])
    found = spreads([known, known, CellLogs("kind"), CellLogs("other")])
    assert found[2].deviation == pytest.approx(0.014, rel=0.5)
    assert found[3] is None
    third = CellLogs("third", [{0: 0.02, 1: -0.02}])
    assert spreads([known, known, third, CellLogs("other")])[3].deviation > 0.01
    assert spreads([CellLogs("kind")]) == [None]


def test_a_quiet_cell_may_be_one_of_the_much_noisier_cells_of_its_kind():
    generator = random.Random(2)
    own = [Spread(math.exp(generator.gauss(0, 2)), generator.randint(2, 30)) for _ in range(40)]
    cells = [*(("kind", one) for one in own), ("kind", None), ("other", own[0])]
    found = doubted(cells)
    assert found[-2:] == [None, own[0]]
    for one, of in zip(own, found, strict=False):
        noisier = [each for each in own if each.variance > 9 * one.variance]
        assert of.doubted == pytest.approx(len(noisier) / 160)
        if noisier:
            assert of.alone.variance == fmean(each.variance for each in noisier)
            assert of.alone.degrees == median(each.degrees for each in noisier)


def test_single_runs_are_compared_by_their_intervals_as_far_as_these_were_shown_to_hold():
    sure, doubtful = within(99.0, 101.0, 0.95, 20), within(99.0, 101.0, 0.71, 20)
    assert doubtful.deviation > 1.7 * sure.deviation
    one = compare_sides(side(100.0, of=sure), side(94.0, of=sure), None)
    assert (one.basis, one.p < 0.01) == ("within", True)
    other = compare_sides(side(100.0, of=doubtful), side(94.0, of=doubtful), None)
    assert other.p > one.p
    assert compare_sides(side(100.0), side(94.0), None) is None


def test_what_ranges_say_is_never_less_because_alike_cells_are_quiet():
    quiet, noisy = Spread(1e-8, 50.0), within(90.0, 110.0, 0.95, 6)
    found = compare_sides(side(100.0, of=noisy), side(97.0, of=noisy), quiet)
    alone = compare_sides(side(100.0, of=noisy), side(97.0, of=noisy), None)
    assert (found.error, found.degrees) == (alone.error, alone.degrees)
    varies = Spread(1e-4, 50.0)
    steady = within(99.99, 100.01, 0.95, 6)
    found = compare_sides(side(100.0, of=steady), side(97.0, of=steady), varies)
    assert found.error == pytest.approx(math.sqrt(2e-4))


def test_a_few_runs_add_to_what_ranges_say_and_do_not_replace_it():
    """Two runs alone, with one degree of freedom, find nothing."""
    steady = within(99.9, 100.1, 0.95, 20)
    own = Spread(2e-7, 1.0)
    spread = Spread(1e-7, 3.0, own)
    found = compare_sides(side(100.0, 100.05, of=steady), side(95.0, of=steady), spread)
    assert found.degrees > 20
    assert found.p < 1e-8


def test_holms_p_is_that_of_the_paper():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.floats(0.001, 0.9), st.sampled_from(["higher", "lower"]))
def test_a_loss_goes_to_its_logarithm_and_back(fraction, better):
    log = log_of_loss(fraction, better)
    ratio = math.exp(-log if better == "higher" else log)
    assert loss(ratio, better) == pytest.approx(fraction)
    assert loss_of_log(log, better) == pytest.approx(fraction)


def test_what_is_missing_is_said_of_the_second_side_or_if_that_does_not_suffice_of_both():
    aim = Aim(least=0.01, detect=0.02)

    def lacking(deviation, before, after):
        error = deviation * math.sqrt(1 / before + 1 / after)
        sides = Side((0.0,) * before), Side((0.0,) * after)
        one = SideTest(1.0, 1.0, 1.0, 1.0, 1.0, "runs", deviation, 500.0, sides=sides, error=error)
        return needed(one, aim, 100, "higher")

    assert lacking(0.001, 5, 3).more == (0, 0)
    assert lacking(0.006, 5, 1).more[0] == 0 < lacking(0.006, 5, 1).more[1]
    more = lacking(0.01, 5, 3).more
    assert 5 + more[0] == 3 + more[1] > 12
    assert lacking(0.2, 5, 3).more is None
    assert lacking(0.01, 5, 3).detectable > 0.03
