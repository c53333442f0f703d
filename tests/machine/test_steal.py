"""Steal time of some CPUs, as far as the kernel reports it."""

import os

import pytest

from linkgauge.machine.steal import steal_seconds
from linkgauge.machine.tree import Captured

TICKS = os.sysconf("SC_CLK_TCK")
STAT = f"""cpu  9 9 9 9 9 9 9 {7 * TICKS} 0 0
cpu0 1 1 1 1 1 1 1 {TICKS} 0 0
cpu1 1 1 1 1 1 1 1 {2 * TICKS} 0 0
cpu12 1 1 1 1 1 1 1 {4 * TICKS} 0 0
intr 5
"""


def machine(stat):
    return Captured({"proc/stat": stat.encode()})


@pytest.mark.parametrize(
    ("cpus", "seconds"), [([0], 1), ([1, 12], 6), ([0, 1, 12], 7), ([0, 0], 1)]
)
def test_the_steal_of_the_cpus_used_is_added_up(cpus, seconds):
    assert steal_seconds(machine(STAT), cpus) == seconds


@pytest.mark.parametrize(
    "stat",
    [
        "",
        "cpu0 1 2 3",
        "cpu0 a b c d e f g h",
        STAT.replace("cpu1 ", "x "),
        STAT.replace(f"{2 * TICKS} 0", "9" * 5000),
        STAT.replace(f"{2 * TICKS} 0", "²"),
    ],
)
def test_a_cpu_that_is_not_reported_makes_it_unknown(stat):
    assert steal_seconds(machine(stat), [0, 1]) is None


def test_a_machine_without_proc_has_none():
    assert steal_seconds(Captured({}), [0]) is None
