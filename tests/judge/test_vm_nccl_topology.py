"""`vm --nccl-topo`: the guest's cards at its own addresses, below the switches that it lacks."""

from xml.etree import ElementTree as ET

import pytest

from command_kit import called
from linkgauge.machine.captures.archive import pack
from pci_kit import Bus, config
from vm_kit import FULL, GIB, domain, expander, hostdev, root_port, tree

SWITCHED = ("0000:41:00.0", "0000:42:00.0")
LONE = "0000:ca:00.0"
UPSTREAM, DOWNSTREAM = 5, 6
CELLS = (
    "<numatune><memnode cellid='0' mode='strict' nodeset='1'/>"
    "<memnode cellid='1' mode='strict' nodeset='0'/></numatune>"
    "<cpu><numa><cell id='0' cpus='0-3' memory='4' unit='GiB'/>"
    "<cell id='1' cpus='4-7' memory='4' unit='GiB'/></numa></cpu>"
)


@pytest.fixture
def write(tmp_path):
    """`linkgauge vm --nccl-topo` on a host with a switch above two of its three cards."""
    bus = Bus()
    port = bus.add("pci0000:40/0000:40:01.0", config(port=4), **{"class": "0x060400"}, **FULL)
    below = f"{port.removeprefix('sys/devices/')}/0000:4a:00.0"
    bus.bridge(below, config(port=UPSTREAM, class_code=0x060400), **FULL)
    for slot, card in enumerate(SWITCHED):
        bus.bridge(f"{below}/0000:4b:0{slot}.0", config(port=DOWNSTREAM, class_code=0x060400))
        bus.add(f"{below}/0000:4b:0{slot}.0/{card}", config(), numa_node="0", **FULL)
    bus.bridge("pci0000:c0/0000:c0:01.0", **FULL)
    bus.add(f"pci0000:c0/0000:c0:01.0/{LONE}", numa_node="1", **FULL)
    nodes = {0: (range(8), 32 * GIB), 1: (range(8, 16), 32 * GIB)}
    root = tree(guest=False, cores=16, nodes=nodes, bus=bus)
    (tmp_path / "host.tgz").write_bytes(pack(root))

    def written(xml, role="host"):
        (tmp_path / "gpu-vm.xml").write_bytes(xml)
        words = ("vm", "gpu-vm.xml", "--root", "host.tgz", "--as", role)
        done = called(*words, "--nccl-topo", "topo.xml", cwd=tmp_path)
        path = tmp_path / "topo.xml"
        return done, ET.parse(path).getroot() if path.exists() else None

    return written


def places(root):
    """The buses above each card, from its node on, by the card's address."""
    above = {child: parent for parent in root.iter() for child in parent}
    found = {}
    for card in root.iter("pci"):
        if card.get("class") != "0x060400":
            found[card.get("busid")] = line = []
            while (card := above.get(card)) is not None:
                line.append(card.get("numaid") or card.get("busid") or card.tag)
    return found


def test_cards_stand_below_the_hosts_switch_at_the_guests_addresses(write):
    """Ports on bus 0 are numbered by slot and function, whatever their order in the domain."""
    ports = root_port(1, 3) + root_port(2, 2, function=1) + root_port(3, 2)
    devices = ports + hostdev(SWITCHED[0], (1, 0, 0)) + hostdev(SWITCHED[1], (2, 0, 0))
    done, root = write(domain(CELLS, vcpus=8, devices=devices + hostdev(LONE, (3, 0, 0))))
    assert done.returncode in (0, 1), done.stderr
    switch = next(one.get("busid") for one in root.iter("pci") if one.get("class") == "0x060400")
    assert places(root) == {
        "0000:03:00.0": [switch, "1", "system"],
        "0000:02:00.0": [switch, "1", "system"],
        "0000:01:00.0": ["0", "system"],
    }
    assert {one.get("numaid"): one.get("affinity") for one in root} == {
        "0": "0000000f", "1": "000000f0",
    }  # fmt: skip
    card = root.find(".//pci[@busid='0000:03:00.0']")
    assert (card.get("link_speed"), card.get("link_width")) == ("32.0 GT/s PCIe", "16")


def test_buses_below_an_expander_follow_its_own(write):
    devices = expander(1, 5, 0x80, 1) + root_port(2, 0, bus=1) + hostdev(LONE, (2, 0, 0))
    _, root = write(domain(CELLS, vcpus=8, devices=devices))
    assert places(root) == {"0000:81:00.0": ["1", "system"]}


def test_a_domain_that_leaves_addresses_open_is_refused(write):
    done, root = write(domain(devices=hostdev(LONE)))
    assert (done.returncode, root) == (2, None)
    assert f"does not say where {LONE} is in the guest" in done.stderr


def test_a_guest_does_not_know_its_hosts_switches(write):
    done, root = write(domain(devices=root_port(1, 2) + hostdev(LONE, (1, 0, 0))), "guest")
    assert (done.returncode, root) == (2, None)
    assert "only the host knows its switches" in done.stderr
