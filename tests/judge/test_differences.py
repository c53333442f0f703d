"""What settings change is told from their rounds, better or worse by the unit."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fakes import machine
from linkgauge.judge.differences import ALL, InRound, can_compare, compare
from linkgauge.model.machine import Node
from linkgauge.model.result import Run
from linkgauge.model.settings import Settings
from report.samples import cell, result, unmeasured
from vary_kit import NODES, compared, variant

ROUNDS = 10


def run(*results, cpus=2):
    here = machine()
    nodes = (Node(0, tuple(range(cpus))),)
    here = replace(here, host=replace(here.host, nodes=nodes))
    return Run(
        id="1", label="x", command=(), started="s", finished="f", machine=here,
        settings=Settings((1,)), results=results,
    )  # fmt: skip


def threads(counts, figure=10, **more):
    """A sweep over numbers of threads."""
    cells = [
        replace(cell("0", str(count), [f"host:0 -> host:0 by cpu*{count}"], figure * count), **more)
        for count in counts
    ]
    return replace(result("sweep", "Sweep", "pass", cells, backend="host"), sweep=True)


def single(figure, **more):
    return replace(result("x", "x", "pass", [cell("0", "0", ["x:0 -> x:0 by ce"], figure)]), **more)


def rounds(*settings):
    """So many rounds of runs, each setting with the same run always."""
    return [InRound(n, s, one) for n in range(ROUNDS) for s, one in enumerate(settings)]


def told(*settings):
    return {
        (one.row, one.column): [each.direction for each in one.settings]
        for one in compare(rounds(*settings), len(settings), 0.01)
    }


@pytest.mark.parametrize(
    ("settings", "directions"),
    [
        ([single(figure) for figure in (10, 11, 9, 10)], ["unknown", "better", "worse", "same"]),
        ([single(figure, unit="s", better="lower") for figure in (10, 9)], ["unknown", "better"]),
    ],
)
def test_the_direction_is_that_of_the_unit(settings, directions):
    assert told(*map(run, settings)) == {("0", "0"): directions}


SAME = ["unknown", "same"]


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (run(threads([1, 2])), run(threads([1]), cpus=1),
         {("0", "1"): SAME, ("0", ALL): ["unknown", "worse"]}),
        (run(threads([1, 2])), run(threads([1, 2])), {("0", "1"): SAME, ("0", "2"): SAME}),
        (run(threads([1, 2, 4]), cpus=4), run(threads([1, 2])),
         {("0", "1"): SAME, ("0", "2"): SAME, ("0", ALL): ["unknown", "worse"]}),
    ],
)  # fmt: skip
def test_all_threads_are_compared_where_their_number_differs(first, second, found):
    assert told(first, second) == found


def changed(pairs, alpha=0.01):
    """The change of a cell that had these figures with two settings."""
    runs = [InRound(n, s, run(single(figure))) for n, own in enumerate(pairs)
            for s, figure in enumerate(own)]  # fmt: skip
    (found,) = compare(runs, 2, alpha)
    return found.settings[1].change


def p_by_counting(logs):
    """By trying all signs: how many have as few of one sign's ranks as these."""
    ranks = {abs(x): rank for rank, x in enumerate(sorted(logs, key=abs), start=1)}
    seen = sum(rank for x, rank in ranks.items() if x in logs)
    seen = min(seen, sum(ranks.values()) - seen)
    sums = [sum(chosen) for n in range(len(logs) + 1)
            for chosen in itertools.combinations(ranks.values(), n)]  # fmt: skip
    return min(1.0, 2 * sum(one <= seen for one in sums) / len(sums))


@pytest.mark.parametrize(
    "logs",
    [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [-1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [-1, -2, -3, 5], [0.5],
     [1, -2, 4, -8, 16, 32, 64, 128]],
)  # fmt: skip
def test_the_probability_is_that_of_all_signs_of_the_differences_in_rounds(logs):
    """So that of two alike settings at most one in a hundred is called different."""
    found = changed([(1.0, math.exp(x)) for x in logs])
    assert found.p == pytest.approx(p_by_counting(logs))
    drifting = changed([(3.0**n, 3.0**n * math.exp(x)) for n, x in enumerate(logs)])
    assert (drifting.ratio, drifting.p) == (pytest.approx(found.ratio), found.p)


@pytest.mark.parametrize(("alpha", "least"), [(0.01, 8), (0.05, 6), (0.2, 4)])
def test_the_fewest_rounds_are_those_that_can_prove_anything(alpha, least):
    agreed = [(1.0, 2.0)] * least
    found = changed(agreed, alpha)
    assert (found.is_proven, found.low, found.high) == (True, pytest.approx(2), pytest.approx(2))
    assert changed(agreed[1:], alpha).low is None
    assert not changed([(3.0, 3.0)] * least, alpha).is_proven


@given(st.lists(st.tuples(st.floats(1e-6, 1e12), st.floats(1e-6, 1e12)), min_size=1, max_size=12))
def test_turned_round_a_change_is_its_inverse(pairs):
    there, back = changed(pairs), changed([(y, x) for x, y in pairs])
    assert (back.ratio, back.p) == (pytest.approx(1 / there.ratio), there.p)
    assert there.is_proven == (there.low is not None and there.p <= 0.01)
    assert there.low is None or there.low <= there.ratio <= there.high


class TestMissingFigures:
    def test_have_the_reason(self):
        broken = unmeasured("0", "0", ["x:0 -> x:0 by ce"], "skip", "no pool", "unsupported")
        without = result("x", "x", "skip", [broken])
        (found,) = compare(rounds(run(single(10)), run(without)), 2, 0.01)
        assert [one.reason for one in found.settings] == [None, "skip: no pool"]
        assert [one.median is None for one in found.settings] == [False, True]
        assert found.settings[1].change is None

    def test_of_cells_that_a_setting_does_not_have(self):
        two = result("x", "x", "pass", [cell("0", str(n), ["x:0 -> x:0 by ce"], 9) for n in (0, 1)])
        found = compare(rounds(run(two), run(single(9))), 2, 0.01)
        assert [one.settings[1].reason for one in found] == [None, "no such cell"]


GOOD = run(single(10))


def of(status):
    broken = unmeasured("0", "0", ["x:0 -> x:0 by ce"], status, "why", "unsupported")
    return run(result("x", "x", status, [broken]))


@pytest.mark.parametrize(
    ("settings", "useful"),
    [
        ([GOOD, GOOD], True), ([GOOD, of("skip")], False), ([GOOD, of("skip"), GOOD], True),
        ([GOOD, of("error")], True), ([GOOD, of("timeout")], True),
        ([of("skip"), GOOD, GOOD], False), ([GOOD, run(threads([1]))], False),
    ],
)  # fmt: skip
def test_further_rounds_are_of_use_while_the_baseline_has_a_cell_in_common(settings, useful):
    """What was skipped once is skipped always; what failed may succeed the next time."""
    runs = rounds(*settings)[: len(settings)]
    assert can_compare(runs, len(settings)) is useful


@pytest.fixture(scope="module")
def campaign():
    """A placement, the same once more, and half of its CPUs: 20 nodes, measured with noise between
    samples, buffers and moments."""
    half = [2 * node for node in range(NODES)]
    found = compared(variant("all"), variant("again"), variant("half", cpus=half))
    assert len(found) == 2 * NODES
    return [one for one in found if one.column == ALL]


class TestNoisyComparisons:
    """`bench/vary_differences.py` does the same on real machines."""

    def test_of_the_same_placement_call_at_most_one_different(self, campaign):
        same = [one.settings[1].direction for one in campaign]
        assert len(same) == NODES
        assert sum(one != "same" for one in same) <= 1

    def test_of_half_the_cpus_call_all_worse(self, campaign):
        assert [one.settings[2].direction for one in campaign] == ["worse"] * NODES
