"""Cells that are low among their peers are slow by themselves, and say nothing of these peers."""

import pytest
import yaml

from campaign import KNOWN, SIZES, UNSEEN
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import evidence_of
from linkgauge.judge.verdict import judge
from linkgauge.model.settings import Settings

BETWEEN = ("device_to_device_memcpy_read_ce", "device_to_device_memcpy_write_ce")
COPIES = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_local_copy")


@pytest.mark.parametrize(
    ("machine", "fault", "part", "said"),
    [
        # All copies between devices are a tenth below what is expected, and these are behind, too.
        ("ppu-8", "slow sim:0-sim:3 rate=0.915", "sim:0-sim:3", "of their peers"),
        # A loss of less than a tenth that begins in mid-run.
        (
            "sockets4",
            "slow sim:2-host:2 rate=0.939 cells=39..",
            "PCIe link of sim:2",
            "the first slow one was",
        ),
    ],
)
def test_a_link_a_little_behind_its_peers_is_named(machine, fault, part, said):
    tree = (UNSEEN | KNOWN).get(machine) or yaml.safe_load(load(machine)[1])
    tree = tree | {"noise": 0.001}
    for kind in tree["link_kinds"].values() if machine == "ppu-8" else ():
        if kind["kind"] == "fabric":
            kind["efficiency"] = {way: 0.92 * of for way, of in kind["efficiency"].items()}
    devices, settings = [f"sim:{n}" for n in range(4)], Settings(SIZES, samples=9)
    run = run_of(machine, yaml.safe_dump(tree), *BETWEEN, *COPIES,
                 faults=(fault,), devices=devices, settings=settings)  # fmt: skip
    slow = [f for f in diagnose(evidence_of(judge(run))) if f.check in ("slow", "drift")]
    assert [(f.check, f.subject) for f in slow] == [("slow", part)]
    assert said in slow[0].found
