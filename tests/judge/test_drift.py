"""A level that changes over the time of a run is found, noise is not."""

import random

import pytest

from linkgauge.judge.drift import drifts
from linkgauge.model.soak import SLICES, CellCourse, CellName, Soak, Soaking


def course(means, name="0", better="higher"):
    return CellCourse(
        CellName("b", "cuda", 64, "0", name), "B/s", better, visits=9, samples=9, checked=9,
        struck=0, median=100.0, slow_p95=None, slow_p99=None, slow_p999=None, worst=None,
        means=tuple(means),
    )  # fmt: skip


def soak(*cells):
    return Soak(
        asked=Soaking(480.0), lasted=480.0, rounds=9, visits=9, checked=9, compared=9,
        stopped="time", reason=None, slice=10.0, cells=cells,
    )  # fmt: skip


def noisy(seed, level=lambda at: 100.0, sigma=0.003):
    draw = random.Random(seed)
    return [level(at) * (1 + draw.gauss(0, sigma)) for at in range(SLICES)]


def step(to):
    return lambda at: to if at >= 24 else 100.0


@pytest.mark.parametrize(
    ("means", "better", "at", "ratio"),
    [
        (noisy(1, step(95.0)), "higher", 240.0, 0.95),
        (noisy(2, lambda at: 100.0 - 0.2 * at), "higher", None, None),
        (noisy(3, step(110.0)), "lower", 240.0, 1.1),
        # Parts without a visit are passed over.
        ([None if n % 4 else one for n, one in enumerate(noisy(5, step(80.0)))], "higher", 240.0,
         0.8),
    ],
    ids=["step", "slow fall", "longer times", "few visits"],
)  # fmt: skip
def test_a_level_that_changes_is_found_with_its_moment(means, better, at, ratio):
    (one,) = drifts(soak(course(means, better=better)))
    assert one.direction == "worse"
    if at:
        assert (one.at, one.ratio) == (at, pytest.approx(ratio, abs=0.005))


def test_noise_and_small_changes_are_none():
    cells = [course(noisy(seed), str(seed)) for seed in range(10, 60)]
    small = course(noisy(4, lambda at: 99.5 if at >= 24 else 100.0, 0.0005), "small")
    assert drifts(soak(*cells, small)) == ()


def test_the_worst_comes_first():
    steps = {"better": 1.2, "worse": 0.9, "worst": 0.5}
    cells = [
        course(noisy(6, lambda at, to=to: 100.0 * (to if at >= 24 else 1.0)), name)
        for name, to in steps.items()
    ]
    assert [one.cell.cell.column for one in drifts(soak(*cells))] == ["worst", "worse", "better"]
