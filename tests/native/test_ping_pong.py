"""A cache line bounces between two CPUs: every bounce happens, and each lap has its time."""

import itertools
import os

import pytest

from linkgauge._native import ping_pong

CPUS = sorted(os.sched_getaffinity(0))
ABSENT = 65_000
needs_two = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")


@needs_two
@pytest.mark.parametrize(("loops", "laps"), [(1, 1), (1, 64), (7, 3), (1000, 2)])
@pytest.mark.parametrize("turned", [False, True])
def test_each_round_trip_is_two_bounces_and_each_lap_has_an_end(loops, laps, turned):
    first, second = CPUS[:2][::-1] if turned else CPUS[:2]
    times, bounces, _ = ping_pong(first, second, loops, laps)
    assert bounces == 2 * loops * laps
    assert len(times) == laps + 1
    assert all(begin < end for begin, end in itertools.pairwise(times))


@pytest.mark.parametrize("loops", [-1, 0])
def test_no_loops_and_no_laps_are_refused(loops):
    with pytest.raises(ValueError, match="at least 1"):
        ping_pong(0, 1, loops)
    with pytest.raises(ValueError, match="at least 1"):
        ping_pong(0, 1, 1, loops)


def test_one_cpu_does_not_play_with_itself():
    with pytest.raises(ValueError, match="two CPUs"):
        ping_pong(CPUS[0], CPUS[0], 1)


@pytest.mark.parametrize("pair", [(CPUS[0], ABSENT), (ABSENT, CPUS[0])])
def test_a_cpu_that_is_not_there_is_an_error_and_no_hang(pair):
    with pytest.raises(OSError, match=f"CPU {ABSENT}"):
        ping_pong(*pair, 1)
    with pytest.raises(ValueError, match="no such CPU"):
        ping_pong(*(cpu if cpu != ABSENT else 1 << 20 for cpu in pair), 1)
