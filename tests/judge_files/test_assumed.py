"""What no text states of a machine is assumed: it is marked wherever it is shown, and no figure
that rests on it gets a verdict."""

from __future__ import annotations

import json

import pytest

from command_kit import called
from linkgauge.backends.sim.description import description_of
from linkgauge.model.errors import InputError
from linkgauge.rooms.judge_files.descriptions import describe
from linkgauge.rooms.judge_files.facts import Facts, ReportedNode
from linkgauge.rooms.judge_files.readers import read_text

TOPO = """\
        GPU0    GPU1    GPU2    GPU3    CPU Affinity    NUMA Affinity
GPU0     X      PIX     SYS     SYS     0-31            0
GPU1    PIX      X      SYS     SYS     0-31            0
GPU2    SYS     SYS      X      PIX     32-63           1
GPU3    SYS     SYS     PIX      X      32-63           1
"""
NVLINK = """\
        GPU0    GPU1    CPU Affinity    NUMA Affinity
GPU0     X      NV4     0-31            0
GPU1    NV4      X      0-31            0
"""
QUERY = """\
==============NVSMI LOG==============
Attached GPUs                             : 1
GPU 00000000:17:00.0
    Product Name                          : NVIDIA Unheard-of 1
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 4
            Link Width
                Max                       : 16x
                Current                   : 16x
    FB Memory Usage
        Total                             : 40960 MiB
"""


@pytest.fixture
def at(tmp_path):
    for name, text in (("topo.txt", TOPO), ("nvlink.txt", NVLINK), ("query.txt", QUERY)):
        (tmp_path / name).write_text(text)
    return tmp_path


def run_of(at, machine, *words):
    done = called("run", "--machine", machine, "--json", *words, cwd=at)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def cells_of(run):
    return [(one["benchmark"], cell) for one in run["results"] for cell in one["cells"]]


def reasons_of(run):
    """Why the first cell of each benchmark is not judged."""
    firsts = ((one, one["cells"][0]["expected"]) for one in run["results"] if one["cells"])
    return {
        one["benchmark"]: expected["because"] or one["texts"][expected["text"]]
        for one, expected in firsts
        if expected
    }


def test_devices_marks_what_no_text_states(at):
    said = called("devices", "--machine", "topo.txt", cwd=at).stdout
    assert "as it should be" not in said
    assert "PCIe Gen 4 x16, assumed" in said
    assert "4 × GPU" in said
    assert "GiB, assumed" in said
    assert "assumed, because not stated: PCIe link of sim:0-3 (Gen 4 x16)" in said
    machine = json.loads(called("devices", "--machine", "topo.txt", "--json", cwd=at).stdout)
    assert {"PCIe link", "memory size", "memory rate"} <= {
        one["fact"] for one in machine["inventory"]["assumed"]
    }
    assert not any(one["link"]["speed"] for one in machine["inventory"]["pci"])


def test_no_verdict_on_assumed_facts(at):
    run = run_of(at, "topo.txt", "--profile", "quick")
    passed = [(name, cell) for name, cell in cells_of(run) if cell["status"] == "pass"]
    assert len(passed) > 200
    assert {cell["verdict"] for _, cell in passed} == {"not judged"}
    assert {cell["not_judged"] for _, cell in passed} == {"assumed"}
    because = reasons_of(run)
    assert because["host_to_device_memcpy_ce"].startswith("assumed: PCIe link of sim:0-3 (Gen 4")
    assert because["device_local_copy"] == "assumed: memory rate of sim:0-3 (1000 GB/s)"
    assert "memory rate of host:0-1" in because["host_to_host_memcpy_copy_cpu"]
    assert "latency of host:0-1" in because["core_to_core_latency"]


def test_run_says_what_is_assumed(at):
    said = called("run", "--machine", "topo.txt", "--profile", "quick", cwd=at).stdout
    said = " ".join(said.split())
    assert said.startswith("4 GPUs copy ")
    assert "these rest on assumed facts" in said
    assert "as this hardware should" not in said
    assert "note: assumed, because not stated: PCIe link of sim:0-3" in said
    assert "verdict: not judged: every figure rests on assumed facts" in said
    assert called("report", *at.glob("**/run.json"), "-o", "page.html", cwd=at).returncode == 0
    assert "assumed, because not stated" in (at / "page.html").read_text()


def test_other_commands_judge_nothing_assumed(at):
    checked = called("check", "--machine", "topo.txt", cwd=at).stdout
    assert checked.startswith("not judged: ")
    scaled = called("scale", "all_reduce", "--machine", "topo.txt", "--json", cwd=at).stdout
    assert {one["verdict"] for one in json.loads(scaled)["counts"]} == {"not judged"}
    doctor = called("doctor", "--machine", "topo.txt", cwd=at).stdout
    assert "ok: what is known of the setup shows no fault" in doctor


def test_a_link_that_a_text_states_is_judged(at):
    """The link is known, the rate of the memory is not."""
    run = run_of(
        at, "query.txt", "--prefix", "host_to_device_memcpy_ce", "--prefix", "device_local"
    )
    verdicts = {name: (cell["verdict"], cell["not_judged"]) for name, cell in cells_of(run)}
    assert verdicts["host_to_device_memcpy_ce"] == ("ok", None)
    assert verdicts["device_local_copy"] == ("not judged", "assumed")
    assert run["machine"]["devices"]["sim"][0]["memory_bytes"] == 40 << 30


def test_a_data_sheet_is_no_assumption(at):
    run = run_of(at, "4 x H100 SXM", "--profile", "quick")
    verdicts = {}
    for name, cell in cells_of(run):
        if cell["status"] == "pass":
            verdicts.setdefault(name, set()).add(cell["verdict"])
    for name in (
        "host_to_device_memcpy_ce",
        "device_to_device_memcpy_read_ce",
        "device_local_copy",
    ):
        assert verdicts[name] == {"ok"}, name
    assert verdicts["host_to_host_memcpy_copy_cpu"] == {"not judged"}


def test_links_without_a_known_rate(at):
    run = run_of(at, "nvlink.txt", "device_to_device_memcpy_read_ce")
    assert [*reasons_of(run).values()] == ["assumed: link of sim:0-1 (4 × 25 GB/s)"]
    assert {cell["not_judged"] for _, cell in cells_of(run) if cell["status"] == "pass"} == {
        "assumed"
    }


def test_a_description_may_mark_its_own_facts():
    tree = {
        "source": "a test",
        "host": {"cpu_model": "x", "nodes": [{"cpus": 4, "memory": "8G", "assumed": ["color"]}]},
    }
    with pytest.raises(InputError, match="color"):
        description_of(tree)


def test_a_node_without_cpus_has_none():
    nodes = {0: ReportedNode(8, 1 << 33), 1: ReportedNode(0, 1 << 34)}
    facts = Facts(gpus=read_text("q", QUERY)[0].facts[0].gpus, nodes=nodes)
    found = describe("x", [facts]).description.host.nodes
    assert [(one.cpus, one.assumed) for one in found] == [
        (8, ("rate", "latency")),
        (0, ("rate", "latency")),
    ]
