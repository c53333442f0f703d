"""How far a virtual machine's CPUs are apart: measured in a guest, and nowhere else."""

import os

import pytest

from linkgauge.engine.nearness import PAIRS, Nearness, pairs_of
from linkgauge.machine.tree import Captured

GUEST = Captured({"proc/cpuinfo": b"flags\t\t: fpu hypervisor\n"})
HARDWARE = Captured({"proc/cpuinfo": b"flags\t\t: fpu\n"})

two_cpus = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="this process may run on one CPU only"
)


def here():
    return sorted(os.sched_getaffinity(0))


@two_cpus
def test_a_guest_has_a_distance_for_each_pair():
    (first, *others) = here()
    found = Nearness((first, *others), GUEST).measure()
    assert len(found) == min(PAIRS, len(others))
    assert all(1e-9 < one < 1e-3 for one in found), "a cache line takes nanoseconds"


def test_on_hardware_cores_stay_where_they_are():
    assert Nearness(here(), HARDWARE).measure() == ()


def test_a_cpu_that_is_gone_leaves_nothing_known():
    assert Nearness((0, 1000), GUEST).measure() == ()


def test_of_many_cpus_some_are_evenly_spread():
    pairs = pairs_of(range(64))
    assert [first for first, _ in pairs] == [0] * PAIRS
    others = [other for _, other in pairs]
    assert others == [9, 18, 27, 36, 45, 54, 63]
    assert pairs_of((3, 5)) == ((3, 5),)
    assert pairs_of((3,)) == pairs_of(()) == ()
