"""The kinds of nodes' memory, of trees as small as can be."""

import pytest

from linkgauge.machine.host import read_host
from linkgauge.machine.tree import Captured
from machine_kit import CPU, DMI, NODE, captured, dimm, table

HMEM, NVDIMM = "platform/hmem.1", "LNXSYSTM:00/ACPI0012:00/ndbus0/region5/dax5.1"
CXL = "platform/ACPI0017:00/root0/decoder0.0/region0/dax_region0"


def kinds(tree, cpus):
    """Of nodes of some memory each, by their CPUs."""
    nodes = {f"{NODE}/node{node}/cpulist": text for node, text in cpus.items()}
    nodes |= {f"{NODE}/node{n}/meminfo": f"Node {n} MemTotal: 8 kB\n" for n in cpus}
    nodes[f"{CPU}/online"] = "0-1\n"
    tree = Captured({**tree.files, **captured(nodes).files}, tree.links)
    return {node.index: node.kind for node in read_host(tree).nodes}


def rates(**by_node):
    access = "access1/initiators/read_bandwidth"
    return {f"{NODE}/{node}/{access}": f"{rate}\n" for node, rate in by_node.items()}


def dax(place, node):
    """A tree in which the driver kmem has made this node of a DAX device."""
    where = f"sys/devices/{place}/dax5.0"
    links = {
        "sys/bus/dax/devices/dax5.0": f"../../../../{where}",
        "sys/bus/dax/drivers/kmem/dax5.0": f"../../../../../{where}",
    }
    return {f"{where}/target_node": f"{node}\n"}, links


@pytest.mark.parametrize(
    ("place", "rate", "kind"),
    [
        (NVDIMM, 100, "NVM"),
        (CXL, 400, "CXL"),
        (HMEM, 3000, "HBM"),
        # Set aside for whatever purpose, and no faster than DRAM: nothing tells what it is.
        (HMEM, 900, None),
    ],
)
def test_memory_that_a_driver_made_a_node_is_what_its_device_is(place, rate, kind):
    files, links = dax(place, 2)
    files |= rates(node0=1000, node2=rate)
    tree = Captured({path: text.encode() for path, text in files.items()}, links)
    assert kinds(tree, {0: "0-1", 2: ""}) == {0: "DRAM", 2: kind}


def test_a_node_of_memory_alone_is_hbm_where_it_is_much_faster():
    tree = captured(rates(node0=1000, node1=2500, node2=1200))
    assert kinds(tree, {0: "0-1", 1: "", 2: ""}) == {0: "DRAM", 1: "HBM", 2: None}


def test_firmware_that_lists_hbm_alone_says_so():
    """Xeon Max without DIMMs."""
    stacked = {DMI: table(dimm(kind=0x21), dimm(kind=0x21))}
    assert kinds(captured(stacked), {0: "0-1"}) == {0: "HBM"}
    mixed = {DMI: table(dimm(kind=0x21), dimm(kind=0x22))}
    assert kinds(captured(mixed), {0: "0-1"}) == {0: "DRAM"}


def test_what_a_device_tree_lists_is_dram():
    tree = captured({"proc/device-tree/memory@80000000/numa-node-id": bytes([0, 0, 0, 1])})
    assert kinds(tree, {0: "", 1: ""})[1] == "DRAM"


def test_nothing_tells_what_is_behind_a_cache_of_memory():
    """NVDIMMs behind DRAM, DRAM behind HBM."""
    tree = captured({f"{NODE}/node0/memory_side_cache/index1/size": "1\n"})
    assert kinds(tree, {0: "0-1"}) == {0: None}
