"""What a run's figures would not show is said, with the size of the loss, and nothing more."""

import json

import pytest
import yaml
from msgspec.structs import replace

from campaign import KNOWN
from campaign_bars import undetectable
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.judge.findings import evidence_of
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.undetectable import ANY, undetectable_of
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.expected import Earlier
from linkgauge.report.files import json_document
from linkgauge.report.rows import OneRun

HOST = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
PEERS = ("device_to_device_memcpy_read_ce", "device_to_device_memcpy_write_ce")


def run(machine, *names, devices=(), **more):
    text = yaml.safe_dump(KNOWN[machine]) if machine in KNOWN else load(machine)[1]
    return judge(run_of(machine, text, *names, devices=devices, **more))


def losses(found):
    return {
        part: loss
        for one in undetectable_of(evidence_of(found))
        for part, loss in one.parts.items()
    }


def test_each_kind_of_part_has_one_line_and_the_size_that_would_show():
    found = undetectable_of(evidence_of(run("ppu-8", *HOST, *PEERS, devices=("sim:0", "sim:1"))))
    kinds = [one.kind for one in found]
    assert len(set(kinds)) == len(kinds)
    for one in found:
        assert all(0 < loss <= ANY for loss in one.parts.values())
        assert [loss for loss, _ in one.losses()].count("any loss") <= 1


def test_what_has_no_peer_has_no_loss_that_shows_but_by_earlier_runs():
    healthy = run("dgx-h200-8", *HOST, "host_to_host_memcpy_read_cpu")
    assert losses(healthy)["host:0-host:1"] == ANY
    known = replace(healthy, earlier=Earlier(8))
    assert losses(known)["host:0-host:1"] <= 0.1
    cells = sum(len(result.cells) for result in healthy.results)
    too_few = replace(healthy, earlier=Earlier(8, unknown=tuple(range(cells))))
    assert losses(too_few)["host:0-host:1"] == ANY


def test_the_fewer_peers_a_part_has_the_larger_is_the_loss_that_shows():
    two, all_eight = (
        losses(run("mi300x", *PEERS, devices=[f"sim:{n}" for n in range(count)]))
        for count in (2, 8)
    )
    assert two["sim:0-sim:1"] >= 0.1
    assert all_eight.get("sim:0-sim:1", 0.0) < two["sim:0-sim:1"]


def test_switches_that_no_cell_crosses_or_fills_are_named():
    """Each leaf has four links to a spine, of which two copies between rails fill a part."""
    rails = run("rails", "nodes_rails", devices=[f"sim:{n}" for n in range(32)])
    _, links, switches = undetectable_of(evidence_of(rails))
    assert next(links.losses()) == ("any loss", "16 links")
    assert list(switches.losses()) == [("any loss", "2 switches")]
    across = losses(run("rails", PEERS[1], devices=[f"sim:{n}" for n in (0, 1, 4, 5)]))
    ups = {part: loss for part, loss in across.items() if "-spine" in part}
    assert set(ups) == {f"leaf{leaf}-spine{spine}" for leaf in (0, 1) for spine in (0, 1)}
    assert all(0.5 <= loss < ANY for loss in ups.values())


@pytest.mark.parametrize("number", [0, 1, 2])
def test_no_loss_is_declared_that_is_named_in_five_draws_of_five(number):
    drawn = undetectable(f"0 unseen {number}")
    assert all(drawn.met.values()), drawn.note


def test_documents_have_it_by_its_name():
    whole = run("dgx-h200-8", *HOST, "host_to_host_memcpy_read_cpu")
    document = json.loads(json_document(OneRun(whole, outcome_of(whole))))
    assert {"kind": "link", "parts": {"host:0-host:1": 1.0}} in document["undetectable"]
