"""What settings change is told from their rounds, better or worse by the unit."""

import pytest
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


class TestDirections:
    def test_of_a_bandwidth(self):
        found = told(run(single(10)), run(single(11)), run(single(9)), run(single(10)))
        assert found == {("0", "0"): ["unknown", "better", "worse", "same"]}

    def test_of_a_time(self):
        slow, quick = (run(single(figure, unit="s", better="lower")) for figure in (10, 9))
        assert told(slow, quick) == {("0", "0"): ["unknown", "better"]}

    def test_of_too_few_rounds(self):
        runs = rounds(run(single(10)), run(single(20)))[:14]
        (found,) = compare(runs, 2, 0.01)
        assert found.settings[1].direction == "unknown"
        assert (found.settings[1].change.rounds, found.settings[1].change.low) == (7, None)


class TestAllThreads:
    def test_are_compared_where_their_number_differs(self):
        assert told(run(threads([1, 2])), run(threads([1]), cpus=1)) == {
            ("0", "1"): ["unknown", "same"],
            ("0", ALL): ["unknown", "worse"],
        }

    def test_are_told_by_their_number_where_it_is_the_same(self):
        assert list(told(run(threads([1, 2])), run(threads([1, 2])))) == [("0", "1"), ("0", "2")]

    def test_of_cells_in_both_are_told_once_more(self):
        found = told(run(threads([1, 2, 4]), cpus=4), run(threads([1, 2])))
        assert list(found) == [("0", "1"), ("0", "2"), ("0", ALL)]

    def test_are_meant_only_by_columns_that_are_numbers_of_threads(self):
        kinds = replace(threads([2]), cells=(replace(threads([2]).cells[0], column="huge"),))
        assert list(told(run(kinds), run(kinds))) == [("0", "huge")]


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

    def test_of_a_round_cost_that_round_alone(self):
        runs = rounds(run(single(10)), run(single(11)))
        (found,) = compare(runs[:-1], 2, 0.01)
        assert found.settings[1].change.rounds == ROUNDS - 1
        assert found.settings[1].figures[-1] is None


class TestFurtherRounds:
    """What was skipped once is skipped always; what failed may succeed the next time."""

    @staticmethod
    def of(status):
        broken = unmeasured("0", "0", ["x:0 -> x:0 by ce"], status, "why", "unsupported")
        return run(result("x", "x", status, [broken]))

    def test_are_of_use_while_two_settings_have_a_cell_in_common(self):
        good = run(single(10))
        for others, useful in (
            ((good,), True),
            ((self.of("skip"),), False),
            ((self.of("skip"), good), True),
            ((self.of("error"),), True),
            ((self.of("timeout"),), True),
        ):
            assert can_compare(rounds(good, *others)[: 1 + len(others)], 1 + len(others)) is useful

    def test_are_of_no_use_if_the_baseline_has_none(self):
        good = run(single(10))
        assert not can_compare(rounds(self.of("skip"), good, good), 3)

    def test_are_of_no_use_for_cells_that_differ_in_their_place(self):
        assert not can_compare(rounds(run(single(10)), run(threads([1]))), 2)


@pytest.fixture(scope="module")
def campaign():
    """A placement, the same once more, and half of its CPUs: 40 nodes, measured with noise between
    samples, buffers and moments."""
    half = [2 * node for node in range(NODES)]
    found = compared(variant("all"), variant("again"), variant("half", cpus=half))
    assert len(found) == 2 * NODES
    return [one for one in found if one.column == ALL]


class TestFortyNoisyComparisons:
    """`bench/vary_differences.py` does the same on real machines."""

    def test_of_the_same_placement_call_at_most_two_different(self, campaign):
        same = [one.settings[1].direction for one in campaign]
        assert len(same) == NODES
        assert sum(one != "same" for one in same) <= 2

    def test_of_half_the_cpus_call_all_worse(self, campaign):
        assert [one.settings[2].direction for one in campaign] == ["worse"] * NODES
