"""What a transfer touches, of machines whose parts readers found."""

from msgspec.structs import replace

from doctor_kit import GOOD, inventory, machine
from linkgauge.backends.sim.description import load
from linkgauge.engine.worker import LocalWorker
from linkgauge.judge.findings import Evidence
from linkgauge.judge.wiring import Wiring
from linkgauge.model.machine import Node
from linkgauge.model.notation import parse_transfer
from linkgauge.model.result import Settings, Simulation


def touched(machine, transfer):
    name, text = load(machine)
    surveyed = LocalWorker(Settings((1 << 20,), simulation=Simulation(name, text))).survey(("sim",))
    return Wiring(Evidence(surveyed)).touched(parse_transfer(transfer)).parts


def test_distances_have_a_column_for_each_node_online_whatever_its_number():
    node = Node(index=0, cpus=(0,), memory_total=1 << 30)
    nodes = tuple(replace(node, index=index) for index in (0, 2, 8))
    rows = {0: (10, 20, 40), 2: (20, 10, 40), 8: (40, 40, 10)}
    known = machine(inventory(host=replace(GOOD, distances=rows)))
    known = replace(known, host=replace(known.host, nodes=nodes))
    wiring = Wiring(Evidence(known))

    def sort(one, other):
        copy = parse_transfer(f"host:{one} -> host:{other} by host:{one}.cpu")
        return wiring.touched(copy).sort

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
