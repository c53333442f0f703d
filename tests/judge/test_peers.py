"""Cells that are far from their peers are marked, whether or not anything is expected of them."""

import pytest

from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.judge.verdict import judge

DGX = load("dgx-h200-8")[1]


def far(name, *faults):
    """Of the cells of a benchmark that are far from their peers, the column, the share of the
    peers' median and the verdict."""
    (result,) = judge(run_of("dgx", DGX, name, size=64 << 20, faults=faults)).results
    return [
        (cell.column, round(cell.headline / cell.peers, 2), cell.verdict)
        for cell in result.cells
        if cell.peers is not None
    ]


@pytest.mark.parametrize("name", ["all_to_host_memcpy_ce", "device_local_copy"])
def test_a_cell_of_which_nothing_is_expected_is_held_against_its_peers(name):
    assert far(name, "slow sim:3 rate=25%") == [
        ("3", pytest.approx(0.26, abs=0.02), "unknown")
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["all_to_host_memcpy_ce", "host_to_host_memcpy_read_cpu",
                                  "device_to_device_latency_sm"])  # fmt: skip
def test_unlike_paths_of_a_healthy_machine_are_no_peers(name):
    """Memory of the other node is farther from threads than their own."""
    assert far(name) == []
