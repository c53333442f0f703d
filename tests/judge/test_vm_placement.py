"""What the host prints suits: pasted into the domain, nothing of its placement is left to find."""

from xml.etree.ElementTree import fromstring, tostring

from hypothesis import given, settings
from hypothesis import strategies as st

from vm_kit import GIB, MIB, compare, domain, host_bus, hostdev, tree

PLACEMENT = {
    "pinned-cpus", "unpinned", "pins-across", "pins-shared", "pins-taken", "pin-threads",
    "device-far", "cells-hidden", "topology-product", "cell-list", "memory-node",
    "memory-unbound", "memory-remote", "memory-size", "emulator", "huge-pages-none", "device-node",
}  # fmt: skip
"""What a placement mends."""
MANY = settings(max_examples=max(20, settings.default.max_examples))


def host(nodes=2, cores=8, threads=2, memory=64, cards=(), **more):
    """A host of a socket a node; the second threads of all cores come after the first."""
    every = nodes * cores
    cpus = {
        node: [t * every + node * cores + core for t in range(threads) for core in range(cores)]
        for node in range(nodes)
    }
    rows = {a: [10 if a == b else 21 + abs(a - b) for b in range(nodes)] for a in range(nodes)}
    return tree(
        guest=False, sockets=nodes, cores=cores, threads=threads, distances=rows,
        nodes={node: (own, memory * GIB) for node, own in cpus.items()},
        pools={node: {2 * MIB: (0, 0), GIB: (0, 0)} for node in cpus}, bus=host_bus(*cards),
        **more,
    )  # fmt: skip


def pasted(xml, elements):
    """The domain with the printed elements in place of its own."""
    root = fromstring(xml)
    devices = root.find("devices")
    for text in elements:
        new = fromstring(text)
        parent = devices if new.tag in ("controller", "hostdev") else root
        for old in parent.findall(new.tag):
            if new.tag != "controller" and source_of(old) == source_of(new):
                parent.remove(old)
        parent.append(new)
    return tostring(root)


def source_of(element):
    """What tells a host device from others; None of any other element."""
    source = element.find("source/address")
    return None if source is None else tuple(int(source.get(name), 16) for name in
                                             ("domain", "bus", "slot", "function"))  # fmt: skip


@st.composite
def scenes(draw):
    nodes, cores, threads = (
        draw(st.integers(1, 3)),
        draw(st.integers(2, 8)),
        draw(st.integers(1, 2)),
    )
    vcpus = draw(st.integers(1, nodes * cores * threads))
    homes = draw(st.lists(st.integers(0, nodes - 1), max_size=3))
    asked = draw(st.sampled_from([n for n in (None, 1, 2) if not n or vcpus % n == 0]))
    cells = draw(st.sampled_from([n for n in (0, 1, 2) if n <= vcpus and vcpus % max(n, 1) == 0]))
    return {
        "nodes": nodes, "cores": cores, "threads": threads, "vcpus": vcpus, "homes": homes,
        "asked": asked, "cells": cells, "memory": draw(st.sampled_from((8, 24, 90))),
        "pinned": draw(st.sampled_from((None, "0", "all"))),
    }  # fmt: skip


def written(scene):
    vcpus, cells, threads = scene["vcpus"], scene["cells"], scene["asked"]
    inner = ""
    if threads:
        inner += f"<topology sockets='1' cores='{vcpus // threads}' threads='{threads}'/>"
    if cells:
        each, size = vcpus // cells, scene["memory"] // cells
        inner += "<numa>" + "".join(
            f"<cell id='{n}' cpus='{n * each}-{(n + 1) * each - 1}' memory='{size}' unit='GiB'/>"
            for n in range(cells)
        ) + "</numa>"  # fmt: skip
    pins = {None: "", "0": "0", "all": "0-1"}[scene["pinned"]]
    tune = "".join(f"<vcpupin vcpu='{n}' cpuset='{pins}'/>" for n in range(vcpus) if pins)
    body = f"<cputune><shares>7</shares>{tune}</cputune><cpu mode='host-model'>{inner}</cpu>"
    devices = "".join(hostdev(f"0000:{0x10 + n:02x}:00.0") for n in range(len(scene["homes"])))
    return domain(body, vcpus=vcpus, memory=scene["memory"], devices=devices)


def unmendable(scene):
    """What no placement mends: a host without a CPU to spare, odd vCPUs on cores of two threads, a
    vCPU that cannot be near devices on several nodes."""
    vcpus, cells = scene["vcpus"], max(1, scene["cells"])
    found = set()
    if vcpus == scene["nodes"] * scene["cores"] * scene["threads"]:
        found |= {"emulator", "unpinned"}
    if scene["threads"] == 2 and vcpus // cells % 2:
        found |= {"pin-threads"}
    if vcpus < len(set(scene["homes"])):
        found |= {"device-far"}
    return found


@MANY
@given(scenes())
def test_the_printed_elements_leave_nothing_to_find(scene):
    cards = [(f"0000:{0x10 + n:02x}:00.0", home) for n, home in enumerate(scene["homes"])]
    root = host(scene["nodes"], scene["cores"], scene["threads"], cards=cards)
    xml = written(scene)
    judged = compare(xml, root, "host")
    if not judged.xml:
        return
    better = compare(pasted(xml, judged.xml), root, "host")
    left = {one.check: one for one in better.findings if one.severity in ("fail", "warn")}
    assert set(left) & PLACEMENT <= unmendable(scene), left.values()
    assert better.xml == []
