"""What runs show of how much cells vary, and what cells that vary alike lend each other."""

import math
import random

from linkgauge.model.run_spread import spreads, varied


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
