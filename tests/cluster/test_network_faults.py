"""Faults of a network between two hosts are named by the counters that rose, or by what TCP says.

The hosts are namespaces of this machine, or of the guest of tools/rdma-guest, whose kernel has
netem."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import net_kit
from launch_kit import environment
from linkgauge.engine.kept.runs import read_run
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import evidence_of
from network_faults import FAULTS, NAMED

PROGRAM = Path(__file__).parents[1] / "network_faults.py"
SECONDS = float(os.environ.get("LINKGAUGE_FAULT_SECONDS", "600"))
ENOUGH = 11
HEALTHY = 50 if os.environ.get("LINKGAUGE_CAMPAIGN") == "full" else 1
CHECKS = ("network", "tcp-limit", "mtu-ends")


def carried_out(net, folder, faults):
    """Ranks of both hosts measure under each of the faults; rank 0 makes them."""
    hosts = [net.host(number) for number in range(2)]
    for host in hosts:  # netem would lose a whole series of segments as one
        subprocess.run(["ip", "netns", "exec", host, "ethtool", "-K", "eth0", "tso", "off", "gso",
                        "off", "gro", "off"], check=True, capture_output=True)  # fmt: skip
    ranks = []
    for number, host in enumerate(hosts):
        told = environment(
            LINKGAUGE_RANK=str(number), LINKGAUGE_RANKS="2", LINKGAUGE_TOKEN=net.switch,
            LINKGAUGE_FIRST=f"{net.address(0)}:{net_kit.PORT}", LINKGAUGE_HOST=f"node{number}",
            LINKGAUGE_HISTORY="none",
        )  # fmt: skip
        words = [sys.executable, str(PROGRAM), str(number), str(folder), net.switch, *hosts]
        ranks.append(subprocess.Popen(["ip", "netns", "exec", host, *words, *faults],
                     env=told, cwd=folder))  # fmt: skip
    for rank in ranks:
        assert rank.wait(SECONDS) == 0


def findings(folder, fault):
    """The findings of a fault's runs, as the check and what it says."""
    runs = [read_run(file.parent) for file in (folder / fault).rglob("run.json")]
    assert runs
    return [(f.check, f.severity, f.found) for run in runs for f in diagnose(evidence_of(run))]


@pytest.fixture
def net():
    with net_kit.net(2) as made:
        yield made


def has_netem():
    made = subprocess.run(["tc", "qdisc", "add", "dev", "lo", "root", "netem"], capture_output=True,
                          check=False)  # fmt: skip
    subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], capture_output=True, check=False)
    return not made.returncode


def is_named(found, fault):
    check, words = NAMED[fault]
    return any(one[0] == check and words in one[2] for one in found)


def test_all_but_one_of_the_faults_are_named(net, tmp_path):
    """In an emulated machine packets overtake each other, and some are sent again, even without a
    fault: that healthy networks are silent is tested in this machine's own kernel, below."""
    if not has_netem():
        pytest.skip("no netem in this kernel: tools/rdma-guest has it")
    carried_out(net, tmp_path, FAULTS)
    found = {fault: findings(tmp_path, fault) for fault in FAULTS}
    for fault, said in found.items():
        print(fault, "named" if fault in NAMED and is_named(said, fault) else "", said, flush=True)
    named = [fault for fault in NAMED if is_named(found[fault], fault)]
    assert len(named) >= ENOUGH, set(NAMED) - set(named)


def test_a_limit_of_the_host_and_mtus_that_differ_are_named(net, tmp_path):
    """What needs no netem: by this kernel's own queue and settings."""
    faults = ["healthy", "rate", "window", "mtu", "mtu of the switch", "mtu unnoticed"]
    carried_out(net, tmp_path, ["healthy"] * (HEALTHY - 1) + faults)
    found = {fault: findings(tmp_path, fault) for fault in faults}
    assert not [one for one in found["healthy"] if one[0] in CHECKS]
    assert all(is_named(found[fault], fault) for fault in faults[1:]), found
