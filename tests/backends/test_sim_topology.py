"""Routes take all shortest paths, prefer a fabric, and pass only what passes traffic on."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.backends.sim.description import parse_description
from linkgauge.backends.sim.hardware import build
from linkgauge.backends.sim.topology import Topology
from sim_machine import SMALL


def graph(links, devices=6, forwards=True):
    """Devices joined as told by links of a fabric, and a node that nothing leads to but a cable
    to each of them."""
    tree = yaml.safe_load(SMALL)
    tree["devices"] = [{"count": devices, "model": "x", "memory": "1G", "forwards": forwards}]
    tree["links"] = [
        {"kind": "mesh", "pairs": [[f"sim:{a}", f"sim:{b}"] for a, b in links]},
        {"kind": "pcie", "each": f"sim:0..{devices - 1}", "to": "host:0"},
    ]
    hardware = build(parse_description(yaml.safe_dump(tree)))
    return hardware, Topology(hardware)


def crossed(hardware, route):
    """The directed links of a route and the part of the traffic on each."""
    found = {}
    for crossing in route.crossings:
        found[crossing.begin, crossing.end] = crossing.share
    return found


RING = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)]


def test_the_other_side_of_a_ring_is_reached_both_ways_around():
    hardware, topology = graph(RING)
    assert crossed(hardware, topology.route("sim:0", "sim:3")) == {
        ("sim:0", "sim:1"): 0.5, ("sim:1", "sim:2"): 0.5, ("sim:2", "sim:3"): 0.5,
        ("sim:0", "sim:5"): 0.5, ("sim:5", "sim:4"): 0.5, ("sim:4", "sim:3"): 0.5,
    }  # fmt: skip


def test_paths_count_where_they_part_and_join_again():
    hardware, topology = graph([(0, 1), (1, 2), (1, 3), (1, 4), (2, 5), (3, 5), (4, 5)])
    shares = crossed(hardware, topology.route("sim:0", "sim:5"))
    assert shares["sim:0", "sim:1"] == 1
    assert shares["sim:1", "sim:3"] == shares["sim:3", "sim:5"] == pytest.approx(1 / 3)


def test_devices_that_do_not_forward_are_ends_only():
    hardware, topology = graph(RING, forwards=False)
    assert crossed(hardware, topology.route("sim:0", "sim:1")) == {("sim:0", "sim:1"): 1}
    assert crossed(hardware, topology.route("sim:0", "sim:2")) == {
        ("sim:0", "host:0"): 1, ("host:0", "sim:2"): 1,
    }  # fmt: skip


PAIRS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] < pair[1]),
    unique=True, min_size=1,
)  # fmt: skip


@given(PAIRS, st.integers(0, 5), st.integers(0, 5), st.booleans())
def test_all_that_enters_a_place_leaves_it(links, begin, end, forwards):
    hardware, topology = graph(links, forwards=forwards)
    source, target = f"sim:{begin}", f"sim:{end}"
    shares = crossed(hardware, topology.route(source, target))
    for place in hardware.names:
        balance = sum(part for (_, to), part in shares.items() if to == place) - sum(
            part for (out, _), part in shares.items() if out == place
        )
        at_the_ends = (place == target) - (place == source)
        assert balance == pytest.approx(at_the_ends)
