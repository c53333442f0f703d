"""Counters of samples and repetitions add up; threads that did alike are fair."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.counters import Counters, ThreadSteps, fairness, total

numbers = st.none() | st.integers(0, 1 << 40)
threads = st.lists(
    st.builds(ThreadSteps, st.integers(0, 3), st.integers(0, 99), st.floats(0.1, 9.0)), max_size=4
)
counters = st.builds(
    Counters, page_faults=numbers, cycles=numbers, threads=threads.map(tuple), steal=st.just(0.5)
)


def test_what_one_of_them_lacks_the_sum_lacks():
    one, other = Counters(cycles=3, page_faults=1), Counters(page_faults=2, refused="no PMU")
    found = total([one, None, other])
    assert found == Counters(page_faults=3, refused="no PMU")


def test_the_threads_of_a_cpu_are_one():
    repetition = Counters(threads=(ThreadSteps(4, 10, 1.0, 1), ThreadSteps(2, 30, 1.0, 2)))
    found = total([repetition, repetition])
    assert found.threads == (ThreadSteps(2, 60, 2.0, 4), ThreadSteps(4, 20, 2.0, 2))
    assert found.fairness.mean == 20
    assert found.fairness.stddev == 10
    assert found.fairness.variation == 0.5


@pytest.mark.parametrize(
    "alone", [(), (ThreadSteps(0, 5, 1.0),), (ThreadSteps(0, 0, 1.0), ThreadSteps(1, 0, 1.0))]
)
def test_fairness_takes_two_threads_that_did_something(alone):
    assert fairness(alone) is None


@given(st.lists(counters, min_size=1, max_size=5))
def test_sums_do_not_depend_on_how_repetitions_are_grouped(several):
    whole = total(several)
    grouped = total([total(several[:1]), total(several[1:])])
    assert grouped.cycles == whole.cycles
    assert grouped.page_faults == whole.page_faults
    assert [(one.cpu, one.steps) for one in grouped.threads] == [
        (one.cpu, one.steps) for one in whole.threads
    ]
    assert whole.steal == pytest.approx(0.5 * len(several))
