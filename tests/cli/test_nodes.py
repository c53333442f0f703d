"""Many nodes: which pairs are measured and when, and that what is slow is named: on simulated fat
trees."""

import json
import os

import pytest

from command_kit import called, linkgauge
from linkgauge.benchmarks import nodes

LONG = pytest.mark.skipif(
    os.environ.get("LINKGAUGE_CAMPAIGN") != "full", reason="takes long: LINKGAUGE_CAMPAIGN=full"
)
FEW = ("nodes_rails", "nodes_bisection")


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


@pytest.mark.parametrize(
    ("machine", "reason"),
    [("fat-tree-1000", "nodes_rails and nodes_bisection"), ("ppu-8", "needs nodes")],
)
def test_what_is_not_measured_pair_by_pair_says_why(machine, reason):
    done = called("run", "nodes_pairs", "--machine", machine, "--dry-run")
    assert reason in " ".join((done.stdout + done.stderr).split())


def test_of_very_many_nodes_blocks_are_measured_and_show_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(nodes, "MOST_NODES", 32)
    monkeypatch.setattr(nodes, "BLOCKS", 2)
    done = measured(tmp_path, *FEW, "--fault", "slow spine5 rate=25%")
    (line,) = [line for line in done.stdout.splitlines() if " slow  " in line]
    assert "slow  spine5: " in line
    rails, bisection = results(tmp_path)
    assert "32 of 64 nodes, in 2 blocks" in rails["title"]
    assert len(rails["cells"]) == 2 * 32
    ends = {end for cell in bisection["cells"] for end in cell["row"].split("->")}
    assert ends == {str(node) for node in (*range(16), *range(32, 48))}


@LONG
def test_ten_thousand_nodes(tmp_path):
    done = linkgauge("run", "--machine", "fat-tree-10000", "--prefix", "nodes_", "--fault",
                     "slow spine1 rate=50%", "--out", tmp_path)  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if " slow  " in line]
    assert "slow  spine1: " in line
    assert sum(len(result["cells"]) for result in results(tmp_path)) <= 12_000


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
