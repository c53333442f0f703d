"""Inside a guest: what contradicts its domain, beyond what tests/judge/test_vm_contradictions.py
draws, and what a guest tells by itself."""

import pytest

from linkgauge.machine.tree import Captured
from vm_kit import (
    GIB,
    compare,
    contradictions,
    domain,
    expander,
    guest_bus,
    hostdev,
    root_port,
    tree,
)

CARD = "pci0000:00/0000:00:02.0/0000:01:00.0"
ONE_CARD = root_port(1, 2) + hostdev("0000:17:00.0", (1, 0, 0))
CELLS = "<cpu><numa>{}</numa></cpu>"
TWO_CELLS = CELLS.format(
    "<cell id='0' cpus='0-1' memory='4' unit='GiB'/><cell id='1' cpus='2-3' memory='4' unit='GiB'/>"
)
TWO_NODES = {0: ((0, 1), 4 * GIB), 1: ((2, 3), 4 * GIB)}
STOLEN = {"proc/stat": b"cpu  0 0 0 900 0 0 0 100 0 0\n"}


def topology(text, body="", **more):
    return domain(f"{body}<cpu><topology {text}/></cpu>", **more)


LATER = topology("sockets='8' cores='1' threads='1'", vcpus=8, more=" current='2'")
ONE_BY_ONE = topology("sockets='1' cores='2' threads='2'", "<vcpus>{}</vcpus>".format("".join(
    f"<vcpu id='{n}' enabled='{'yes' if n in (0, 2) else 'no'}'/>" for n in range(4)
)))  # fmt: skip


CPUS = [
    (LATER, tree(sockets=2, cores=1), set()),
    (LATER, tree(sockets=3, cores=1), {("vcpus", "vCPUs")}),
    (ONE_BY_ONE, tree(cores=2), set()),
    (ONE_BY_ONE, tree(cores=1, threads=2), {("threads", "topology")}),
    (domain(), tree(files=STOLEN), {("steal", "host")}),
]

CRASH = {"sys/kernel/kexec_crash_size": str(2 * GIB).encode()}
BALLOON = domain("<currentMemory unit='GiB'>4</currentMemory>")
DIMM = domain(TWO_CELLS, memory=12, devices="<memory><target><size unit='GiB'>4</size>"
              "<node>1</node></target></memory>")  # fmt: skip
MEMORY_ALONE = domain(memory=12, body=CELLS.format(
    "<cell id='0' memory='4' unit='GiB'/><cell id='1' cpus='0-3' memory='8' unit='GiB'/>"
))  # fmt: skip
OF_DEVICES = domain(CELLS.format(
    "<cell id='0' cpus='0-3' memory='8' unit='GiB'/><cell id='1' memory='0'/>"
    "<cell id='2' memory='0'/>"
))  # fmt: skip


def nodes(*sizes, cpus=((0, 1), (2, 3))):
    own = enumerate(zip(cpus, sizes, strict=True))
    return tree(nodes={n: (of, int(size * GIB)) for n, (of, size) in own})


MEMORY = [
    # What a kernel keeps is no loss, nor what is set aside for a crash.
    *((domain(), tree(memory=int(size * GIB)), set()) for size in (7.3, 7.9, 8)),
    (domain(), tree(memory=5 * GIB + GIB // 2, files=CRASH), set()),
    (BALLOON, tree(memory=4 * GIB), set()),
    (BALLOON, tree(memory=2 * GIB), {("memory", "memory")}),
    # Memory devices may be used or not.
    (DIMM, nodes(4, 4), set()),
    (DIMM, nodes(4, 8), set()),
    (DIMM, nodes(4, 9), {("cell-memory", "cell 1")}),
    # vCPUs of no cell are the first's; a cell of memory alone is the last node.
    (domain(TWO_CELLS.replace("0-1", "0")), nodes(4, 4), {("cell-list", "cells")}),
    (MEMORY_ALONE, nodes(8, 4, cpus=((0, 1, 2, 3), ())), set()),
    # Cells for a device's own memory need not show.
    (OF_DEVICES, tree(), set()),
    (OF_DEVICES, nodes(8, 0, cpus=((0, 1, 2, 3), ())), set()),
]


def routed(*routes, on=None, **more):
    return tree(bus=guest_bus(*routes, nodes=on or ()), **more)


def impostor():
    """A function of the hypervisor in the card's place."""
    bus = guest_bus()
    bus.bridge("pci0000:00/0000:00:02.0", vendor="0x1b36", numa_node="-1")
    bus.add(CARD, vendor="0x1af4", numa_node="-1")
    return tree(bus=bus)


ROUTES = [f"pci0000:00/0000:00:0{n}.0" for n in (6, 7)]
PLACELESS = domain(devices=hostdev("0000:17:00.0") + hostdev("0000:18:00.0"))
CHOSEN = domain(TWO_CELLS, devices=expander(1, 3, 0, 1).replace("busNr='0'", "")
                + root_port(2, 0, bus=1) + hostdev("0000:17:00.0", (2, 0, 0)))  # fmt: skip
FAR = "pci0000:fe/0000:fe:00.0/0000:ff:00.0"


DEVICES = [
    # One behind its port is found whatever the bus is called.
    *(
        (domain(devices=ONE_CARD), routed(f"pci0000:00/0000:00:02.0/0000:{bus}:00.0"), set())
        for bus in ("01", "0a")
    ),
    (domain(devices=ONE_CARD), impostor(), {("device", "0000:17:00.0")}),
    # Those without a place are counted.
    (PLACELESS, routed(*ROUTES), set()),
    (PLACELESS, routed(ROUTES[0]), {("device", "devices")}),
    # An expander whose number libvirt chose is any other root.
    (CHOSEN, routed(FAR, on=(1,), nodes=TWO_NODES), set()),
    (
        CHOSEN,
        routed(FAR, on=(0,), nodes=TWO_NODES),
        {("device-node", "0000:ff:00.0 (host: 0000:17:00.0)")},
    ),
]


@pytest.mark.parametrize(("xml", "root", "wrong"), [*CPUS, *MEMORY, *DEVICES])
def test_what_contradicts_the_domain(xml, root, wrong):
    assert contradictions(compare(xml, root, "guest")) == wrong


NO_SOCKETS = {f"sys/devices/system/cpu/cpu{n}/topology/physical_package_id": b"-1\n"
              for n in range(4)}  # fmt: skip
KNOWN = routed()
UNREAD = {"sys/bus/pci/devices/0000:01:00.0": "../../../devices/nowhere"}


@pytest.mark.parametrize(
    ("check", "xml", "root"),
    [
        ("topology", topology("sockets='1' cores='4' threads='1'"), tree(files=NO_SOCKETS)),
        ("device", domain(devices=ONE_CARD), Captured(KNOWN.files, KNOWN.links | UNREAD)),
        ("beyond-guest", domain("<cputune><vcpupin vcpu='0' cpuset='4'/></cputune>"), tree()),
    ],
)
def test_what_nothing_shows_is_unknown(check, xml, root):
    found = {one.check: one.severity for one in compare(xml, root, "guest").findings}
    assert found[check] == "unknown"
    bare = compare(xml, Captured({}), "guest").findings
    assert {one.severity for one in bare} <= {"unknown", "note"}


def test_threads_that_amd_hides_need_topoext():
    cpu = "<cpu><topology sockets='1' cores='2' threads='2'/>{}</cpu>"
    for feature, needed in (("", True), ("<feature policy='require' name='topoext'/>", False)):
        found = compare(domain(cpu.format(feature)), tree(vendor="AuthenticAMD"), "guest").findings
        (one,) = (each for each in found if each.check == "threads")
        assert ("topoext" in one.remedy[0]) is needed


def slow_card(name, value):
    bus = guest_bus(CARD)
    bus.files[f"sys/devices/{CARD}/{name}"] = value
    return bus


def test_a_link_that_rests_while_nothing_uses_it_is_no_fault():
    root = tree(bus=slow_card("current_link_speed", b"2.5 GT/s PCIe\n"))
    found = compare(domain(devices=ONE_CARD), root, "guest").findings
    assert not [each for each in found if each.check == "link-speed"]


POOL = {0: {2 << 20: (9, 9)}}
OTHER = "pci0000:00/0000:00:04.0/0000:02:00.0"


@pytest.mark.parametrize(
    ("root", "found"),
    [
        (routed(CARD, on=(0,), cores=8, pools=POOL), set()),
        (tree(sockets=8, cores=1, pools=POOL), {("sockets", "warn")}),
        (tree(sockets=2, cores=1, pools=POOL), set()),
        (routed(CARD, nodes=TWO_NODES, pools=POOL), {("near-node", "unknown")}),
        (routed(CARD, OTHER, pools=POOL), {("cells", "note")}),
        (tree(bus=slow_card("current_link_width", b"4\n"), thp="never",
              pools={0: {2 << 20: (0, 0)}}, files=STOLEN),
         {("link-width", "warn"), ("steal", "warn"), ("transparent-huge-pages", "warn"),
          ("huge-pages", "note")}),
    ],
    ids=["well", "each vCPU a socket", "two sockets", "of no node", "beside one node", "settings"],
)  # fmt: skip
def test_a_guest_by_itself(root, found):
    told = {(one.check, one.severity) for one in compare(None, root, "guest").findings}
    assert {one for one in told if one[1] != "unknown" or one[0] == "near-node"} == found
