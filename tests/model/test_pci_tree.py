"""How far PCI functions are apart, in hops and as nvidia-smi names it."""

import re

import pytest

from command_kit import called
from pci_kit import Bus

A, B = "0000:10:00.0", "0000:11:00.0"
HOPS = re.compile(r"\(hops, not counting links between sockets\): (\S+) between")
CLASS = re.compile(r"Topology class: (\S+) between")


def shown(folder, *routes):
    """Hops and class of the two cards at the ends of these routes, each (its folders, its node)."""
    bus = Bus()
    for route, node in routes:
        steps = route.split("/")
        for end in range(2, len(steps)):
            bus.bridge("/".join(steps[:end]), numa_node=node)
        bus.add(route, numa_node=node)
    bus.write(folder)
    for node in {node for _, node in routes} | {0}:
        own = folder / f"sys/devices/system/node/node{node}"
        own.mkdir(parents=True)
        (own / "cpulist").write_text(f"{node}\n")
    out = " ".join(called("devices", "--root", folder).stdout.split())
    hops, name = HOPS.search(out), CLASS.search(out)
    return hops and hops[1], name and name[1]


ROOT, OTHER, FAR = (f"pci0000:{bus}/0000:{bus}:0{port}.0"
                    for bus, port in (("00", 1), ("00", 2), ("40", 1)))  # fmt: skip
SWITCH = f"{ROOT}/0000:01:00.0"


@pytest.mark.parametrize(
    ("one", "other", "node", "hops", "name"),
    [
        # Two functions of one card.
        (f"{ROOT}/{A}", f"{ROOT}/{B}", 0, "2", "PIX"),
        # Below ports of one switch, or one of them below a second one.
        (f"{SWITCH}/0000:01:10.0/{A}", f"{SWITCH}/0000:01:11.0/{B}", 0, "4", "PIX"),
        (f"{SWITCH}/0000:01:10.0/{A}", f"{SWITCH}/0000:01:11.0/0000:02:00.0/{B}", 0, "5", "PXB"),
        (f"{SWITCH}/0000:01:10.0/{A}", f"{SWITCH}/0000:01:11.0/0000:02:00.0/0000:03:00.0/{B}", 0,
         "6", "PXB"),
        # Below ports of one host bridge.
        (f"{ROOT}/{A}", f"{OTHER}/{B}", 0, "4", "PHB"),
        (f"pci0000:10/{A}", f"pci0000:10/0000:10:01.0/{B}", 0, "3", "PHB"),
        (f"{SWITCH}/0000:01:10.0/{A}", f"{OTHER}/0000:02:00.0/0000:02:10.0/{B}", 0, "8", "PHB"),
        # Below host bridges of one node, of two, of none.
        (f"{ROOT}/{A}", f"{FAR}/{B}", 0, "4", "NODE"),
        (f"{ROOT}/{A}", f"{FAR}/{B}", 1, "4", "SYS"),
        (f"{ROOT}/{A}", f"pci0001:00/0001:00:01.0/{B}", 1, "4", "SYS"),
    ],
)  # fmt: skip
def test_hops_and_class(one, other, node, hops, name, tmp_path):
    assert shown(tmp_path, (one, 0), (other, node)) == (hops, name)
