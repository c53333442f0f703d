"""A simulated machine is what its readers would find, and its files agree with each other."""

import json
import os

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.backends.sim import SimBackend
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.faults import parse_fault
from linkgauge.backends.sim.hardware import build
from linkgauge.machine.accelerators import ACCELERATORS
from linkgauge.machine.host import read_host
from linkgauge.machine.read_inventory import read_inventory
from linkgauge.machine.tree import Captured
from linkgauge.model.errors import InputError
from linkgauge.model.inventory import PciFunction, PciLink
from linkgauge.model.machine import Machine
from linkgauge.model.pcie import SPEEDS
from machine_kit import MACHINES, OF_HOSTS, SWITCHED
from sim_tree import as_read, tree_of, write
from sim_tree import rendered as rendered_of
from sim_tree.host import host_files
from sim_tree.registers import PORTS, Buses, config_space

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


@pytest.mark.parametrize("text", [*TEXTS, *MACHINES])
def test_its_values_are_plain_ones_that_are_kept_in_files(text):
    backend = made(TEXTS.get(text) or machine(text))
    kept = Machine(host=backend.host(), inventory=backend.look())
    assert msgspec.json.decode(msgspec.json.encode(kept), type=Machine) == kept


def test_a_link_that_the_description_leaves_out_is_not_described():
    functions = made(machine("riscv-2gpu")).look().pci
    (why,) = {
        line.partition(": ")[2]
        for function in functions if function.link == PciLink()
        for line in function.unknown if line.startswith("link.")
    }  # fmt: skip
    assert why == "not described: the machine's description gives no PCIe link of it"


def test_the_written_tree_reads_like_the_one_in_memory(tmp_path):
    tree = rendered(SMALL)
    write(tree, tmp_path)
    assert read_host(tmp_path) == read_host(Captured(tree.files))
    assert read_host(tmp_path) == made(SMALL).host()
    assert as_read(read_inventory(tmp_path)) == as_read(made(SMALL).look())
    for path in tree.links:
        assert (tmp_path / path).is_symlink()
    for address, folder in Sysfs(tree).folders.items():
        device = tmp_path / "sys/bus/pci/devices" / address
        assert device.resolve() == (tmp_path / folder).resolve()
        group = (device / "iommu_group").readlink().name
        members = tmp_path / "sys/kernel/iommu_groups" / group / "devices"
        assert [member.resolve() for member in members.iterdir()] == [device.resolve()]


def test_cpus_belong_to_sockets_and_cores_and_nodes_have_distances():
    files = rendered(SMALL).files
    cpu = "sys/devices/system/cpu/cpu{}/topology/{}"
    assert [files[cpu.format(n, "core_id")] for n in range(4)] == [b"0\n", b"0\n", b"1\n", b"1\n"]
    assert files[cpu.format(3, "physical_package_id")] == b"0\n"
    assert files[cpu.format(4, "physical_package_id")] == b"1\n"
    assert files["sys/devices/system/node/node1/distance"] == b"255 10\n"  # no link to it


def test_every_bridge_above_a_device_is_shown():
    sysfs = Sysfs(rendered(SMALL))
    first, second, third, fourth, fifth = (f"0000:{bus:02x}:00.0" for bus in range(0x10, 0x15))
    ports = ["downstream port", "upstream port"]
    for address, expected in (
        (first, [*ports, *ports, "root port"]),
        (second, [*ports, "root port"]),
        (third, ["root port"]),
        (fourth, ["root port"]),
        (fifth, ["root port"]),
    ):
        assert sysfs.config(address).port == "endpoint"
        assert [sysfs.config(bridge).port for bridge in sysfs.above(address)] == expected
    outer, root = sysfs.above(first)[-2:]
    assert sysfs.above(second)[-2:] == [outer, root]
    assert sysfs.text(outer, "vendor") == "0x1000"


def test_only_bridges_above_a_device_are_shown():
    sysfs = Sysfs(rendered(SMALL))
    ports = [sysfs.config(address).port for address in sysfs.folders]
    # A root port for each of outer, sim:2, sim:3 and sim:4; downstream ports for sim:0, 1, inner.
    assert [ports.count(kind) for kind in PORTS] == [5, 4, 2, 3]
    # The root complex of host:0 and host:1 itself.
    assert len({folder.split("/")[2] for folder in sysfs.folders.values()}) == 2


@pytest.mark.parametrize("text", [SMALL, *map(machine, OF_HOSTS)], ids=["small", *OF_HOSTS])
def test_registers_sysfs_and_buses_agree(text):
    sysfs = Sysfs(rendered(text))
    for address in sysfs.folders:
        registers = sysfs.config(address)
        assert registers.word(0x00) == int(sysfs.text(address, "vendor"), 16)
        assert registers.word(0x02) == int(sysfs.text(address, "device"), 16)
        assert registers.word(0x08, 4) >> 8 == int(sysfs.text(address, "class"), 16)
        if sysfs.text(address, "current_link_speed") == "Unknown":
            assert sysfs.text(address, "current_link_width") == "0"
            assert registers.express(0x12) == 0
        else:
            link = registers.link
            assert sysfs.text(address, "current_link_speed") == f"{link.speed:.1f} GT/s PCIe"
            assert sysfs.text(address, "max_link_speed") == f"{link.max_speed:.1f} GT/s PCIe"
            assert sysfs.text(address, "current_link_width") == str(link.width)
            assert sysfs.text(address, "max_link_width") == str(link.max_width)
        is_bridge = registers.port != "endpoint"
        assert registers.word(0x0E, 1) == is_bridge
        assert (sysfs.text(address, "class") == "0x060400") is is_bridge
        for bridge in sysfs.above(address)[:1]:
            assert sysfs.config(bridge).word(0x19, 1) == int(address.split(":")[1], 16)
            assert sysfs.text(bridge, "secondary_bus_number") == str(int(address.split(":")[1], 16))
        assert sysfs.text(address, "aer_dev_fatal").endswith("TOTAL_ERR_FATAL 0")


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


def test_what_a_vendors_library_tells_stands_beside_the_links():
    first, *_, last = accelerators(rendered(SMALL))
    fabric = {"kind": "fabric", "active": True, "version": None, "rate": 25e9, "errors": 0}
    assert first["links"] == [{"index": n, "remote": "sim:1", **fabric} for n in range(4)]
    assert (last["max_clock"], last["memory_clock"]) == (5e6, 7e6)
    assert last["links"][0]["remote"] == "host:1"


def test_links_show_what_they_were_trained_to_and_what_they_could():
    sysfs = Sysfs(rendered(SMALL))
    assert sysfs.config("0000:10:00.0").link == PciLink(16.0, 16, 32.0, 16, 16.0)
    assert sysfs.config("0000:10:00.0").sizes == (256, 512)
    assert sysfs.config("0000:12:00.0").link == PciLink(8.0, 4, 8.0, 8, 8.0)
    assert sysfs.config("0000:12:00.0").sizes == (128, 4096)
    assert sysfs.text("0000:13:00.0", "max_link_speed") == "Unknown"


def test_a_virtual_machine_has_no_iommu_groups_and_says_what_it_is():
    tree = rendered(machine("vm-degraded"))
    assert not [path for path in tree.links if "iommu" in path]
    assert tree.files["sys/class/dmi/id/sys_vendor"] == b"QEMU\n"
    assert b"hypervisor" in tree.files["proc/cpuinfo"]


def test_a_degraded_link_shows_in_status_and_target_speed():
    sysfs = Sysfs(rendered(machine("vm-degraded")))
    registers = sysfs.config("0000:01:00.0")
    assert (registers.link.speed, registers.link.max_speed, registers.link.width) == (2.5, 32, 16)
    assert registers.express(0x30) & 0xF == 1
    assert sysfs.text("0000:01:00.0", "current_link_speed") == "2.5 GT/s PCIe"


def test_rbln_32_has_the_distances_and_links_that_its_page_prints():
    tree = rendered(machine("rbln-32"))
    sysfs = Sysfs(tree)
    addresses = [entry["pci"] for entry in accelerators(tree)]
    assert [addresses[n] for n in (0, 1, 30, 31)] == [
        "0000:05:00.0", "0000:06:00.0", "0000:ce:00.0", "0000:cf:00.0",
    ]  # fmt: skip
    for row, one in enumerate(addresses):
        expected = [0 if row == n else 4 if row // 4 == n // 4 else 8 for n in range(32)]
        assert [p2p_distance(sysfs, one, other) for other in addresses] == expected
    assert [sysfs.text(addresses[n], "numa_node") for n in (0, 1, 30, 31)] == ["0", "0", "1", "1"]
    registers = sysfs.config(addresses[0])
    assert registers.link == PciLink(32.0, 16, 32.0, 16, 32.0)
    assert registers.sizes == (512, 512)
    assert sysfs.text(addresses[0], "device") == "0x1250"


def test_bus_numbers_of_rbln_32_nest():
    sysfs = Sysfs(rendered(machine("rbln-32")))
    for address in sysfs.folders:
        inner = [int(address.split(":")[1], 16)]
        for bridge in sysfs.above(address):
            registers = sysfs.config(bridge)
            low, high = registers.word(0x19, 1), registers.word(0x1A, 1)
            assert all(low <= bus <= high for bus in inner)
            inner += [low, high]


def test_a_domain_without_buses_left_is_an_error():
    devices = ", ".join(f'"0000:{bus:02x}:00.0"' for bus in range(256))
    text = f"""
source: a test
host: {{cpu_model: x, nodes: [{{cpus: 1, memory: 1G}}]}}
devices: [{{count: 256, model: x, memory: 1M, pci: [{devices}]}}]
"""
    with pytest.raises(InputError, match="domain 0000 has no PCI bus left"):
        rendered(text)


@given(
    st.sampled_from(list(PORTS)),
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 5),
    st.sampled_from([1, 2, 4, 8, 16, 32]),
    st.tuples(*[st.integers(0, 255)] * 3),
)
def test_registers_tell_what_was_put_in(port, speed, most, payload, request, width, buses):
    link = PciLink(SPEEDS[speed], width, SPEEDS[most], 32, SPEEDS[speed])
    sizes = 128 << payload, 128 << request
    function = PciFunction(
        address="0000:01:00.0", vendor=0x10DE, device=0x2335, class_code=0x030200, port=port,
        link=link, max_payload=sizes[0], max_payload_supported=sizes[0], max_read_request=sizes[1],
    )  # fmt: skip
    registers = Registers(config_space(function, Buses(*buses)))
    assert (registers.port, registers.link, registers.sizes) == (port, link, sizes)
    assert tuple(registers.word(at, 1) for at in (0x18, 0x19, 0x1A)) == buses
