"""The range holds what another run finds, about as often as it says, and is not wider."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.recorded import RecordedKind
from linkgauge.model.stats.intervals import estimates

RUNS = 200


def kind(process, furthest=0.9, *, alone=False):
    return RecordedKind(process, furthest, alone)


def drawn(dice, cells, repetitions, samples, between, within, figure=100.0):
    """Runs of equivalent cells: each repetition is off by `between`, each sample of it by
    `within`."""
    return [
        [
            [figure * math.exp(off + dice.gauss(0, within)) for _ in range(samples)]
            for off in (dice.gauss(0, between) for _ in range(repetitions))
        ]
        for _ in range(cells)
    ]


def pairs_held(dice, draw, cells, repetitions):
    """How many figures of a second run lie within the ranges of the first, of how many."""
    held = count = 0
    for _ in range(12 * RUNS // cells // repetitions):
        first, second = draw(dice), draw(dice)
        for cell, found, again in zip(first, estimates(first), second, strict=True):
            low, high = found.interval(figure_of(cell))
            held += low * (1 - 1e-12) <= figure_of(again) <= high * (1 + 1e-12)
            count += 1
    return held, count


def figure_of(cell):
    return statistics.median(sample for repetition in cell for sample in repetition)


@pytest.mark.parametrize(("cells", "repetitions"), [(1, 7), (2, 4), (4, 3), (12, 2)])
@pytest.mark.parametrize(("between", "within"), [(0.01, 0.001), (0.01, 0.01), (0.0, 0.01)])
def test_another_run_falls_within_about_as_often_as_it_says(cells, repetitions, between, within):
    dice = random.Random(f"{cells} {repetitions} {between} {within}")
    held, count = pairs_held(
        dice, lambda dice: drawn(dice, cells, repetitions, 3, between, within), cells, repetitions
    )
    assert 0.92 <= held / count <= 0.985


def test_it_is_no_wider_than_two_runs_differ():
    dice = random.Random(3)
    runs = [drawn(dice, 4, 4, 3, 0.01, 0.001) for _ in range(RUNS)]
    halves = [one.reach for run in runs for one in estimates(run)]
    figures = [math.log(figure_of(cell)) for run in runs for cell in run]
    assert statistics.median(halves) <= 2.5 * math.sqrt(2) * statistics.stdev(figures)


def test_what_only_a_new_process_changes_is_counted():
    """No repetition of a run shows it."""
    dice = random.Random(4)

    def draw(dice):
        off = dice.gauss(0, 0.01)
        return [
            [[one * math.exp(off) for one in repetition] for repetition in cell]
            for cell in drawn(dice, 4, 3, 3, 0.004, 0.001)
        ]

    held = count = 0
    for _ in range(RUNS):
        first, second = draw(dice), draw(dice)
        for cell, found, again in zip(first, estimates(first, kind(0.01)), second, strict=True):
            low, high = found.interval(figure_of(cell))
            held += low <= figure_of(again) <= high
            count += 1
    assert 0.9 <= held / count <= 0.99


def test_earlier_runs_say_what_repetitions_do_not_explain():
    """Whatever is assumed of a new process. Nor does a range claim less than repetitions show."""
    run = drawn(random.Random(5), 4, 3, 3, 0.01, 0.001)
    (usual, *_), (noisy, *_), (quiet, *_) = (
        estimates(run, kind(0.015), runs) for runs in (None, 0.025, 0.0)
    )
    assert quiet.reach < usual.reach < noisy.reach
    assert quiet.reach == pytest.approx(estimates(run)[0].reach)
    assert noisy.reach / quiet.reach == pytest.approx(0.025 / 0.0067, rel=0.5)


@pytest.mark.parametrize("runs", [None, 0.05, 2.0])
def test_a_new_process_changes_little_of_what_repetitions_hardly_change(runs):
    """As of a steady product beside others, whose clock varies, and after runs beside loads."""
    quiet, varied = (drawn(random.Random(6), 4, 3, 3, of, 1e-5) for of in (0.0002, 0.05))
    steady, shared = (estimates(quiet, kind(0.05, alone=of), runs)[0].reach for of in (True, False))
    assert steady < shared < 0.004
    known = [estimates(varied, kind(of), runs)[0].reach for of in (0.04, 0.05)]
    assert (known[0] < known[1]) is (runs is None)
    assert estimates([[[1.0], [1.0]]], kind(0.05, alone=True), runs)[0].reach > 0.0004


def test_few_repetitions_make_no_range_wider_than_healthy_runs_are_apart():
    """Of devices alone: on another host, other users may take more than on those recorded."""
    (run,) = drawn(random.Random(7), 1, 3, 3, 0.05, 0.001)
    alone = kind(0, 0.1, alone=True)
    known, unknown = (estimates([run], of)[0].reach for of in (alone, kind(0, 0.1)))
    assert unknown > 2 * known == pytest.approx(-2 * math.log(0.9))
    (noisy,) = drawn(random.Random(7), 1, 3, 3, 0.2, 0.001)
    assert estimates([noisy], alone)[0].reach > 2 * known


@pytest.mark.parametrize(("cells", "repetitions"), [(2, 4), (4, 3), (12, 2)])
@pytest.mark.parametrize("samples", [1, 2, 3])
@pytest.mark.parametrize("kind", ["normal", "two durations", "stalls"])
def test_few_samples_a_repetition_are_held_as_often(cells, repetitions, samples, kind):
    dice = random.Random(f"{cells} {repetitions} {samples} {kind}")

    def figure(dice):
        if kind == "two durations":
            return 100.0 * (1 + 0.02 * (dice.random() < 0.2) + dice.gauss(0, 2e-4))
        return (
            100.0
            * (0.4 if kind == "stalls" and dice.random() < 0.03 else 1.0)
            * math.exp(dice.gauss(0, 0.01))
        )

    held = count = 0
    for _ in range(12 * RUNS // cells // repetitions):
        run = [
            [[figure(dice) for _ in range(samples)] for _ in range(repetitions)]
            for _ in range(cells)
        ]
        for cell, found in zip(run, estimates(run), strict=True):
            low, high = found.interval(figure_of(cell))
            held += low <= 100.01 and high >= 99.98
            count += 1
    assert held / count >= 0.92


def test_a_sample_that_stalls_makes_no_range_wide():
    steady = [[100.0, 100.1, 99.9, 100.05], [100.02, 99.97, 100.1, 99.95]]
    (one,) = estimates([[*steady, *steady]])
    (stalled,) = estimates([[*steady, [*steady[0][:3], 33.0], steady[1]]])
    assert stalled.reach < 1.5 * one.reach


def test_one_that_scatters_more_than_the_others_has_its_own_variance():
    dice = random.Random(1)
    quiet = drawn(dice, 5, 3, 3, 0.001, 0.0001)
    (noisy,) = drawn(dice, 1, 3, 3, 0.1, 0.0001)
    *others, one = estimates([*quiet, noisy])
    assert (one.pooled, one.degrees) == (1, 2)
    assert {(other.pooled, other.degrees) for other in others} == {(5, 10)}
    assert all(other.reach < 0.005 for other in others)


@pytest.mark.parametrize(
    "peer", [[[3.2, 5.2, 2.2], [4.1, 2.3, 3.5], [3.1, 4.9, 2.5]], [[100.0, 100.1], [100.1, 100.0]]]
)
def test_repetitions_of_one_sample_do_not_show_that_samples_do_not_scatter(peer):
    """That their scatter is unknown does not make it 0."""
    one, _ = estimates([[[3.38], [3.89], [2.65]], peer])
    low, high = one.interval(3.38)
    assert low < 3.0
    assert high > 3.8


@given(cells=st.lists(st.lists(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=3),
                               min_size=2, max_size=5), min_size=1, max_size=5))  # fmt: skip
def test_each_holds_its_figure_and_none_of_one_cell_claims_less_than_it_shows(cells):
    for repetitions, one in zip(cells, estimates(cells), strict=True):
        if ends := one.interval(figure_of(repetitions)):  # else these would be tenfold apart
            low, high = ends
            assert high / 10 <= low <= figure_of(repetitions) <= high
        (alone,) = estimates([repetitions])
        if alone is None:
            continue
        medians = [math.log(statistics.median(repetition)) for repetition in repetitions]
        spread = statistics.fmean(abs(each - statistics.fmean(medians)) for each in medians)
        assert alone.reach >= spread / math.sqrt(len(medians)) * (1 - 1e-6)


def test_a_single_repetition_borrows_what_alike_cells_know():
    dice = random.Random(2)
    known = drawn(dice, 4, 3, 3, 0.01, 0.001)
    *_, one = estimates([*known, [[100.0, 100.1]]])
    assert (one.pooled, one.degrees) == (4, 8)
    assert one.reach > estimates(known)[0].reach


@pytest.mark.parametrize("cells", [[], [[]], [[[1.0, 2.0]]], [[[1.0], [0.0]]]])
def test_nothing_is_claimed_where_no_variance_is_known(cells):
    assert [each for each in estimates(cells) if each is not None] == []


def test_a_range_whose_ends_are_tenfold_apart_is_none():
    """As of a flag between threads that take turns on one CPU: either 300 ns or a time slice."""
    turns = [[[3e-7], [3e-7], [1.1e-4]], [[3.3e-7], [1.1e-4], [3e-7]], [[3e-7], [1.2e-4], [1e-4]]]
    wide = [*estimates(turns), *estimates([[[1.0], [2.0], [0.5]]])]
    assert [one.interval(1.0) for one in wide] == [None] * 4
    known = estimates([[[1.0], [1.1], [0.9]], [[1.0], [0.95], [1.02]]])
    assert all(one.interval(1.0) for one in known)
