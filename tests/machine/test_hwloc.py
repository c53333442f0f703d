"""Captured machines are read as hwloc reads them: every value that its own output states.

The trees and lstopo's output are third-party data (tests/hwloc/linux of hwloc's repository), not
part of this project: those that lie in ../shared/data/sysfs, or in the folder that
LINKGAUGE_HWLOC names, are compared. docs/devices.md says where values differ, and why.
"""

import os
import re
from pathlib import Path

import pytest

from hwloc_kit import of_text, of_xml
from linkgauge.machine.captures.archive import read_archive
from linkgauge.machine.host import read_host
from linkgauge.machine.read_inventory import read_inventory

FOLDERS = [Path(__file__).parents[2] / "../shared/data/sysfs"]
FOLDERS += [Path(named)] if (named := os.environ.get("LINKGAUGE_HWLOC")) else []
TESTS = sorted(test for folder in FOLDERS for test in folder.glob("*.test"))

ALL = {"cpus", "cores", "threads", "packages", "nodes", "node cpus", "caches", "distances"}
DIFFERENT = {
    # hwloc leaves out what the cgroup of its process disallows: here it stands under `may use`.
    "16amd64-4n4c-cgroup-distance-merge": ALL,
    "16amd64-8n2c-cpusets": ALL,
    "16amd64-8n2c-cpusets-xml": ALL,
    "16em64t-4s2ca2c-cpusetreorder": ALL,
    "16em64t-4s2ca2c-cpusetreorder-merge": ALL,
    "32amd64-4s2n4c-cgroup2": ALL,
    "4fake-4gr1nu1pu": ALL,
    # The firmware numbers no sockets; hwloc counts groups of CPUs.
    "20s390-2g6s4c": {"packages"},
    "256ppc-8n8s4t": {"packages"},
    "2ps3-2t": {"packages"},
    # Lists of the tree contradict its masks, which hwloc reads.
    "64fake-4n2s2ca2c2t": {"caches"},
    # The same, and hwloc takes the two threads of a core, as the kernel has them, for cores.
    "64amd64-4s2n4ca2co": {"cores", "threads", "caches"},
    # The tree is made to contradict itself.
    "40intel64-4n10c+pci-conflicts": {"packages"},
    # hwloc drops nodes that have the same CPUs.
    "8em64t-2s2ca2c-buggynuma": {"nodes", "node cpus", "distances"},
    # A node without CPUs: hwloc gives it those that it is near to.
    "fakeheterocpunuma": {"node cpus"},
    # hwloc is told to keep the memory of GPUs.
    "nvidiagpunumanodes-kept": {"nodes", "node cpus", "distances"},
}


@pytest.fixture(scope="module", params=TESTS, ids=lambda test: test.stem)
def both(request):
    """What hwloc states, what is read here, the options it ran with, and what may differ."""
    test = request.param.read_text()
    source, target = (re.search(rf"{key}:\s*(\S+)", test)[1] for key in ("source", "target"))
    output = (request.param.parent / target).read_text()
    stated = of_xml(output) if target.endswith(".xml") else of_text(output)
    options = re.search(r"options:(.*)", test)
    tree = read_archive(request.param.parent / source)
    return stated, tree, options[1] if options else "", DIFFERENT.get(request.param.stem, set())


@pytest.mark.skipif(bool(TESTS), reason="they are there")
def test_the_trees_are_absent():
    pytest.skip("no *.test of hwloc lies in ../shared/data/sysfs: third-party data")


def compare(which, different, stated, read):
    """Whether they are the same, but for what is known to differ: then that must still do so."""
    if which not in different:
        assert read == stated, which


def test_cpus_cores_and_sockets(both):
    stated, tree, options, different = both
    details = read_inventory(tree).host
    compare("cpus", different, len(stated.cpus), read_host(tree).cpus)
    if "--merge" not in options:
        cores = len(stated.cores) or None
        compare("cores", different, cores, details.cores)
        compare("threads", different, max(stated.cores, default=None), details.threads_per_core)
    compare("packages", different, stated.packages, details.sockets)
    model = stated.infos.get("CPUModel")
    assert model is None or model.strip() == read_host(tree).cpu_model


def test_nodes_with_their_memory_and_its_kind(both):
    stated, tree, _, different = both
    nodes = {node.index: node for node in read_host(tree).nodes}
    compare("nodes", different, set(stated.nodes), set(nodes))
    for index in stated.nodes.keys() & nodes.keys():
        size, unit, kind = stated.nodes[index]
        total = nodes[index].memory_total or 0
        assert round_to(total, unit) == size, index
        assert kind is None or kind == nodes[index].kind
        cpus = stated.node_cpus.get(index)
        if cpus is not None:
            compare("node cpus", different, cpus, set(nodes[index].cpus))


def round_to(size, unit):
    """Text has sizes in whole units."""
    return (size + unit // 2) // unit * unit


def test_caches(both):
    stated, tree, options, different = both
    if "--no-caches" in options or "--merge" in options:
        return
    # From 10 MiB on, text has whole ones.
    rounded = {size for _, _, size, _ in stated.caches if size >= 10 << 20}
    read = {
        (each.level, each.kind,
         whole if (whole := round_to(each.size, 1 << 20)) in rounded else each.size,
         each.shared_by)
        for each in read_inventory(tree).host.caches
        if each.kind != "instruction" or "--no-icaches" not in options
    }  # fmt: skip
    compare("caches", different, stated.caches, read)


def test_distances(both):
    stated, tree, _, different = both
    read = read_inventory(tree).host.distances
    compare("distances", different, stated.distances, read if len(read) > 1 else {})


def test_pci_functions(both):
    """Those that count here: hwloc lists others, too."""
    stated, tree, _, _ = both
    for function in read_inventory(tree).pci:
        if function.address in stated.pci:
            code, vendor, device = stated.pci[function.address]
            assert (function.class_code or 0) >> 8 == code
            # Of a file that cannot be read, hwloc states zeros.
            assert (function.vendor or 0, function.device or 0) == (vendor, device)
