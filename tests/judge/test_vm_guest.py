"""Inside a guest: what contradicts its domain is named, and nothing is invented; and what a guest
tells by itself.

Domains with the guests that QEMU and Linux make of them: some of what a guest shows is changed, and
exactly that must be found.
"""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkgauge.machine.tree import Captured
from vm_kit import (
    GIB,
    MIB,
    compare,
    contradictions,
    domain,
    expander,
    guest_bus,
    hostdev,
    root_port,
    tree,
)

UUID = "11111111-2222-4333-8444-555555555555"
PORT = root_port(50, 20) + hostdev("0000:10:00.0", (50, 0, 0))
FAR = (expander(41, 11, 0x90, 1) + root_port(50, 0, bus=41)
       + hostdev("0000:10:00.0", (50, 0, 0)))  # fmt: skip


def distance(one, other):
    return 10 if one == other else 21 + abs(one - other)


def written(guest):
    """The domain as XML: six cores of two threads."""
    cells = ""
    for index, (cpus, size) in enumerate(zip(guest["vcpus"], guest["sizes"], strict=True)):
        rows = "".join(f"<sibling id='{b}' value='{distance(index, b)}'/>" for b in (0, 1))
        cells += (
            f"<cell id='{index}' cpus='{','.join(map(str, cpus))}' memory='{size}' unit='GiB'>"
            f"<distances>{rows}</distances></cell>"
        )
    several = len(guest["vcpus"]) > 1
    body = (
        f"<cpu><topology sockets='{guest['asked']}' cores='{6 // guest['asked']}' threads='2'/>"
        f"{f'<numa>{cells}</numa>' if several else ''}</cpu>"
        "<memoryBacking><hugepages/></memoryBacking>"
    )
    return domain(body, vcpus=12, memory=sum(guest["sizes"]), devices=FAR if several else PORT)


def in_cells(*vcpus, sockets=2):
    """A guest of these cells, in plain values: nodes come in the order of their CPUs."""
    ranks = sorted(range(len(vcpus)), key=lambda cell: vcpus[cell][0])
    several = len(vcpus) > 1
    node_of = {cell: node for node, cell in enumerate(ranks)}
    return {
        "sockets": sockets, "asked": sockets, "threads": 2, "online": list(range(12)),
        "node_of": node_of,
        "vcpus": [list(cpus) for cpus in vcpus], "sizes": [6, 9][: len(vcpus)],
        "distances": {a: {b: distance(a, b) for b in node_of} for a in node_of},
        "thp": "madvise", "uuid": UUID, "node": node_of[1] if several else -1,
        "route": "pci0000:90/0000:90:00.0/0000:91:00.0" if several else
                 "pci0000:00/0000:00:14.0/0000:01:00.0",
    }  # fmt: skip


GUESTS = {
    "one cell": lambda: in_cells(range(12)),
    "two cells": lambda: in_cells(range(6), range(6, 12)),
    "out of order": lambda: in_cells(range(6, 12), range(6)),
    "interleaved": lambda: in_cells((0, 1, 4, 5, 8, 9), (2, 3, 6, 7, 10, 11), sockets=6),
}


def shown(guest):
    """The guest's files: memory is without the kernel's."""
    node_of = guest["node_of"]
    nodes = {
        node_of[cell]: ([c for c in cpus if c in guest["online"]],
                        int(guest["sizes"][cell] * GIB * 63 / 64 - 100 * MIB))
        for cell, cpus in enumerate(guest["vcpus"])
    }  # fmt: skip
    rows = {
        node_of[a]: [guest["distances"][a][b] for b in sorted(row, key=node_of.get)]
        for a, row in guest["distances"].items()
    }
    routes = [guest["route"]] if guest["route"] else []
    return tree(
        sockets=guest["sockets"], cores=12 // guest["threads"] // guest["sockets"],
        threads=guest["threads"], online=guest["online"], nodes=dict(sorted(nodes.items())),
        distances=rows, thp=guest["thp"], bus=guest_bus(*routes, nodes=[guest["node"]]),
        files={"sys/class/dmi/id/product_uuid": guest["uuid"].encode()},
    )  # fmt: skip


# What can be wrong: each changes what the guest shows, and says what is to be found; None where the
# guest has nothing of the kind.


def one_node(guest):
    if len(guest["vcpus"]) < 2:
        return None
    guest["vcpus"], guest["sizes"] = [sorted(chain(*guest["vcpus"]))], [sum(guest["sizes"])]
    guest["node_of"], guest["distances"], guest["node"] = {0: 0}, {0: {0: 10}}, -1
    return {("cells", "NUMA nodes")}


def no_vcpu(guest):
    guest["online"].pop()
    return {("vcpus", "vCPUs")}


def other_threads(guest):
    guest["threads"] = 1
    return {("threads", "topology")}


def other_sockets(guest):
    guest["sockets"] = 12 // guest["threads"]
    return {("sockets", "topology")} if guest["sockets"] != guest["asked"] else None


def swapped_vcpus(guest):
    if len(guest["vcpus"]) < 2:
        return None
    one, other = guest["vcpus"]
    one[0], other[0] = other[0], one[0]
    return {("cell-vcpus", "cell 0"), ("cell-vcpus", "cell 1")}


def other_memory(factor):
    def change(guest):
        guest["sizes"][-1] *= factor
        last = len(guest["sizes"]) - 1
        return {("cell-memory", f"cell {last}")} if last else {("memory", "memory")}

    return change


def other_distance(guest):
    if len(guest["distances"]) < 2:
        return None
    guest["distances"][0][1] += 5
    return {("cell-distances", "cell 0")}


def no_huge_pages(guest):
    guest["thp"] = "never"
    return {("guest-pages", "huge pages")}


def no_device(guest):
    guest["route"] = None
    return {("device", "0000:10:00.0")}


def device_elsewhere(guest):
    if len(guest["vcpus"]) < 2 or not guest["route"]:
        return None
    guest["node"] = -1
    return {("device-node", "0000:91:00.0 (host: 0000:10:00.0)")}


def another_guest(guest):
    guest["uuid"] = UUID.replace("1", "9")
    return {("domain-uuid", "domain")}


WRONGS = (
    one_node, no_vcpu, other_threads, other_sockets, swapped_vcpus, other_memory(0.5),
    other_memory(1.5), other_distance, no_huge_pages, no_device, device_elsewhere, another_guest,
)  # fmt: skip


def check(name, *wrongs):
    guest, wanted = GUESTS[name](), set()
    xml = written(guest)
    for wrong in wrongs:
        wanted |= wrong(guest) or set()
    judged = compare(xml, shown(guest), "guest")
    assert contradictions(judged) == wanted


@pytest.mark.parametrize("name", GUESTS)
def test_nothing_is_found_in_a_guest_as_its_domain_makes_it(name):
    check(name)
    for wrong in WRONGS:
        check(name, wrong)


@settings(max_examples=max(25, settings.default.max_examples))
@given(st.sampled_from(sorted(GUESTS)), st.sets(st.sampled_from(range(len(WRONGS))), max_size=5))
def test_exactly_what_was_changed_is_found(name, numbers):
    numbers -= {6} if 5 in numbers else set()  # both change the same memory
    check(name, *(WRONGS[number] for number in sorted(numbers)))


# Beyond what is drawn.

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
DIMM = domain(f"<maxMemory slots='2' unit='GiB'>64</maxMemory>{TWO_CELLS}", memory=12,
              devices="<memory><target><size unit='GiB'>4</size>"
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
BEYOND = "pci0000:fe/0000:fe:00.0/0000:ff:00.0"


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
    (CHOSEN, routed(BEYOND, on=(1,), nodes=TWO_NODES), set()),
    (
        CHOSEN,
        routed(BEYOND, on=(0,), nodes=TWO_NODES),
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


@pytest.mark.parametrize(("kind", "found"), [("DMA", 1), ("identity", 0)])
def test_an_iommu_of_the_guest_that_translates(kind, found):
    files = {"sys/kernel/iommu_groups/0/type": f"{kind}\n".encode()}
    root = tree(bus=guest_bus(CARD), files=files)
    findings = compare(domain(devices=ONE_CARD), root, "guest").findings
    assert sum(one.check == "iommu" for one in findings) == found
    assert not [one for one in compare(domain(), root, "guest").findings if one.check == "iommu"]


POOL = {0: {2 << 20: (9, 9)}}
OTHER = "pci0000:00/0000:00:04.0/0000:02:00.0"


@pytest.mark.parametrize(
    ("root", "found"),
    [
        (routed(CARD, on=(0,), cores=8, pools=POOL), set()),
        (tree(sockets=8, cores=1, pools=POOL), {("sockets", "warn")}),
        (tree(sockets=2, cores=1, pools=POOL), set()),
        (routed(CARD, nodes=TWO_NODES, pools=POOL), {("near-node", "warn")}),
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
