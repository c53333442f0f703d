"""Steal time of some CPUs, as far as the kernel reports it."""

import os

import pytest

from linkgauge.machine.steal import steal_seconds
from machine_kit import captured

TICKS = os.sysconf("SC_CLK_TCK")
STAT = f"""cpu  9 9 9 9 9 9 9 {7 * TICKS} 0 0
cpu0 1 1 1 1 1 1 1 {TICKS} 0 0
cpu1 1 1 1 1 1 1 1 {2 * TICKS} 0 0
cpu12 1 1 1 1 1 1 1 {4 * TICKS} 0 0
intr 5
"""


@pytest.mark.parametrize(
    ("stat", "cpus", "seconds"),
    [
        *((STAT, [0], 1), (STAT, [1, 12], 6), (STAT, [0, 1, 12], 7), (STAT, [0, 0], 1)),
        *(("", [0], None), ("cpu0 1 2 3", [0], None), ("cpu0 a b c d e f g h", [0], None)),
        (STAT.replace("cpu1 ", "x "), [0, 1], None),
        (STAT.replace(f"{2 * TICKS} 0", "9" * 5000), [0, 1], None),
        (STAT.replace(f"{2 * TICKS} 0", "²"), [0, 1], None),
    ],
)
def test_the_steal_of_the_cpus_used_is_added_up_if_all_are_reported(stat, cpus, seconds):
    assert steal_seconds(captured({"proc/stat": stat}), cpus) == seconds
