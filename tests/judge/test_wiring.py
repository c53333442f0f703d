"""What a transfer touches, of machines whose parts readers found."""

import pytest
from msgspec.structs import replace

from doctor_kit import GOOD, inventory, machine
from linkgauge.backends.sim.description import load, parse_description, shipped
from linkgauge.backends.sim.hardware import build
from linkgauge.backends.sim.topology import Topology
from linkgauge.engine.worker import LocalWorker
from linkgauge.judge.findings import Evidence
from linkgauge.judge.wiring import Wiring
from linkgauge.model.machine import Node
from linkgauge.model.notation import parse_transfer
from linkgauge.model.settings import Settings, Simulation


def wiring(machine):
    name, text = load(machine)
    surveyed = LocalWorker(Settings((1 << 20,), simulation=Simulation(name, text))).survey(("sim",))
    return Wiring(Evidence(surveyed))


def touched(machine, transfer):
    return wiring(machine).touched(parse_transfer(transfer)).parts


def passed(crossings):
    """The memories that a route leads through."""
    ends = [end for each in crossings for end in (each.begin, each.end)]
    return {end for end in ends if end.startswith(("sim:", "host:"))}


def test_distances_have_a_column_for_each_node_online_whatever_its_number():
    node = Node(index=0, cpus=(0,), memory_total=1 << 30)
    nodes = tuple(replace(node, index=index) for index in (0, 2, 8))
    rows = {0: (10, 20, 40), 2: (20, 10, 40), 8: (40, 40, 10)}
    known = machine(inventory(host=replace(GOOD, distances=rows)))
    known = replace(known, host=replace(known.host, nodes=nodes))
    found = Wiring(Evidence(known))

    def sort(one, other):
        copy = parse_transfer(f"host:{one} -> host:{other} by host:{one}.cpu")
        return found.touched(copy).kinds

    assert sort(0, 2) != sort(0, 8)
    assert sort(0, 8) == sort(2, 8)


def test_copies_below_one_switch_touch_it_and_not_its_uplink():
    parts = touched("rbln-32", "sim:0 -> sim:1 by ce")
    assert len(parts) == 5
    assert {"sim:0", "sim:1", "PCIe link of sim:0", "PCIe link of sim:1"} < parts
    assert any(part.startswith("PCIe switch ") for part in parts)


def test_threads_touch_no_host_bridge():
    parts = touched("dgx-h200-8", "host:1 -> null by host:0.cpu")
    assert parts == {"host:0", "host:1", "host:0-host:1"}


def test_copies_to_the_other_node_lead_over_the_nodes_and_through_no_other_device():
    assert touched("dgx-h200-8", "host:0 -> sim:4 by ce") == {
        "host:0", "host:0-host:1", "host:1", "host bridge 0001:00", "PCIe link of sim:4", "sim:4",
    }  # fmt: skip


def test_a_chain_of_devices_passes_on_what_stays_in_its_fabric():
    parts = touched("ipu-m2000", "sim:0 -> sim:3 by ce")
    assert {"sim:1", "sim:2", "sim:0-sim:1", "sim:1-sim:3"} < parts
    assert not any(part.startswith("host") for part in parts)


def test_bridges_that_a_hypervisor_shows_are_no_parts():
    parts = touched("vm-degraded", "sim:0 -> host:0 by ce")
    assert parts == {"sim:0", "host:0", "PCIe link of sim:0"}


@pytest.mark.parametrize("name", shipped())
def test_what_readers_find_leads_through_the_memories_that_the_description_does(name):
    hardware = build(parse_description(load(name)[1]))
    described, found = Topology(hardware), wiring(name).map
    places = [unit.name for unit in (*hardware.nodes[:8], *hardware.devices[:8])]
    pairs = [(a, b) for a in places for b in places if described.route(a, b)]
    assert pairs
    for pair in pairs:
        assert passed(found.route(*pair)) == passed(described.route(*pair).crossings)
