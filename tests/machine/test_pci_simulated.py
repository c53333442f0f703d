"""Every simulated machine's PCI functions are read back as they were rendered."""

import msgspec
import pytest

from linkgauge.backends.sim import SimBackend
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Evidence
from linkgauge.machine.details import read_details
from linkgauge.machine.pci import read_pci
from linkgauge.model.inventory import Inventory, PciLink
from linkgauge.model.machine import Machine
from linkgauge.model.pci_tree import PciTree
from machine_kit import OF_HOSTS, SWITCHED
from sim_tree import as_read, tree_of, write


def made(name):
    return SimBackend(parse_description(load(name)[1]))


def simulated(name):
    return tree_of(made(name))


@pytest.mark.parametrize("name", OF_HOSTS)
def test_every_field_reads_back(name):
    backend = made(name)
    read = Inventory(pci=read_pci(simulated(name))[0])
    assert as_read(read).pci == as_read(backend.look()).pci
    found = {function.address: function for function in read.pci}
    devices = {device.pci: device for device in backend.devices()}
    assert devices.keys() <= found.keys()
    virtual = parse_description(load(name)[1]).host.hypervisor is not None
    for address, function in found.items():
        assert (function.port == "endpoint") is (address in devices)
        assert (function.parent is None) is (function.port == "root port")
        assert function.parent is None or function.parent in found
        assert (function.iommu_group is None) is virtual
        assert set(function.errors) == {"correctable", "nonfatal", "fatal"}
        assert not function.display
        if address in devices:
            assert function.numa_node == devices[address].near
        if function.link != PciLink():
            assert None not in msgspec.structs.astuple(function.link)
            assert None not in (function.max_payload, function.max_read_request)


@pytest.mark.parametrize("name", ["rbln-32", "vm-degraded"])
def test_the_written_tree_reads_like_the_one_in_memory(name, tmp_path):
    write(simulated(name), tmp_path)
    assert read_pci(tmp_path) == read_pci(simulated(name))


def test_rbln_32_has_the_distances_that_its_page_prints():
    devices = [device.pci for device in made("rbln-32").devices()]
    tree = PciTree(read_pci(simulated("rbln-32"))[0])
    for row, one in enumerate(devices):
        assert [tree.distance(one, other) for other in devices] == [
            0 if row == column else 4 if row // 4 == column // 4 else 8 for column in range(32)
        ]
    first = [tree.topo_class(devices[0], other) for other in devices]
    assert first[:4] == [None, "PIX", "PIX", "PIX"]
    assert set(first[4:16]) <= {"PHB", "NODE"}
    assert set(first[16:]) == {"SYS"}


def test_a_link_trained_low_shows():
    functions, _ = read_pci(simulated("vm-degraded"))
    (device,) = [function for function in functions if function.address == "0000:01:00.0"]
    assert device.link == PciLink(2.5, 16, 32.0, 16, 2.5)


def test_acs_is_read_of_ports_that_lead_down():
    tree = tree_of(SimBackend(parse_description(SWITCHED)))
    functions = {function.address: function for function in read_pci(tree)[0]}
    found = {}
    for function in functions.values():
        assert not [line for line in function.unknown if line.startswith("acs")]
        found.setdefault((function.port, function.acs), []).append(function.address)
    both = ("request redirect", "completion redirect")
    assert {kind: len(addresses) for kind, addresses in found.items()} == {
        ("root port", ()): 2,
        ("upstream port", None): 2,
        ("downstream port", both): 2,
        ("downstream port", ()): 2,
        ("endpoint", None): 4,
    }
    ends = found["endpoint", None][:2]
    assert [functions[address].parent for address in ends] == found["downstream port", both]


@pytest.mark.parametrize("state", ["passthrough", "translating"])
def test_the_iommu_is_read_as_it_is_described(state):
    text = SWITCHED.replace("iommu: translating", f"iommu: {state}")
    assert read_details(tree_of(SimBackend(parse_description(text)))).iommu == state


@pytest.mark.parametrize("set_so", [True, False])
def test_the_doctor_finds_ports_that_redirect_and_an_iommu_that_translates(set_so):
    good = SWITCHED.replace("true", "false").replace("translating", "passthrough")
    text = SWITCHED if set_so else good
    backend = SimBackend(parse_description(text))
    machine = Machine(
        host=backend.host(),
        devices={"sim": backend.devices()},
        inventory=backend.look(),
    )
    found = [one for one in diagnose(Evidence(machine)) if one.check in ("acs", "iommu")]
    assert {finding.severity for finding in found} == ({"warn"} if set_so else set())
    told = " ".join(f"{finding.subject} {finding.found}" for finding in found)
    assert ("redirects the peer traffic of sim:0-sim:1" in told) is set_so
    assert "sim:2" not in told
