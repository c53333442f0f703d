"""NCCL reads the topology files of `devices --nccl-topo`: this machine's own, and one in which its
two cards are below one switch."""

import os
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest
import yaml

pytestmark = pytest.mark.gpu_pairs


def linkgauge(*words, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "linkgauge", *map(str, words)],
        capture_output=True, text=True, env=os.environ | environment, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def dumped(topology, folder):
    """What NCCL dumps of the topology and of its graphs when it reads this file."""
    topo, graph = folder / f"{topology.stem}-dump.xml", folder / f"{topology.stem}-graph.xml"
    said = linkgauge(
        "run", "all_reduce", "--backend", "cuda", "--size", "1M", "--no-report", "--out", folder,
        NCCL_TOPO_FILE=str(topology), NCCL_TOPO_DUMP_FILE=str(topo),
        NCCL_GRAPH_DUMP_FILE=str(graph), NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="GRAPH,INIT,ENV",
    )  # fmt: skip
    print(topology.read_text(), topo.read_text(), graph.read_text(), said[-20000:])
    return ET.parse(topo).getroot(), ET.parse(graph).getroot()


def above(root):
    """The switches above each card in a dump, by its address."""
    found = {}

    def descend(one, path):
        for pci in one.findall("pci"):
            if pci.find("gpu") is not None:
                found[pci.get("busid").lower()] = path
            descend(pci, (*path, pci.get("busid").lower()))

    for cpu in root.findall("cpu"):
        descend(cpu, (cpu.get("numaid"),))
    return found


def test_nccl_reads_what_is_written(tmp_path):
    own = tmp_path / "own.xml"
    linkgauge("devices", "--backend", "cuda", "--nccl-topo", own)
    linkgauge("run", "device_local_copy", "--backend", "cuda", "--no-report", "--label", "here",
              "--out", tmp_path)  # fmt: skip
    mine = tmp_path / "mine.yml"
    linkgauge("describe", tmp_path, "-o", mine)
    tree = yaml.safe_load(mine.read_text())
    tree["switches"].append({"name": "plx0", "kind": "pcie"})
    for group in tree["links"]:
        if "pcie" in group["kind"]:
            kind = group["kind"]
            group["pairs"] = [["plx0" if end.startswith("host:") else end for end in pair]
                              for pair in group["pairs"]]  # fmt: skip
    tree["links"].append({"kind": kind, "pairs": [["plx0", "host:0"]]})
    mine.write_text(yaml.safe_dump(tree))
    moved = tmp_path / "moved.xml"
    linkgauge("devices", "--machine", mine, "--nccl-topo", moved)
    before, _ = dumped(own, tmp_path)
    after, graphs = dumped(moved, tmp_path)
    switch = next(one.get("busid") for one in ET.parse(moved).getroot().iter("pci"))
    assert above(before).keys() == above(after).keys()
    assert len({path for path in above(after).values()}) == 1
    assert all(path[-1] == switch for path in above(after).values())
    assert not any(switch in path for path in above(before).values())
    assert graphs.findall("graph")
