"""A simulated machine is what its readers would find in the files that it would have."""

import pytest

from linkgauge.backends.sim.backend import SimBackend
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.faults import parse_fault
from linkgauge.backends.sim.machine import parts_of
from linkgauge.machine.host import read_host
from linkgauge.machine.read_inventory import read_inventory
from linkgauge.model.errors import InputError
from machine_kit import MACHINES, SWITCHED
from sim_tree import as_read, tree_of

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


@pytest.mark.parametrize("text", [*TEXTS, *MACHINES])
@pytest.mark.parametrize("faults", [[], ["slow * rate=30%"]])
def test_its_values_are_what_readers_find_in_its_files(text, faults):
    description = parse_description(TEXTS.get(text) or load(text)[1])
    backend = SimBackend(parts_of(description), list(map(parse_fault, faults)))
    backend.enter({4: ()}, "measure")
    tree = tree_of(backend)
    assert as_read(read_inventory(tree)) == as_read(backend.look())
    assert read_host(tree) == backend.host()


def test_a_domain_without_buses_left_is_an_error():
    devices = ", ".join(f'"0000:{bus:02x}:00.0"' for bus in range(256))
    text = f"""
source: a test
host: {{cpu_model: x, nodes: [{{cpus: 1, memory: 1G}}]}}
devices: [{{count: 256, model: x, memory: 1M, pci: [{devices}]}}]
"""
    with pytest.raises(InputError, match="domain 0000 has no PCI bus left"):
        tree_of(SimBackend(parts_of(parse_description(text))))
