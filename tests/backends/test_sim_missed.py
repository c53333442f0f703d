"""A fault that struck nothing is told with the reason."""

import re

import pytest

from command_kit import called


def told(folder, fault, benchmark="host_to_device_memcpy_ce"):
    """Why the fault struck nothing, as a run says it, if it does."""
    done = called(
        "run", "--machine", "ppu-8", "--size", "1M", "--samples", "6", "--loops", "2",
        "--out", folder, "--fault", fault, benchmark, COLUMNS="200",
    )  # fmt: skip
    return re.findall("had no effect: (.*)", done.stdout)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("hang sim:1 cells=4", "cell 4 does not touch sim:1"),
        ("nomem sim:2 cells=3..5", "none of cells 3..5 touches sim:2"),
        ("slow sim:0-sim:1", "no cell touches sim:0-sim:1"),
        ("lost sim:1 cells=4", "none of cells 4.. touches sim:1"),
        ("crash * cells=200", "the plan has cells 0 to 7"),
        ("stall sim:0 every=7", "the cells through sim:0 have fewer than 7 samples"),
        ("flip * offset=1G", "the cells move no byte 1073741824 that is compared"),
    ],
)  # fmt: skip
def test_a_fault_that_struck_nothing_says_why(fault, why, tmp_path):
    assert told(tmp_path, fault) == [why]


def test_of_a_fault_that_struck_nothing_is_told(tmp_path):
    assert told(tmp_path, "stall sim:0 every=6") == []


def test_a_rate_strikes_no_latency(tmp_path):
    assert told(tmp_path, "slow sim:1", "host_device_latency_sm") == [
        "the cells through sim:1 copy nothing: a latency stays as it is"
    ]
