"""What `linkgauge as` prints in the form of each tool, on each healthy shipped machine, is read
back to what was measured."""

import os
import random
from itertools import product

import pytest

from linkgauge.backends.sim.description import shipped
from linkgauge.model.operations.collective import COLLECTIVE_NAMES
from linkgauge.rooms.judge_files.judging import run_of_texts
from linkgauge.rooms.judge_files.readers import read_text
from reported_kit import compared, recorded

MACHINES = [name for name in shipped() if name != "vm-degraded" and "fat-tree-1000" not in name]
"""Not those of 1,000 hosts and more: a matrix of one tool has millions of figures there."""
LARGE = ("fat-tree-64", "gb200-nvl72", "rbln-32")
"""Up to 128 devices, whose matrices of one tool take up to a minute."""
COPIES = ("-t", "0", "1", "2", "3", "4", "5", "6", "7", "14", "15", "22", "23", "34", "-i", "1")
SIZES = ("-b", "1M", "-e", "64M", "-f", "8")
TOOLS = {
    "nvbandwidth": ("nvbandwidth", *COPIES), "nvbandwidth-json": ("nvbandwidth", "-j", *COPIES),
    "sailbandwidth": ("sailbandwidth", *COPIES[:-2]), "p2p": ("p2pBandwidthLatencyTest",),
    "p2p-read": ("p2pBandwidthLatencyTest", "--p2p_read"), "bandwidthTest": ("bandwidthTest",),
    "rbln": ("rblnBandwidthLatencyTest",),
    "gc-hosttraffictest": ("gc-hosttraffictest", "-d", "0", "-i", "100"),
} | {name: (f"{name}_perf", *SIZES) for name in COLLECTIVE_NAMES}  # fmt: skip
EVERY = [*product(MACHINES, TOOLS)]
IS_LONG = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
QUICK = [one for one in EVERY if one[0] not in LARGE]
SOME = EVERY if IS_LONG else random.Random("own outputs").sample(QUICK, 8)


@pytest.mark.parametrize(("machine", "tool"), SOME, ids=["-".join(one) for one in SOME])
def test_read_back(machine, tool, tmp_path):
    words = TOOLS[tool]
    if tool in COLLECTIVE_NAMES:
        words += ("-g", "2" if tool == "sendrecv" else "4", "-J", str(tmp_path / "j.json"))
    done, known = recorded(machine, words)
    if done.returncode or not known:
        pytest.skip(f"{machine} cannot run it: {(done.stderr or done.stdout)[-200:]}")
    texts = [done.stdout]
    if tool in COLLECTIVE_NAMES:  # the file of -J tells the same
        texts.append((tmp_path / "j.json").read_text())
    for text in texts:
        assert compared(run_of_texts(read_text("log", text), machine, "x"), known)
