"""Many nodes: which pairs are measured, and that what is slow is named: on a simulated fat tree."""

import json
import os

import pytest

from command_kit import linkgauge
from linkgauge.backends.sim.description import load
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.plan import make_plan
from linkgauge.model.machine import Device, Host, Machine, Node
from linkgauge.model.notation import parse_memory

LONG = pytest.mark.skipif(
    os.environ.get("LINKGAUGE_CAMPAIGN") != "full", reason="takes long: LINKGAUGE_CAMPAIGN=full"
)
BYTES = 1 << 30
HOST = (Node(0, (0,), BYTES, BYTES),)


def nodes(count, pci=None):
    devices = (Device(f"sim:{number}", "node", BYTES, BYTES, pci=pci) for number in range(count))
    return DeviceSet("sim", HOST, tuple(devices))


def places(name, count):
    """From which node to which, of each cell."""
    transfers = [cell.transfers[0] for cell in CATALOG[name].lay_out(nodes(count)).cells]
    return [(t.source.index, t.destination.index) for t in transfers]


def test_a_ring_has_a_cell_for_each_node():
    assert places("nodes_ring", 3) == [(0, 1), (1, 2), (2, 0)]


@pytest.mark.parametrize("count", [2, 7, 65, 1000])
def test_bisections_are_disjoint_pairs_and_the_same_each_time(count):
    found = places("nodes_bisection", count)
    assert found == places("nodes_bisection", count)
    assert len(set(found)) == len(found) <= 2 * count
    assert all(one != other for one, other in found)
    first = found[: count // 2]
    assert len({node for pair in first for node in pair}) == 2 * len(first)


def test_all_pairs_are_measured_in_order_n_rounds():
    """In none of which a node is in two pairs."""
    laid_out = CATALOG["nodes_pairs"].lay_out(nodes(64))
    machine = Machine(Host("h", "s", "k", "a", "c", 1, HOST, BYTES, BYTES, None, None),
                      {"sim": nodes(64).devices}, {})  # fmt: skip
    (sheet,) = make_plan([laid_out], machine, [1 << 20])
    rounds = {}
    for cell in sheet.cells:
        rounds.setdefault(cell.round, []).extend((cell.row, cell.column))
    assert len(sheet.cells) == 64 * 63
    assert len(rounds) == 2 * 63
    assert all(len(set(players)) == len(players) for players in rounds.values())


def test_more_than_64_nodes_are_not_measured_pair_by_pair():
    reason = CATALOG["nodes_pairs"].lay_out(nodes(65)).reason
    assert "64 nodes" in reason
    assert "nodes_ring and nodes_bisection" in reason


def test_devices_of_one_host_are_no_nodes():
    for name in ("nodes_ring", "nodes_bisection", "nodes_pairs"):
        assert "needs nodes" in CATALOG[name].lay_out(nodes(2, "0000:01:00.0")).reason
        assert "needs two nodes" in CATALOG[name].lay_out(nodes(1)).reason
    assert parse_memory(nodes(1).devices[0].memory).is_device


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The shipped tree with a tenth of its leaf switches: 100 nodes."""
    text = load("fat-tree-1000")[1].replace("0..999", "0..99").replace("leaf0..39", "leaf0..3")
    path = tmp_path_factory.mktemp("machine") / "small.yml"
    path.write_text(text.replace("count: 1000", "count: 100"))
    return path


def measured(machine, fault, out, *more):
    """The exit code, the lines, and the figures by benchmark and place."""
    done = linkgauge(
        "run", "--machine", str(machine), "--prefix", "nodes_", "--fault", fault, "--out",
        str(out), *more,
    )  # fmt: skip
    (path,) = out.rglob("run.json")
    results = json.loads(path.read_text())["results"]
    return done, {
        (result["benchmark"], cell["row"]): cell["samples"]
        for result in results
        for cell in result["cells"]
    }


def test_the_slow_leaf_switch_is_named_and_a_seed_gives_the_same_figures(small, tmp_path):
    done, figures = measured(small, "slow leaf2 rate=25%", tmp_path / "one")
    assert done.returncode == 1, done.stderr
    assert "slow  leaf2: " in done.stdout
    assert "SIMULATED" in done.stdout
    assert "host bridge" not in done.stdout
    assert 3 * 100 - 20 < len(figures) <= 10 * 100
    assert len(done.stdout.splitlines()) < 60
    assert measured(small, "slow leaf2 rate=25%", tmp_path / "two")[1] == figures


def test_the_slow_node_is_named(small, tmp_path):
    done, _ = measured(small, "slow sim:42 rate=50%", tmp_path)
    assert "slow  sim:42: " in done.stdout


@LONG
def test_a_thousand_nodes(tmp_path):
    done, figures = measured("fat-tree-1000", "slow leaf7 rate=25%", tmp_path)
    assert "slow  leaf7: " in done.stdout
    assert 2900 < len(figures) <= 10_000
    assert len(done.stdout.splitlines()) < 60


def test_devices_of_a_thousand_nodes_are_listed_without_their_pairs():
    done = linkgauge("devices", "--machine", "fat-tree-1000")
    assert done.returncode == 0
    assert "sim:0-999" in done.stdout
    assert "499500 pairs" in done.stdout
