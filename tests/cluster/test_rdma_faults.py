"""Faults of a wire below RDMA are named by the counters of the devices and of their interfaces.

The devices are in software (rxe): tools/rdma-guest runs this file in a kernel that has it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import net_kit
import rdma_kit
from launch_kit import environment
from linkgauge.engine.kept.runs import read_run
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import evidence_of
from network_faults import RDMA

PROGRAM = Path(__file__).parents[1] / "network_faults.py"
SECONDS = float(os.environ.get("LINKGAUGE_FAULT_SECONDS", "900"))


@pytest.fixture
def wire():
    with rdma_kit.wire() as found:
        if isinstance(found, str):
            if "rdma" in os.environ.get("LINKGAUGE_REQUIRE", ""):
                pytest.fail(f"no wire between devices with RDMA: {found}")
            pytest.skip(f"no wire between devices with RDMA here: {found}")
        yield found


def measured(wire, folder):
    """Two ranks of this machine write over the wire under each of the faults."""
    at = [rdma_kit.number(nic) for nic in wire]
    ranks = []
    for number in range(2):
        variables = environment(
            LINKGAUGE_RANK=str(number), LINKGAUGE_RANKS="2", LINKGAUGE_TOKEN=wire[0].name,
            LINKGAUGE_FIRST=f"127.0.0.1:{net_kit.PORT}", LINKGAUGE_HISTORY="none",
            LINKGAUGE_FAULT_CELL=f"host:0@0 -> host:0@1 by nic:{at[0]}.rdma to nic:{at[1]}",
            LINKGAUGE_FAULT_SIZE="1M", RAPIDS_LIBUCX_PREFER_SYSTEM_LIBRARY="true",
        )  # fmt: skip
        places = ["-", wire[0].name, wire[1].name]
        words = [sys.executable, str(PROGRAM), str(number), str(folder), *places, *RDMA]
        ranks.append(subprocess.Popen(words, env=variables, cwd=folder))
    for rank in ranks:
        assert rank.wait(SECONDS) == 0
    for fault in RDMA:
        (file,) = (folder / fault).rglob("run.json")
        yield fault, read_run(file.parent)


def test_a_loss_is_named_by_rxe_and_a_rate_by_the_queue(wire, tmp_path):
    found = {}
    for fault, run in measured(wire, tmp_path):
        (cell,) = run.results[0].cells
        assert cell.status == "pass", cell.reason
        assert cell.verified
        said = [one for one in diagnose(evidence_of(run)) if one.check == "network"]
        found[fault] = {one.found for one in said}
        print(fault, cell.summary.median, found[fault], flush=True)
    healthy, lost, delay, rate = (" ".join(found[fault]) for fault in RDMA)
    assert "sent again" in lost
    assert "rcvd_seq_err" in lost
    assert "out_of_seq_request" in lost
    assert "held back" in rate
    assert "sent again" not in healthy + delay
