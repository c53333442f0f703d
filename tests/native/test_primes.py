"""Threads search primes: every event finds all of them, whoever takes it."""

import os

import pytest

from linkgauge._native import find_primes

CPUS = sorted(os.sched_getaffinity(0))
ABSENT = 65_000


@pytest.mark.parametrize(
    ("limit", "found"), [(0, 0), (3, 0), (4, 1), (10, 3), (26, 8), (10_000, 1228)]
)
def test_an_event_finds_the_primes_from_3_to_below_the_limit(limit, found):
    (thread,) = find_primes(CPUS[:1], limit, 2)
    assert thread.events == 2
    assert thread.found == 2 * found


@pytest.mark.parametrize("events", [1, 2, 50])
def test_threads_share_the_events(events):
    threads = find_primes(CPUS[:2] * 2, 1000, events)
    assert len(threads) == 2 * len(CPUS[:2])
    assert sum(thread.events for thread in threads) == events
    assert all(thread.found == 167 * thread.events for thread in threads)
    assert all(thread.begin <= thread.end for thread in threads)


def test_each_thread_counts_for_itself():
    (thread,) = find_primes(CPUS[:1], 10_000, 3)
    assert thread.counts.seconds > 0
    assert thread.end - thread.begin <= thread.counts.seconds
    assert 0 <= thread.counts.involuntary <= thread.counts.context_switches


@pytest.mark.parametrize("events", [0, -1])
def test_no_event_is_refused(events):
    with pytest.raises(ValueError, match="at least 1"):
        find_primes(CPUS, 10, events)


def test_no_cpu_is_refused():
    with pytest.raises(ValueError, match="at least one CPU"):
        find_primes([], 10, 1)


@pytest.mark.parametrize("cpus", [[ABSENT], [CPUS[0], ABSENT], [ABSENT, CPUS[0]]])
def test_a_cpu_that_is_not_there_is_an_error_and_no_hang(cpus):
    with pytest.raises(OSError, match=f"CPU {ABSENT}"):
        find_primes(cpus, 10, 1)
