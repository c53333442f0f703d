"""That parts were compared for their stalls is only said if they were."""

import pytest
import yaml
from msgspec.structs import replace

from campaign import KNOWN
from campaign_bars import drawn
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import evidence_of
from linkgauge.judge.verdict import judge

WAYS = ("host_to_device_memcpy", "device_to_host_memcpy", "device_to_device_memcpy_read",
        "device_to_device_memcpy_write")  # fmt: skip


WAYS_OF_ONE = tuple(f"{way}_ce" for way in WAYS)


def stalls(machine, fault, devices=(), samples=6):
    text = yaml.safe_dump(KNOWN[machine]) if machine in KNOWN else load(machine)[1]
    names = (*(f"{way}_{by}" for way in WAYS for by in ("ce", "sm")), "device_local_copy")
    return run_of(machine, text, *names, devices=devices, faults=(fault,), samples=samples)


def found(run):
    return [f for f in diagnose(evidence_of(judge(run))) if f.check == "stall"]


def test_a_part_without_peers_is_not_said_to_have_been_compared():
    (only,) = found(stalls("arc4", "stall host:0 every=4 for=0.05", ("sim:0", "sim:1")))
    assert only.severity == "note"
    assert only.found.endswith("host:0, which may cause it: it has no peer to compare with")


def test_the_only_fabric_is_compared_with_what_its_devices_do_alone():
    (only,) = found(stalls("ppu-2x2", "stall icnswitch every=4 for=0.05", ("sim:0", "sim:1")))
    assert only.severity == "warn"
    assert "icnswitch instead: the measurements cannot tell" in only.found


def test_a_part_that_stalled_for_a_while_is_named_in_the_note():
    run = stalls("arc4", "stall sim:2-host:0 every=3 for=0.05")
    calm = stalls("arc4", "stall sim:2-host:0 every=3 for=0.0000001")
    results = [
        replace(was, cells=now.cells) if number >= 3 else was
        for number, (was, now) in enumerate(zip(run.results, calm.results, strict=True))
    ]
    (only,) = found(replace(run, results=tuple(results)))
    assert only.severity == "note"
    assert only.found.endswith("PCIe link of sim:2 had more than its peers for a while")


HOST = ("host_to_host_memcpy_read_cpu", "host_to_host_memcpy_write_cpu")


def of_sockets(fault):
    text = load("dgx-h200-8")[1]
    names = (*WAYS_OF_ONE, *HOST)
    return run_of(
        "dgx-h200-8", text, *names, devices=("sim:0", "sim:1"), faults=(fault,), samples=42
    )


def test_a_link_of_sockets_is_compared_with_what_each_does_alone():
    (only,) = found(of_sockets("stall host:0-host:1 every=5 for=0.27"))
    assert (only.severity, only.subject) == ("warn", "host:0-host:1")


def test_a_switch_that_all_of_a_kind_cross_does_not_explain_why_some_stall():
    (only,) = found(stalls("rbln-32", "stall sim:1-plx0 every=3 for=0.22", ("sim:0", "sim:1"), 42))
    assert (only.severity, only.subject) == ("warn", "PCIe link of sim:1")


@pytest.mark.parametrize(
    ("bar", "number"),
    [
        # A node that begins to vary, or to stall, in mid-run: its cells before are peers.
        ("single", 25),
        ("single", 53),
        # A node is slow in cells of which others of their kind, over the same node, are not.
        ("single", 28),
    ],
)
def test_a_node_is_held_against_its_own_cells(bar, number):
    met = drawn(bar, "2", number).met
    assert met["named"]
    assert met["no false fail"]
