"""Namespaces of the network stand for hosts, each with a rank: real bytes over shaped links."""

import os
import threading
import time

import pytest

from net_kit import net

FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
QUICK = ("--size", "256K", "--max-time", "0.2")
ATTEMPTS = 3
WITHIN = 0.1
"""The greatest difference from the rate that a link was given: headers are 4.5 %."""


def rates(run, benchmark="nic_tcp"):
    (result,) = [each for each in run.results if each.benchmark == benchmark]
    assert {cell.status for cell in result.cells} == {"pass"}
    assert all(cell.verified for cell in result.cells)
    return {(cell.row, cell.column): cell.summary.median for cell in result.cells}


def matrix_of_shaped_links(tmp_path, count, options):
    """All links but one have one rate. Returns what was measured and expected, and what was
    said."""
    with net(count) as made:
        for number in range(count):
            made.shape(number, "160mbit")
        made.slow(0, count - 1, "40mbit")
        ended = made.launch(tmp_path, "run", "nic_tcp", *options)
    found = rates(ended.run)
    expected = dict.fromkeys(found, 160e6 / 8) | {("0", str(count - 1)): 40e6 / 8}
    assert ended.exits == {number: int(not number) for number in range(count)}, ended.stderr
    assert {rank.host for rank in ended.run.machine.ranks} == {f"node{n}" for n in range(count)}
    return found, expected, ended.stdout


def test_the_matrix_shows_the_rates_and_the_slow_pair_is_named(tmp_path):
    """Measured again if this host's other programs kept a link from its rate."""
    for turn in range(ATTEMPTS):
        folder = tmp_path / str(turn)
        folder.mkdir()
        found, expected, said = matrix_of_shaped_links(folder, 3, QUICK)
        if found == pytest.approx(expected, rel=WITHIN):
            break
    assert len(found) == 6
    assert found == pytest.approx(expected, rel=WITHIN)
    assert "slow  nic:1@0 -> nic:1@2" in said


@pytest.mark.skipif(not FULL, reason="a minute: make test-long")
def test_four_hosts(tmp_path):
    found, expected, said = matrix_of_shaped_links(tmp_path, 4, ("--size", "4M", "--max-time", "2"))
    assert len(found) == 12
    assert found == pytest.approx(expected, rel=WITHIN)
    assert "slow  nic:1@0 -> nic:1@3" in said


def test_what_hosts_do_not_have_is_named_and_what_was_typed_is_carried_out(tmp_path):
    with net(2) as made:
        ended = made.launch(tmp_path, "copy", "host:0@0 -> host:0@1 by nic:0.tcp", *QUICK)
        assert ended.exits == {0: 2, 1: 0}
        assert "nic:0 (lo) of rank 0 (node0) is a loopback" in ended.stderr
        ended = made.launch(
            tmp_path, "copy",
            "host:0@0 -> host:0@1 by nic:1.tcp*2 & host:0@1 -> host:0@0 by nic:1@0.tcp", *QUICK,
        )  # fmt: skip
    assert ended.exits == {0: 0, 1: 0}, ended.stderr
    (cell,) = ended.run.results[0].cells
    assert cell.verified
    assert len(cell.parts) == 2


def test_a_host_that_vanishes_is_named_the_rest_is_measured_and_what_it_cost_once_it_is_back(
    tmp_path,
):
    """Its link is gone in the middle of the run: nobody hears that it is."""
    with net(4) as made:
        for number in range(4):
            made.shape(number, "160mbit")
        measured = tmp_path / "out"

        def watch():
            while not any(b"nic_tcp" in one.read_bytes() and one.read_bytes().count(b"cell") > 2
                          for one in measured.rglob("journal.jsonl")):  # fmt: skip
                time.sleep(0.05)
            made.vanish(2)

        gone = threading.Thread(target=watch, daemon=True)
        gone.start()
        ended = made.launch(
            tmp_path, "run", "nic_tcp", "--size", "1M", "--samples", "4", "--loops", "1",
            "--timeout", "2", lost=(2,),
        )  # fmt: skip
        broken = ended.run
    assert ended.exits[0] == 3, ended.stderr
    (result,) = broken.results
    of_gone = [cell for cell in result.cells if "2" in cell.place]
    others = [cell for cell in result.cells if "2" not in cell.place]
    assert {cell.status for cell in others} == {"pass"}
    assert len(others) == 6
    lost = [cell for cell in of_gone if cell.status != "pass"]
    assert lost
    assert all("rank 2 (node2, process" in cell.reason for cell in lost)


def test_the_time_of_a_flag_is_the_way_s(tmp_path):
    """A relay keeps all frames of one host for some time."""
    kept = 4e-3
    with net(2) as made:
        made.delay(1, kept)
        ended = made.launch(tmp_path, "run", "nic_tcp_latency", "--samples", "40")
    assert ended.exits[0] in (0, 1), ended.stderr  # a busy machine's pairs differ, which fails
    for cell in ended.run.results[0].cells:
        assert kept <= cell.summary.min < 1.9 * kept
        assert cell.summary.p99 >= cell.summary.median
