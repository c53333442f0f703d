"""Every simulated machine's PCI functions are read back as they were rendered."""

import pytest

from linkgauge.backends.sim import SimBackend
from linkgauge.backends.sim.description import load, parse_description, shipped
from linkgauge.backends.sim.hardware import build
from linkgauge.backends.sim.pci import functions as described
from linkgauge.backends.sim.registers import PortType
from linkgauge.backends.sim.render import render, write
from linkgauge.backends.sim.symptoms import Symptoms
from linkgauge.backends.sim.topology import Topology
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Evidence
from linkgauge.machine.details import read_details
from linkgauge.machine.inventory import read_inventory
from linkgauge.machine.pci import read_pci
from linkgauge.machine.tree import Captured
from linkgauge.model.inventory import PciLink
from linkgauge.model.machine import Machine
from linkgauge.model.pci_tree import PciTree
from machine_kit import SWITCHED

PORTS = {
    PortType.ENDPOINT: "endpoint",
    PortType.ROOT: "root port",
    PortType.UPSTREAM: "upstream port",
    PortType.DOWNSTREAM: "downstream port",
}


def parts(name):
    description = parse_description(load(name)[1])
    hardware = build(description)
    return description, hardware, Topology(hardware)


def simulated(name):
    rendered = render(*parts(name))
    return Captured(rendered.files, rendered.links)


@pytest.mark.parametrize("name", shipped())
def test_every_field_reads_back(name):
    description, hardware, topology = parts(name)
    found = {function.address: function for function in read_pci(simulated(name))[0]}
    rendered = {
        function.address: function for function in described(hardware, topology, Symptoms(hardware))
    }
    assert set(found) == set(rendered)
    for address, wanted in rendered.items():
        function, link = found[address], wanted.link
        assert (function.vendor, function.device) == (wanted.vendor, wanted.device)
        assert (function.class_code, function.numa_node) == (wanted.class_code, wanted.node)
        above = wanted.folder.split("/")[-2]
        assert function.parent == (None if above.startswith("pci") else above)
        assert function.port == PORTS[wanted.port]
        assert (function.iommu_group is None) is (description.host.hypervisor is not None)
        assert function.errors is not None
        assert set(function.errors) == {"correctable", "nonfatal", "fatal"}
        assert not function.display
        if link is None:
            assert function.link == PciLink()
        else:
            assert (function.link.speed, function.link.width) == (link.speed, link.width)
            assert (function.link.max_speed, function.link.max_width) == (
                link.max_speed,
                link.max_width,
            )
            assert function.link.target is not None
            assert function.max_payload == link.payload
            assert function.max_read_request == link.read_request


@pytest.mark.parametrize("name", ["rbln-32", "vm-degraded"])
def test_the_written_tree_reads_like_the_one_in_memory(name, tmp_path):
    write(render(*parts(name)), tmp_path)
    assert read_pci(tmp_path) == read_pci(simulated(name))


def test_rbln_32_has_the_distances_that_its_page_prints():
    devices = [device.pci for device in parts("rbln-32")[1].devices]
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
    tree = SimBackend(parse_description(SWITCHED)).tree()
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
    assert read_details(SimBackend(parse_description(text)).tree()).iommu == state


@pytest.mark.parametrize("set_so", [True, False])
def test_the_doctor_finds_ports_that_redirect_and_an_iommu_that_translates(set_so):
    good = SWITCHED.replace("true", "false").replace("translating", "passthrough")
    text = SWITCHED if set_so else good
    backend = SimBackend(parse_description(text))
    machine = Machine(
        host=backend.host(),
        devices={"sim": backend.devices()},
        inventory=read_inventory(backend.tree()),
    )
    found = [one for one in diagnose(Evidence(machine)) if one.check in ("acs", "iommu")]
    assert {finding.severity for finding in found} == ({"warn"} if set_so else set())
    told = " ".join(f"{finding.subject} {finding.found}" for finding in found)
    assert ("redirects peer traffic of sim:0-sim:1" in told) is set_so
    assert "sim:2" not in told
