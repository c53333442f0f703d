"""A simulated machine is what its readers would find, and its files agree with each other."""

import json
import os

import pytest

from linkgauge.backends.sim import SimBackend
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.faults import parse_fault
from linkgauge.backends.sim.hardware import build
from linkgauge.machine.accelerators import ACCELERATORS
from linkgauge.machine.host import read_host
from linkgauge.machine.read_inventory import read_inventory
from linkgauge.machine.tree import Captured
from linkgauge.model.errors import InputError
from linkgauge.model.inventory import PciLink
from linkgauge.model.pcie import SPEEDS
from machine_kit import MACHINES, OF_HOSTS, SWITCHED
from sim_tree import as_read, tree_of
from sim_tree import rendered as rendered_of
from sim_tree.host import host_files
from sim_tree.registers import PORTS

SMALL = """
source: a test
host:
  hostname: small
  cpu_model: Test CPU
  sockets: 2
  threads_per_core: 2
  nodes:
    - {count: 2, cpus: 4, memory: 8G, cache: 12M}
link_kinds:
  wide: {kind: pcie, speed: 16, width: 16, max_speed: 32}
  narrow: {kind: pcie, speed: 8, width: 4, max_width: 8, max_payload: 128, max_read_request: 4096}
  fabric: {kind: fabric, rate: 25 GB/s, count: 4}
  chip: {kind: internal, rate: 100 GB/s}
  root: {kind: internal, rate: 100 GB/s}
switches:
  - {name: outer, kind: pcie, vendor_id: 0x1000, device_id: 0xC010}
  - {name: inner, kind: pcie}
  - {name: idle, kind: pcie}
  - {name: complex, kind: root}
devices:
  - {count: 4, model: Card, memory: 1G, vendor_id: 0x10DE, device_id: 0x2335}
  - {model: Odd, memory: 2G, numa_node: 0, properties: {clocks_mhz: {sm: 5, memory: 7}}}
links:
  - {kind: wide, pairs: [[sim:0, inner], [sim:1, outer], [inner, outer], [outer, host:1]]}
  - {kind: wide, pairs: [[idle, host:0]]}
  - {kind: narrow, pairs: [[sim:2, complex]]}
  - {kind: root, pairs: [[complex, host:0]]}
  - {kind: chip, pairs: [[sim:3, host:1], [sim:4, host:1]]}
  - {kind: fabric, pairs: [[sim:0, sim:1]]}
"""

HOST = "source: a test\nhost: {cpu_model: A, sockets: 2, nodes: [{count: 3, cpus: 5, memory: 1G}]"
TEXTS = {
    "small": SMALL,
    "switched": SWITCHED,
    "without devices": f"{HOST}, architecture: ppc64le, threads_per_core: 2}}\n",
    "virtual": f"{HOST}, hypervisor: KVM, iommu: translating}}\n"
    "devices: [{count: 2, model: Card, memory: 1G}]\n",
}


def made(text):
    return SimBackend(parse_description(text))


def rendered(text):
    return rendered_of(made(text))


def machine(name):
    return load(name)[1]


def accelerators(tree):
    return json.loads(tree.files[ACCELERATORS])


class Sysfs:
    """Reads the PCI part of a rendered tree as lspci does."""

    def __init__(self, tree):
        self.files = tree.files
        self.folders = {
            path.rpartition("/")[2]: os.path.normpath(f"{path}/../{target}")
            for path, target in tree.links.items()
            if path.startswith("sys/bus/pci/devices/")
        }

    def text(self, address, name):
        return self.files[f"{self.folders[address]}/{name}"].decode().rstrip("\n")

    def above(self, address):
        """Addresses of the bridges above, the closest first."""
        return self.folders[address].split("/")[3:-1][::-1]

    def config(self, address):
        return Registers(self.files[f"{self.folders[address]}/config"])


class Registers:
    """Reads registers of configuration space, finding the capability by its list."""

    def __init__(self, space):
        self.space = space
        at = self.word(0x34, 1)
        while self.word(at, 1) != 0x10:
            at = self.word(at + 1, 1)
        self.at = at

    def word(self, offset, width=2):
        return int.from_bytes(self.space[offset : offset + width], "little")

    def express(self, offset, width=2):
        return self.word(self.at + offset, width)

    @property
    def port(self):
        number = self.express(0x02) >> 4 & 0xF
        return next(port for port, code in PORTS.items() if code == number)

    @property
    def link(self):
        capable, status = self.express(0x0C, 4), self.express(0x12)
        return PciLink(
            SPEEDS[(status & 0xF) - 1],
            status >> 4 & 0x3F,
            SPEEDS[(capable & 0xF) - 1],
            capable >> 4 & 0x3F,
            SPEEDS[(self.express(0x30) & 0xF) - 1],
        )

    @property
    def sizes(self):
        """Of packets and of read requests."""
        control = self.express(0x08)
        return 128 << (control >> 5 & 7), 128 << (control >> 12 & 7)


def p2p_distance(sysfs, one, other):
    """The kernel's: steps up from both to the bridge that they share, of all if there is none."""
    ours, theirs = ([address, *sysfs.above(address)] for address in (one, other))
    for steps, bridge in enumerate(ours):
        if bridge in theirs:
            return steps + theirs.index(bridge)
    return len(ours) + len(theirs)


@pytest.mark.parametrize("name", OF_HOSTS)
def test_the_host_is_read_as_it_is_described(name):
    description = parse_description(machine(name))
    hardware, backend = build(description), SimBackend(description)
    host = read_host(Captured(host_files(backend.host(), backend.look().host)))
    assert host == backend.host()
    about = description.host
    assert (host.hostname, host.system, host.kernel) == (about.hostname, about.system, about.kernel)
    assert (host.architecture, host.cpu_model) == (about.architecture, about.cpu_model)
    assert host.cpus == sum(len(node.cpus) for node in hardware.nodes)
    assert [(n.index, n.cpus, n.memory_total) for n in host.nodes] == [
        (n.index, n.cpus, n.group.memory) for n in hardware.nodes
    ]
    assert host.memory_total == sum(n.group.memory for n in hardware.nodes)
    assert host.last_level_cache == sum(n.group.cache for n in hardware.nodes)
    assert 0 < host.memory_available < host.memory_total
    assert (host.memlock_limit, host.transparent_huge_pages) == (None, "madvise")


@pytest.mark.parametrize("text", [*TEXTS, *MACHINES])
@pytest.mark.parametrize("faults", [[], ["slow * rate=30%"]])
def test_its_values_are_what_readers_find_in_its_files(text, faults):
    description = parse_description(TEXTS.get(text) or machine(text))
    backend = SimBackend(description, list(map(parse_fault, faults)))
    backend.enter({4: ()}, "measure")
    tree = tree_of(backend)
    assert as_read(read_inventory(tree)) == as_read(backend.look())
    assert read_host(tree) == backend.host()


@pytest.mark.parametrize("text", [SMALL, *map(machine, OF_HOSTS)], ids=["small", *OF_HOSTS])
def test_devices_accelerators_and_the_pci_tree_agree(text):
    backend = SimBackend(parse_description(text))
    tree = rendered(text)
    sysfs, told = Sysfs(tree), accelerators(tree)
    devices = backend.devices()
    assert len(told) == len(devices)
    for device, entry in zip(devices, told, strict=True):
        assert (entry["memory"], entry["model"]) == (device.memory, device.model)
        assert (entry["pci"], entry["uuid"]) == (device.pci, device.uuid)
        assert entry["driver"] == device.driver
        assert sysfs.text(device.pci, "numa_node") == str(device.near)
    assert len({device.pci for device in devices}) == len(devices)
    assert backend.host() == read_host(Captured(tree.files))


def test_a_domain_without_buses_left_is_an_error():
    devices = ", ".join(f'"0000:{bus:02x}:00.0"' for bus in range(256))
    text = f"""
source: a test
host: {{cpu_model: x, nodes: [{{cpus: 1, memory: 1G}}]}}
devices: [{{count: 256, model: x, memory: 1M, pci: [{devices}]}}]
"""
    with pytest.raises(InputError, match="domain 0000 has no PCI bus left"):
        rendered(text)
