"""What a simulated machine's readers and libraries find, before, in and after cells with faults."""

import pytest

from linkgauge.backends.sim.backend import SimBackend
from linkgauge.backends.sim.description import parse_description
from linkgauge.backends.sim.faults import parse_fault
from linkgauge.backends.sim.machine import parts_of
from linkgauge.machine.read_inventory import read_inventory
from linkgauge.model.memory import Memory
from sim_tree import tree_of

MACHINE = """
source: a test
host:
  cpu_model: Test CPU
  nodes: [{count: 2, cpus: 4, memory: 8G}]
link_kinds:
  pcie: {kind: pcie, speed: 32, width: 16}
  bare: {kind: pcie, rate: 20 GB/s}
  nvlink4: {kind: fabric, rate: 25 GB/s, count: 6}
  lane: {kind: fabric, rate: 50 GB/s}
  upi: {kind: socket, rate: 40 GB/s}
switches:
  - {name: plx, kind: pcie}
devices:
  - {count: 3, model: Card, memory: 1G, memory_rate: 2 TB/s,
     properties: {clocks_mhz: {sm: 2000, memory: 3000}, ecc: true, power_limit_w: 700}}
  - {model: Odd, memory: 1G, properties: {clocks_mhz: fast, ecc: maybe, power_limit_w: many}}
links:
  - {kind: pcie, pairs: [[sim:0, plx], [sim:1, plx], [plx, host:0], [sim:2, host:1]]}
  - {kind: bare, pairs: [[sim:3, host:1]]}
  - {kind: nvlink4, pairs: [[sim:0, sim:1]]}
  - {kind: lane, pairs: [[sim:1, sim:2]]}
  - {kind: upi, pairs: [[host:0, host:1]], name: bridge}
"""
LANES_16 = (32.0, 16)


def machine(*faults, text=MACHINE, after=None):
    """The machine, once cell `after` of the plan has been measured."""
    made = SimBackend(parts_of(parse_description(text)), [parse_fault(fault) for fault in faults])
    if after is not None:
        made.enter({after: ()}, "measure")
    return made


def sims(*indices):
    return [Memory("sim", index) for index in indices]


def links(made):
    """Speed and width of each device's PCIe link, as its library tells."""
    return [(one.link.speed, one.link.width) for one in made.inventory()]


def active(made, memory):
    return [link.active for link in made.inventory()[memory].links]


@pytest.mark.parametrize(
    ("rate", "trained"),
    [("50%", (16.0, 16)), ("25%", (8.0, 16)), ("60%", LANES_16), ("30%", (16.0, 16))],
)
def test_a_slow_pcie_link_was_trained_lower(rate, trained):
    made = machine(f"slow plx-sim:0 rate={rate}")
    assert links(made) == [trained, LANES_16, LANES_16, (None, None)]
    (sense,) = made.sense(sims(0))
    assert (sense.link_speed, sense.link_width) == trained
    found = {one.address: one.link for one in read_inventory(tree_of(made)).pci}
    device = made.devices()[0].pci
    assert (found[device].speed, found[device].width, found[device].max_speed) == (*trained, 32.0)
    lower = [address for address, one in found.items() if (one.speed, one.width) != LANES_16]
    # Both ends show it, and no other link does (that of sim:3 is not described).
    known = {address for address in lower if found[address].speed is not None}
    assert len(known) == (0 if trained == LANES_16 else 2)
    assert all(found[address].target in (None, 32.0) for address in known)


def test_a_link_may_rest_and_a_library_report_what_is_not_so():
    text = MACHINE.replace("speed: 32,", "speed: 32, idle_speed: 2.5,")
    made = machine(text=text.replace("2 TB/s", "2 TB/s, memory_rate_reported: 3 TB/s"))
    assert links(made)[0] == (2.5, 16)
    (sense,) = made.sense(sims(0))
    assert (sense.link_speed, made.inventory()[0].memory_rate) == (32, 3e12)


@pytest.mark.parametrize(
    ("fault", "replays"),
    [
        ("slow sim:0-plx rate=50%", 0), ("slow sim:0-plx rate=60%", 4000),
        ("slow sim:0-plx rate=60% cells=2..", 2000), ("slow sim:0-plx rate=60% cells=0..1", 2000),
        ("slow sim:0-plx rate=60% cells=9", 0), ("drift sim:0-plx per_cell=-1%", 4000),
        ("jitter sim:0-plx", 0), ("slow sim:1-plx rate=60%", 0),
    ],
)  # fmt: skip
def test_what_lower_lanes_do_not_explain_counts_errors(fault, replays):
    made = machine(fault)
    assert made.inventory()[0].pcie_replays == 0, "nothing was measured yet"
    made.enter({3: ()}, "measure")
    assert made.inventory()[0].pcie_replays == made.sense(sims(0))[0].pcie_replays == replays
    errors = {one.address: one.errors for one in read_inventory(tree_of(made)).pci}
    assert errors[made.devices()[0].pci]["correctable"] == replays


@pytest.mark.parametrize(
    ("rate", "up", "rising"),
    [
        ("50%", 3, False), ("33.4%", 2, False), ("40%", 3, True), ("1%", 1, True),
        ("99.9%", 6, False),
    ],
)  # fmt: skip
def test_a_slow_fabric_has_lost_links(rate, up, rising):
    made = machine(f"slow sim:0-sim:1 rate={rate}", after=0)
    assert active(made, 0) == [number < up for number in range(6)]
    assert active(made, 1)[:6] == active(made, 0)
    assert active(made, 1)[6:] == active(made, 2) == [True]
    assert bool(made.inventory()[0].links[0].errors) is rising
    assert links(made)[:3] == [LANES_16] * 3
