"""A guest that contradicts its domain gets each contradiction named, and none invented.

Domains with the guests that QEMU and Linux make of them: some of what a guest shows is changed, and
exactly that must be found.
"""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    """The domain as XML: two threads a core, three cores a cell."""
    cells = ""
    for index, (cpus, size) in enumerate(zip(guest["vcpus"], guest["sizes"], strict=True)):
        rows = "".join(f"<sibling id='{b}' value='{distance(index, b)}'/>" for b in (0, 1))
        cells += (
            f"<cell id='{index}' cpus='{','.join(map(str, cpus))}' memory='{size}' unit='GiB'>"
            f"<distances>{rows}</distances></cell>"
        )
    several = len(guest["vcpus"]) > 1
    body = (
        f"<cpu><topology sockets='2' dies='1' cores='3' threads='2'/>"
        f"{f'<numa>{cells}</numa>' if several else ''}</cpu>"
        "<memoryBacking><hugepages/></memoryBacking>"
    )
    return domain(body, vcpus=12, memory=sum(guest["sizes"]), devices=FAR if several else PORT)


def in_cells(*vcpus):
    """A guest of these cells, in plain values: nodes come in the order of their CPUs."""
    ranks = sorted(range(len(vcpus)), key=lambda cell: vcpus[cell][0])
    several = len(vcpus) > 1
    node_of = {cell: node for node, cell in enumerate(ranks)}
    return {
        "sockets": 2, "threads": 2, "online": list(range(12)), "node_of": node_of,
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
    "interleaved": lambda: in_cells((0, 1, 4, 5, 8, 9), (2, 3, 6, 7, 10, 11)),
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
    return {("cells", "cells")}


def no_vcpu(guest):
    guest["online"].pop()
    return {("vcpus", "vCPUs")}


def other_threads(guest):
    guest["threads"] = 1
    return {("threads", "topology")}


def other_sockets(guest):
    guest["sockets"] = 12 // guest["threads"]
    return {("sockets", "topology")}


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
