"""A fault that struck nothing is told with the reason; the example of each kind strikes."""

from functools import cache

import pytest
from msgspec.structs import replace

from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.backends.sim.faults import FAULTS
from linkgauge.backends.sim.missed import missed
from linkgauge.model.settings import Simulation

NAME, TEXT = load("ppu-8")
FIRST = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce",
    "host_to_device_bidirectional_memcpy_ce", "device_to_host_bidirectional_memcpy_ce",
    "device_to_device_memcpy_read_ce",
)  # fmt: skip
"""The benchmarks that any plan begins with: their cells have the numbers of a whole run."""
ENDING = {"hang", "crash"}
"""What ends the process that measures."""


@cache
def run_with(*faults):
    return run_of(NAME, TEXT, *FIRST, size=1 << 20, faults=faults)


def cells(run):
    return [cell for result in run.results for cell in result.cells]


def whys(run):
    return [why for _, why in missed(run)]


@pytest.mark.parametrize("kind", sorted(FAULTS.keys() - ENDING))
def test_the_example_of_each_kind_strikes(kind):
    struck = run_with(FAULTS[kind].example)
    shows_in_results = kind != "busy"  # which is for those who ask before they measure
    assert (cells(struck) != cells(run_with())) is shows_in_results
    assert whys(struck) == []


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("hang sim:1 cells=4", "cell 4 does not touch sim:1"),
        ("nomem sim:2 cells=3..5", "none of cells 3..5 touches sim:2"),
        ("slow sim:0-sim:1", "no cell touches sim:0-sim:1"),
        ("lost sim:1 cells=4", "none of cells 4.. touches sim:1"),
        ("crash * cells=200", "the plan has cells 0 to 7"),
        ("stall sim:0 every=7", "the cells that touch sim:0 have fewer than 7 samples"),
        ("flip * offset=1G", "the cells move no byte 1073741824 that is compared"),
    ],
)
def test_a_fault_that_struck_nothing_says_why(fault, why):
    run = run_of(NAME, TEXT, "host_to_device_memcpy_ce", size=1 << 20, faults=[fault])
    assert whys(run) == [why]


def test_a_rate_strikes_no_latency():
    run = run_of(NAME, TEXT, "host_device_latency_sm", size=1 << 20, faults=["slow sim:1"])
    assert whys(run) == ["the cells that touch sim:1 copy nothing: a latency stays as it is"]


def test_a_skipped_cell_is_not_struck():
    run = run_of(NAME, TEXT, "host_to_device_memcpy_ce", size=1 << 20, faults=["hang * cells=9"])
    (result,) = run.results
    first, *others = result.cells
    skipped = replace(result, cells=(replace(first, status="skip", samples=()), *others))
    how = replace(run.settings, simulation=Simulation(NAME, TEXT, ("hang sim:0",)))
    assert whys(replace(run, settings=how, results=(skipped,))) == [
        "the cells that touch sim:0 are skipped"
    ]


def test_nothing_is_told_of_a_run_that_did_not_come_to_its_end():
    run = run_of(NAME, TEXT, "host_to_device_memcpy_ce", size=1 << 20, faults=["hang * cells=9"])
    assert whys(run)
    assert whys(replace(run, finished=None)) == []
