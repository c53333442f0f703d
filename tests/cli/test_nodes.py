"""Many nodes: which pairs are measured and when, and that what is slow is named: on simulated fat
trees."""

import json
import os
from collections import Counter

import pytest

from command_kit import called, linkgauge
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.plan import make_plan
from linkgauge.model.machine import Device, Host, Machine, Node

LONG = pytest.mark.skipif(
    os.environ.get("LINKGAUGE_CAMPAIGN") != "full", reason="takes long: LINKGAUGE_CAMPAIGN=full"
)
BYTES = 1 << 30
HOST = (Node(0, (0,), BYTES, BYTES),)
FEW = ("nodes_rails", "nodes_bisection")
SIXTEEN = [f"--device=sim:{rail + node}" for rail in (0, 64) for node in range(16)]


def nodes(count, rails=1, pci=None):
    devices = (
        Device(
            f"sim:{rail * count + number}", "node", BYTES, BYTES, pci=pci,
            node=f"node{number}", rail=f"rail{rail}" if rails > 1 else None,
        )
        for rail in range(rails)
        for number in range(count)
    )  # fmt: skip
    return DeviceSet("sim", HOST, tuple(devices))


def ends(cells):
    """From which device to which, of the first transfer of each cell."""
    transfers = [cell.transfers[0] for cell in cells]
    return [(t.source.index, t.destination.index) for t in transfers]


def rounds_of(name, count, rails=1):
    """The cells of each round."""
    laid_out = CATALOG[name].lay_out(nodes(count, rails))
    found = {}
    for cell, number in zip(laid_out.cells, laid_out.rounds, strict=True):
        found.setdefault(number, []).append(cell)
    return list(found.values())


def test_each_rail_has_a_ring_of_all_nodes_and_all_are_measured_at_once():
    (cells,) = rounds_of("nodes_rails", 3, rails=2)
    assert [(cell.row, cell.column) for cell in cells[:3]] == [
        ("0->1", "rail0"), ("0->1", "rail1"), ("1->2", "rail0")
    ]  # fmt: skip
    assert sorted(ends(cells)) == [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]


@pytest.mark.parametrize("count", [2, 7, 65, 1000])
@pytest.mark.parametrize("rails", [1, 2, 4])
def test_bisections_are_disjoint_pairs_of_one_rail_and_one_half_sends(count, rails):
    halves = rounds_of("nodes_bisection", count, rails)
    assert len(halves) <= 4
    for cells in halves:
        sources, targets = zip(*ends(cells), strict=True)
        assert len({*sources, *targets}) == 2 * len(cells)
        assert all(one // count == other // count for one, other in ends(cells))
    assert len(halves[0]) == rails * (count // 2)
    pairs = Counter(frozenset(pair) for cells in halves for pair in ends(cells))
    assert set(pairs.values()) == {1}
    ring = rounds_of("nodes_rails", count, rails)
    assert sum(map(len, (*halves, *ring))) <= 10 * count


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
    assert "nodes_rails and nodes_bisection" in reason


def test_devices_of_one_host_are_no_nodes():
    for name in (*FEW, "nodes_pairs"):
        assert "needs nodes" in CATALOG[name].lay_out(nodes(2, pci="0000:01:00.0")).reason
        assert "needs two nodes" in CATALOG[name].lay_out(nodes(1)).reason


def test_ranks_are_nodes_by_their_hosts():
    """Two hosts of two ranks: the first rank of each is one rail, the second another."""
    devices = [Device(f"cuda:0@{rank}", "GPU", BYTES, BYTES) for rank in range(4)]
    fabric = DeviceSet("cuda", HOST, tuple(devices), hosts=("a", "a", "b", "b"))
    (first, *_) = CATALOG["nodes_pairs"].lay_out(fabric).cells
    assert [str(transfer.destination) for transfer in first.transfers] == ["cuda:0@2", "cuda:0@3"]


def results(out):
    (path,) = out.rglob("run.json")
    return json.loads(path.read_text())["results"]


def measured(out, *arguments, machine="fat-tree-64"):
    return called("run", *arguments, "--machine", machine, "--out", out)


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        ("slow spine5 rate=25%", "spine5"),
        ("slow leaf3-spine2 rate=25%", "leaf3-spine2"),
        ("slow rail1 rate=50%", "rail1"),
        ("slow node9 rate=50%", "node9"),
    ],
)
def test_what_is_slow_is_named_and_nothing_else(fault, part, tmp_path):
    done = measured(tmp_path, *FEW, "--fault", fault)
    assert done.returncode == 1, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if " slow  " in line]
    assert f"slow  {part}: " in line
    assert "SIMULATED" in done.stdout


def test_a_healthy_cluster_has_nothing_slow_and_the_same_figures_each_time(tmp_path):
    done = measured(tmp_path / "one", *FEW)
    assert done.returncode == 0, done.stdout
    assert "nothing wrong was found" in done.stdout
    assert "bisection 1 of 4: 64 at once carry 30" in done.stdout
    measured(tmp_path / "two", *FEW)
    one, two = (
        [cell["samples"] for result in results(tmp_path / run) for cell in result["cells"]]
        for run in ("one", "two")
    )
    assert len(one) == 128 + 256
    assert one == two


def test_the_matrix_of_all_pairs_names_a_slow_interface(tmp_path):
    """Of 16 nodes with two rails: 30 rounds of 8 pairs. Beside the ring the rail is known, too."""
    names = ("nodes_pairs", "nodes_rails")
    done = measured(tmp_path, *names, *SIXTEEN, "--fault", "slow sim:69 rate=50%")
    assert done.returncode == 1, done.stderr
    assert "slow  sim:69: " in done.stdout
    _, pairs = results(tmp_path)
    cells = pairs["cells"]
    assert len(cells) == 16 * 15
    assert {len(cell["parts"]) for cell in cells} == {2}
    rounds = {}
    for cell in cells:
        rounds.setdefault(cell["round"], []).extend((cell["row"], cell["column"]))
    assert len(rounds) == 2 * 15
    assert all(len(players) == len(set(players)) == 16 for players in rounds.values())


@LONG
@pytest.mark.parametrize(
    ("fault", "part"),
    [
        ("slow leaf7 rate=25%", "leaf7"),
        ("slow spine1 rate=25%", "spine1"),
        ("slow rail1 rate=50%", "rail1"),
        ("slow sim:1421 rate=50%", "sim:1421"),
        ("slow node421 rate=50%", "node421"),
        ("slow leaf3-spine2 rate=10%", "leaf3-spine2"),
    ],
)
def test_a_thousand_nodes(fault, part, tmp_path):
    done = linkgauge("run", "--machine", "fat-tree-1000", "--prefix", "nodes_", "--fault", fault,
                     "--out", tmp_path)  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if " slow  " in line]
    assert f"slow  {part}: " in line
    assert sum(len(result["cells"]) for result in results(tmp_path)) <= 10_000
    assert len(done.stdout.splitlines()) < 60


def test_devices_of_a_thousand_nodes_are_listed_without_their_pairs():
    done = called("devices", "--machine", "fat-tree-1000")
    assert done.returncode == 0
    assert "sim:0-3999" in done.stdout
    assert "7998000 pairs" in done.stdout
