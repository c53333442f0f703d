"""A guest that contradicts its domain gets each contradiction named, and none invented.

Domains are drawn with the guest that QEMU and Linux would make of them; then some of what the guest
shows is changed, and exactly that must be found.
"""

from itertools import chain

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
OTHER = "99999999-2222-4333-8444-555555555555"


@st.composite
def scenes(draw):
    """What a domain asks for, in plain values."""
    cells, threads = draw(st.integers(0, 3)), draw(st.sampled_from((1, 2)))
    per_cell, sizes = draw(st.integers(2, 4)), st.integers(4, 16)
    cores = max(1, cells) * per_cell
    order = draw(st.permutations(range(cells))) if draw(st.booleans()) else range(cells)
    return {
        "cells": cells,
        "threads": threads,
        "cores": cores,
        "sockets": draw(st.sampled_from([n for n in (1, 2, cells or 1, cores) if cores % n == 0])),
        "sizes": [draw(sizes) for _ in range(cells or 1)],
        "order": list(order),
        "interleaved": draw(st.booleans()),
        "distances": cells > 1 and draw(st.booleans()),
        "hugepages": draw(st.booleans()),
        "devices": [draw(st.sampled_from(("bus", "port", *range(cells if cells > 1 else 0))))
                    for _ in range(draw(st.integers(0, 3)))],
    }  # fmt: skip


def cell_vcpus(scene):
    """The vCPUs of each cell, in whole cores."""
    cells, cores, threads = scene["cells"], scene["cores"], scene["threads"]
    found = [[] for _ in range(cells)]
    for core in range(cores if cells else 0):
        place = core % cells if scene["interleaved"] else core * cells // cores
        found[scene["order"][place]] += range(core * threads, (core + 1) * threads)
    return found


def distance(one, other):
    return 10 if one == other else 21 + abs(one - other)


def written(scene):
    """The scene as XML."""
    vcpus = scene["cores"] * scene["threads"]
    cores = scene["cores"] // scene["sockets"]
    rows = [
        "".join(f"<sibling id='{b}' value='{distance(a, b)}'/>" for b in range(scene["cells"]))
        for a in range(scene["cells"] if scene["distances"] else 0)
    ]
    cells = "".join(
        f"<cell id='{index}' cpus='{','.join(map(str, cpus))}' memory='{size}' unit='GiB'>"
        f"{f'<distances>{rows[index]}</distances>' if rows else ''}</cell>"
        for index, (cpus, size) in enumerate(zip(cell_vcpus(scene), scene["sizes"], strict=False))
    )
    body = (
        f"<cpu><topology sockets='{scene['sockets']}' dies='1' cores='{cores}' "
        f"threads='{scene['threads']}'/>{f'<numa>{cells}</numa>' if cells else ''}</cpu>"
        f"{'<memoryBacking><hugepages/></memoryBacking>' if scene['hugepages'] else ''}"
    )
    return domain(body, vcpus=vcpus, memory=sum(scene["sizes"]), devices=devices(scene))


def devices(scene):
    """Cards on the root bus, below a root port, or below the expander of a cell."""
    text = "".join(
        expander(40 + cell, 10 + cell, 0x80 + 0x10 * cell, cell) for cell in range(scene["cells"])
    )
    for number, place in enumerate(scene["devices"]):
        at = (0, 20 + number, 0) if place == "bus" else (50 + number, 0, 0)
        if place == "port":
            text += root_port(50 + number, 20 + number)
        elif place != "bus":
            text += root_port(50 + number, number, bus=40 + place)
        text += hostdev(f"0000:{0x10 + number:02x}:00.0", at)
    return text


def routes(scene):
    """Where a guest's firmware puts them: it numbers the buses below root ports itself."""
    found = []
    for number, place in enumerate(scene["devices"]):
        root = 0 if place in ("bus", "port") else 0x80 + 0x10 * place
        slot = number if root else 20 + number
        first = f"0000:{root:02x}:{slot:02x}.0"
        below = "" if place == "bus" else f"/0000:{root + 1 + number:02x}:00.0"
        found.append(f"pci0000:{root:02x}/{first}{below}")
    return found


def seen(scene):
    """What a kernel shows of it: nodes in the order of their CPUs, memory without the kernel's."""
    vcpus = cell_vcpus(scene)
    ranks = sorted(range(scene["cells"]), key=lambda cell: vcpus[cell][0])
    node_of = {cell: node for node, cell in enumerate(ranks)}
    everyone = range(scene["cores"] * scene["threads"])
    return {
        "sockets": scene["sockets"],
        "threads": scene["threads"],
        "online": list(everyone),
        "node_of": node_of or {0: 0},
        "vcpus": [list(cpus) for cpus in vcpus] or [list(everyone)],
        "sizes": [size * GIB * 63 // 64 - 100 * MIB for size in scene["sizes"]],
        "distances": {a: {b: distance(a, b) for b in node_of} for a in node_of},
        "thp": "madvise",
        "routes": routes(scene),
        "nodes": [node_of.get(place, -1) for place in scene["devices"]],
        "uuid": UUID,
    }  # fmt: skip


def shown(guest):
    """The guest's files."""
    vcpus = len(guest["online"]) + guest.get("offline", 0)
    cells = guest["node_of"]
    nodes = {
        cells[cell]: ([c for c in cpus if c in guest["online"]], guest["sizes"][cell])
        for cell, cpus in enumerate(guest["vcpus"])
    }
    rows = {
        cells[a]: [guest["distances"][a][b] for b in sorted(row, key=cells.get)]
        for a, row in guest["distances"].items()
    }
    return tree(
        sockets=guest["sockets"], cores=vcpus // guest["threads"] // guest["sockets"],
        threads=guest["threads"], online=guest["online"], nodes=dict(sorted(nodes.items())),
        distances=rows, thp=guest["thp"], bus=guest_bus(*guest["routes"], nodes=guest["nodes"]),
    )  # fmt: skip


# What can be wrong: each changes what the guest shows, and says what is to be found; None where the
# scene has nothing of the kind.


def no_vcpu(scene, guest):
    guest["online"].pop()
    guest["offline"] = 1
    return {("vcpus", "vCPUs")}


def other_sockets(scene, guest):
    cores = scene["cores"] * scene["threads"] // guest["threads"]
    others = [n for n in (1, 2, cores) if cores % n == 0 and abs(n - scene["sockets"]) > 1]
    if not others:
        return None
    guest["sockets"] = others[-1]
    return {("sockets", "topology")}


def other_threads(scene, guest):
    threads = 3 - scene["threads"]
    if len(guest["online"]) == 1 or scene["cores"] * scene["threads"] % (
        threads * scene["sockets"]
    ):
        return None
    guest["threads"] = threads
    return {("threads", "topology")}


def one_node(scene, guest):
    if scene["cells"] < 2:
        return None
    guest["vcpus"], guest["sizes"] = [sorted(chain(*guest["vcpus"]))], [sum(guest["sizes"])]
    guest["node_of"], guest["distances"] = {0: 0}, {0: {0: 10}}
    guest["nodes"] = [-1 for _ in guest["nodes"]]
    return {("cells", "cells")}


def swapped_vcpus(scene, guest):
    if len(guest["vcpus"]) < 2:
        return None
    one, other = guest["vcpus"][:2]
    one[0], other[0] = other[0], one[0]
    return {("cell-vcpus", "cell 0"), ("cell-vcpus", "cell 1")}


def less_memory(scene, guest):
    guest["sizes"][-1] //= 2
    if len(guest["vcpus"]) > 1:
        return {("cell-memory", f"cell {len(guest['sizes']) - 1}")}
    return {("memory", "memory")}


def more_memory(scene, guest):
    guest["sizes"][0] += 3 * GIB + scene["sizes"][0] * GIB // 8
    if len(guest["vcpus"]) > 1:
        return {("cell-memory", "cell 0")}
    return {("memory", "memory")}


def other_distance(scene, guest):
    if not scene["distances"] or len(guest["distances"]) < 2:
        return None
    guest["distances"][0][1] += 5
    return {("cell-distances", "cell 0")}


def no_huge_pages(scene, guest):
    guest["thp"] = "never"
    return {("guest-pages", "huge pages")} if scene["hugepages"] else set()


def no_device(scene, guest):
    if not guest["routes"]:
        return None
    guest["routes"].pop()
    guest["nodes"].pop()
    return {("device", f"0000:{0x10 + len(guest['routes']):02x}:00.0")}


def device_elsewhere(scene, guest):
    places = scene["devices"][: len(guest["routes"])]
    if len(guest["vcpus"]) < 2 or not places or not isinstance(places[0], int):
        return None
    guest["nodes"][0] = -1
    address = guest["routes"][0].rpartition("/")[2]
    return {("device-node", f"{address} (host: 0000:10:00.0)")}


def another_guest(scene, guest):
    guest["uuid"] = OTHER
    return {("domain-uuid", "domain")}


WRONGS = (
    one_node, no_vcpu, other_threads, other_sockets, swapped_vcpus, less_memory, other_distance,
    no_huge_pages, no_device, device_elsewhere, another_guest,
)  # fmt: skip


def unplaced(scene, guest):
    """Devices of which no guest with several cells can know the node: not below an expander."""
    if scene["cells"] < 2:
        return set()
    return {
        ("device-node", f"{route.rpartition('/')[2]} (host: 0000:{0x10 + number:02x}:00.0)")
        for number, route in enumerate(guest["routes"])
        if not isinstance(scene["devices"][number], int)
    }


def check(scene, guest, wanted):
    judged = compare(written(scene), shown(guest), "guest", uuid=guest["uuid"])
    assert contradictions(judged) == wanted | unplaced(scene, guest)


MANY = settings(max_examples=max(100, settings.default.max_examples))


@MANY
@given(scenes())
def test_nothing_is_found_in_a_guest_as_its_domain_makes_it(scene):
    check(scene, seen(scene), set())


@MANY
@given(scenes(), st.lists(st.sampled_from(WRONGS), min_size=1, max_size=5, unique=True))
def test_exactly_what_was_changed_is_found(scene, wrongs):
    guest, wanted = seen(scene), set()
    for wrong in sorted(wrongs, key=WRONGS.index):
        wanted |= wrong(scene, guest) or set()
    check(scene, guest, wanted)


@MANY
@given(scenes())
def test_more_memory_than_the_domain_gives_is_found(scene):
    guest = seen(scene)
    check(scene, guest, more_memory(scene, guest))
