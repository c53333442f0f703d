"""Unlikeness of variances by products of different runs: against the definition, and what it must
not see."""

import math
import random
from itertools import permutations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.cross_runs import added, gram, square, square_of
from linkgauge.model.run_spread import spreads, varied

FIGURES = st.floats(-1, 1).map(lambda x: round(x, 3))
SETS = st.lists(st.lists(FIGURES, min_size=2, max_size=5), min_size=1, max_size=3)


def centred(sets):
    return [[x - fmean(own) for x in own] for own in sets]


def by_definition(first, second):
    """The mean over all disjoint pairs of runs, of which each pair is of one set."""
    runs = [(at, n) for at, own in enumerate(first) for n in range(len(own))]
    products = [
        (first[a][i] - first[a][j]) ** 2 / 2 * (second[b][k] - second[b][m]) ** 2 / 2
        for (a, i), (a2, j), (b, k), (b2, m) in permutations(runs, 4)
        if (a, b) == (a2, b2)
    ]
    return fmean(products) if products else None


@given(SETS)
def test_the_square_of_a_variance_is_the_mean_product_of_disjoint_pairs(sets):
    expected = by_definition(sets, sets)
    found = square_of(centred(sets))
    if expected is None:
        assert found is None
    else:
        assert found == pytest.approx(expected, abs=1e-9)
        assert square(gram([centred(sets)])) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.tuples(*[FIGURES] * 7), min_size=2, max_size=3))
def test_of_several_cells_it_is_that_of_the_sum_of_their_variances(rows):
    cells = [(row[:4], row[4:]) for row in rows]
    expected = sum(by_definition(one, other) for one in cells for other in cells)
    each = [centred(cell) for cell in cells]
    assert square(gram(each)) == pytest.approx(expected, abs=1e-9)
    assert square(added(gram([one]) for one in each)) == pytest.approx(expected, abs=1e-9)


@given(SETS, st.floats(0.01, 100), st.randoms(use_true_random=False))
def test_neither_the_order_of_runs_nor_the_unit_matters(sets, scale, generator):
    shuffled = [generator.sample(own, len(own)) for own in sets]
    one, other = square_of(centred(sets)), square_of(centred(shuffled))
    larger = square_of(centred([[scale * x for x in own] for own in sets]))
    assert (one is None) == (other is None) == (larger is None)
    if one is not None:
        assert other == pytest.approx(one, abs=1e-9)
        assert larger == pytest.approx(one * scale**4, rel=1e-6, abs=1e-9 * scale**4)


def test_two_runs_of_each_of_two_sets_suffice_and_three_of_one_do_not():
    assert square_of([[1.0, -1.0], [0.5, -0.5]]) == pytest.approx(2.0 * 0.5)
    assert square_of([[1.0, 0.0, -1.0]]) is None


def test_one_run_that_is_far_off_is_no_variance_by_different_runs():
    """Its own square would be; the others lie at 0."""
    assert square_of(centred([[10.0, 0.0, 0.0, 0.0, 0.0]])) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("heavy", [False, True])
def test_on_average_it_is_right_whatever_the_distribution(heavy):
    generator = random.Random(7)

    def noise():
        if heavy:  # variance 1, one in 25 is five deviations off
            return generator.choice((5, -5)) if generator.random() < 0.04 else 0.0
        return generator.gauss(0, 1)

    found = [square_of(centred([[noise() for _ in range(5)], [noise() for _ in range(3)]]))
             for _ in range(4000)]  # fmt: skip
    assert fmean(found) == pytest.approx(1.0, abs=0.25)


def cells(generator, scales, runs=(5, 3), alike=4, rare=0.0):
    """Kinds of so many cells; a `rare` run is far off."""

    def one():
        return generator.gauss(0, 1) * (6 if generator.random() < rare else 1)

    return [
        varied(at // alike, [{100 * of + n: scale * one() for n in range(count)}
                             for of, count in enumerate(runs)])
        for at, scale in enumerate(scales)
    ]  # fmt: skip


def lent(found):
    """Degrees of freedom that peers lend, in the middle."""
    return sorted(one.degrees - one.alone.degrees for one in found)[len(found) // 2]


def test_cells_that_vary_alike_lend_each_other_many_degrees_even_if_runs_are_far_off():
    generator = random.Random(1)
    plain = [lent(spreads(cells(generator, [0.01] * 100))) for _ in range(10)]
    rare = [lent(spreads(cells(generator, [0.01] * 100, rare=0.04))) for _ in range(10)]
    assert sorted(plain)[3] > 30
    assert sorted(rare)[5] > 15


def test_cells_that_vary_unlike_each_other_lend_few():
    generator = random.Random(2)
    scales = [0.01 * math.exp(generator.gauss(0, 0.7)) for _ in range(100)]
    assert all(lent(spreads(cells(generator, scales))) < 8 for _ in range(5))


def test_kinds_that_vary_unlike_each_other_lend_few_to_others_than_their_own():
    generator = random.Random(3)
    found = spreads(cells(generator, [0.01] * 40 + [0.1] * 40))
    assert all(one.deviation < 0.03 for one in found[:40])
    assert all(one.deviation > 0.04 for one in found[40:])


def test_a_cell_that_varies_much_more_than_all_others_is_judged_by_its_own_runs_mostly():
    generator = random.Random(4)
    scales = [0.01] * 99 + [0.08]
    found = spreads(cells(generator, scales))
    assert found[-1].deviation > 0.04
    assert found[-1].degrees < 12
    assert all(one.doubted >= 0.02 for one in found[:99])
    assert all(one.deviation < 0.03 for one in found[:99])
