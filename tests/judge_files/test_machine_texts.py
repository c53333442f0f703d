"""Texts that tell of a machine: what is read in each, how several make one, and what a machine made
of them is used for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_kit import called
from linkgauge.rooms.judge_files.descriptions import describe
from linkgauge.rooms.judge_files.facts import Facts, merged
from linkgauge.rooms.judge_files.readers import read_text

TEXTS = Path(__file__).parents[1] / "data/judge/machines"
LOGS = TEXTS.parent / "logs"


def facts_of(name: str) -> Facts:
    facts, clashes = merged(read_text(name, (TEXTS / name).read_text())[0].facts)
    assert not clashes
    return facts


@pytest.mark.parametrize("path", sorted(TEXTS.iterdir()), ids=lambda path: path.name)
def test_most_lines_are_understood(path):
    (read,) = read_text(path.name, path.read_text())
    assert read.facts
    assert path.suffix == ".json" or read.understood >= 0.8 * read.lines


def test_topology_of_nvidia_smi():
    facts = facts_of("topo-h100.txt")
    assert [gpu.node for gpu in facts.gpus.values()] == [0, 0, 1, 1]
    assert facts.joins == dict.fromkeys(
        [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], "NV18"
    )  # fmt: skip
    assert (facts.adapters, facts.nodes[1].cpus) == (1, 64)


def test_query_of_nvidia_smi():
    (gpu,) = facts_of("query-a100.txt").gpus.values()
    assert (gpu.model, gpu.pci) == ("NVIDIA A100-PCIE-40GB", "0000:17:00.0")
    assert (gpu.speed, gpu.width, gpu.max_width, gpu.memory) == (16.0, 8, 16, 40 << 30)


def test_links_of_nvidia_smi():
    gpus = facts_of("nvlink-a6000.txt").gpus
    assert [(gpu.links, gpu.link_rate) for gpu in gpus.values()] == [(4, 14.062e9), (3, 14.062e9)]


def test_first_screen_of_nvidia_smi():
    gpus = facts_of("screen-4090.txt").gpus
    assert [gpu.pci for gpu in gpus.values()] == ["0000:01:00.0", "0000:41:00.0"]
    assert gpus[1].model == "NVIDIA GeForce RTX 4090"


def test_lspci():
    facts = facts_of("lspci-a10.txt")
    assert [(gpu.model, gpu.width, gpu.max_width) for gpu in facts.gpus.values()] == [
        ("A10", 8, 16), ("A10", 16, 16),
    ]  # fmt: skip
    assert facts.gpus[0].above == ("0000:02:00.0", "0000:01:00.0", "0000:00:01.1")
    assert [one.acs for one in facts.bridges.values()] == [None, None, True, True]
    assert facts.relaxed is True


def test_tree_of_lspci():
    facts = facts_of("tree-a10.txt")
    assert [gpu.pci for gpu in facts.gpus.values()] == ["0000:03:00.0", "0000:04:00.0"]
    assert facts.gpus[1].above == ("0000:02:01.0", "0000:01:00.0", "0000:00:01.1")


def test_topology_of_nccl():
    facts = facts_of("nccl-topo.xml")
    assert [(gpu.model, gpu.pci, gpu.width) for gpu in facts.gpus.values()] == [
        ("NVIDIA GeForce RTX 4090", "0000:01:00.0", 16),
        ("NVIDIA GeForce RTX 4090", "0000:02:00.0", 16),
    ]


def test_rocm_smi():
    facts = facts_of("rocm-smi.txt")
    assert facts.joins == {(0, 1): "XGMI"}
    assert [gpu.node for gpu in facts.gpus.values()] == [0, 1]


def test_lscpu():
    facts = facts_of("lscpu.txt")
    assert (facts.sockets, facts.hypervisor) == (2, "KVM")
    assert [node.cpus for node in facts.nodes.values()] == [64, 64]


def test_numactl():
    facts = facts_of("numactl.txt")
    assert facts.distances == ((10, 21), (21, 10))
    assert facts.nodes[0].memory == 257634 << 20


def test_lstopo():
    facts = facts_of("lstopo.xml")
    assert facts.cpu_model == "AMD EPYC 7763 64-Core Processor"
    assert [(node.cpus, node.memory) for node in facts.nodes.values()] == [(4, 256 << 30)] * 2


def test_dcgm():
    facts = facts_of("dcgm.json")
    assert [gpu.model for gpu in facts.gpus.values()] == ["NVIDIA A100-SXM4-80GB"] * 2


# Several texts.


def test_texts_of_one_machine_add_up():
    names = "lscpu.txt", "numactl.txt", "topo-h100.txt"
    found, clashes = merged([facts_of(name) for name in names])
    assert found.nodes[1].memory == 258041 << 20
    assert found.joins[0, 1] == "NV18"
    assert [str(one) for one in clashes] == ["cpus of nodes 0, 1: 64 in one text, 4 in another"]


def test_switches_and_what_redirects_come_of_lspci():
    made = describe("a10", [facts_of("lspci-a10.txt")]).tree
    assert made["switches"]
    assert "pcie" in str(made["link_kinds"])


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("topo-h100.txt,lscpu.txt", "4 devices"),
        ("8 x H100 SXM", "8 devices"),
        ("2 RTX 3090", "2 devices"),
        ("rocm-smi.txt", "2 devices"),
    ],
)
def test_a_run_takes_a_machine_of_texts(given, shown):
    given = ",".join(str(TEXTS / one) if ".txt" in one else one for one in given.split(","))
    tried = called("run", "device_local_copy", "--machine", given, "--dry-run")
    assert (tried.returncode, tried.stderr) == (0, "")


def test_texts_that_tell_of_no_machine_are_an_input_error(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("nothing that is known\n")
    given = f"{tmp_path / 'a.txt'},{tmp_path / 'b.txt'}"
    tried = called("run", "device_local_copy", "--machine", given, "--dry-run")
    assert tried.returncode == 2
    assert tried.stderr.startswith("linkgauge: --machine: a.txt and b.txt tell of no machine")
    assert tried.stderr.count("\n") == 1


def test_a_host_without_accelerators_is_a_machine():
    given = f"{TEXTS / 'lscpu.txt'},{TEXTS / 'numactl.txt'}"
    tried = called("run", "device_local_copy", "--machine", given, "--dry-run")
    assert tried.returncode == 0
    assert "no accelerator" in tried.stdout


# What judge makes of them.

LOG = str(LOGS / "p2p-two-rtx-a6000-like.txt")


def test_kept_run_is_used_as_any_other(tmp_path):
    log = str(LOGS / "nccl-all-gather.txt")
    kept = called("judge", log, "--machine", "8 x H100 SXM", "--out", tmp_path)
    assert kept.returncode in (0, 1), kept.stderr
    (run,) = tmp_path.rglob("run.json")
    for command in (
        ["show", run], ["report", run, "-o", tmp_path / "report.html"], ["compare", run, run],
        ["gate", "--baseline", run, "--current", run], ["history", "import", tmp_path], ["history"],
    ):  # fmt: skip
        used = called(*command, LINKGAUGE_HISTORY=tmp_path / "runs.db")
        assert (used.returncode in (0, 1, 3, 4), used.stderr) == (True, ""), command


def test_json_says_what_was_read():
    tried = called("judge", LOG, str(TEXTS / "nvlink-a6000.txt"), "--json")
    tool = json.loads(tried.stdout)["tool"]
    assert tool["name"] == "p2pBandwidthLatencyTest"
    assert tool["understood"] <= tool["lines"]
    assert tool["judged"] <= tool["figures"]


def test_contradiction_is_said():
    other = TEXTS / "screen-4090.txt"
    text = called("judge", LOG, str(TEXTS / "nvlink-a6000.txt"), str(other), COLUMNS=200).stdout
    assert "The texts contradict one another: model of gpus 0, 1: NVIDIA RTX A6000" in text


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["nothing of a tool\n"], "this is not the output of a known tool"),
        ([""], "this is not the output of a known tool"),
        ([(TEXTS / "lscpu.txt").read_text()], "no tool's figures, only what tells of a machine"),
    ],
)
def test_what_cannot_be_judged_is_one_line(texts, said, tmp_path):
    paths = [tmp_path / f"{number}.txt" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    tried = called("judge", *paths)
    assert (tried.returncode, tried.stderr.count("\n")) == (2, 1)
    assert said in tried.stderr


@pytest.mark.parametrize(
    "given",
    [["no-such.txt"], ["-", "-"], [LOG, "--machine", "no-such"], [LOG, "--machine", "99 H100"]],
)
def test_what_cannot_be_read_is_one_line(given):
    tried = called("judge", *given)
    assert (tried.returncode, tried.stderr.count("\n"), tried.stdout) == (2, 1, "")


def test_hostile_text_is_shown_without_control(tmp_path):
    log = tmp_path / "\x1b[31mlog.txt"
    name = "NVIDIA RTX A6000\x1b]0;own\x07\x9b31m\u202e"
    log.write_text(Path(LOG).read_text() + f"\nGPU 0: {name} (UUID: GPU-1)\n")
    for form in ((), ("--json",), ("--csv",), ("--matrix",)):
        tried = called("judge", log, "--machine", "2 x RTX A6000", *form)
        assert tried.returncode in (0, 1, 2), tried.stderr
        assert not {*(tried.stdout + tried.stderr)} & {"\x1b", "\x07", "\x9b", "\u202e"}


NARROW = """\
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1
\t\tLnkSta:\tSpeed 16GT/s, Width x4 (downgraded)
"""
QUERY = """\
GPU 00000000:01:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : 8x
"""
LIMITED = (
    "[    2.0] pci 0000:03:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 "
    "link at 0000:00:1c.4 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)\n"
)
PORT = "hca_id:\tmlx5_0\n\ttransport:\t\tInfiniBand (0)\n\t\tport:\t1\n\t\t\tstate:\t\t{}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NARROW, "PCIe 16 GT/s x4 of 16 GT/s x16"),
        (f"$ lspci -s 1f:00.0 -vv | grep Lnk\n{NARROW}", "0000:1f:00.0: PCIe 16 GT/s x4 of"),
        (QUERY, "the link runs at x8"),
        (LIMITED, "0000:03:00.0: PCIe 8 GT/s x4 of 16 GT/s x16"),
        (PORT.format("PORT_DOWN (1)"), "no port is active: mlx5_0 State PORT_DOWN (1)"),
    ],
)
def test_a_fault_is_answered_without_figures(text, said, tmp_path):
    (tmp_path / "text.txt").write_text(text)
    done = called("judge", tmp_path / "text.txt", COLUMNS=200)
    assert done.returncode == 0
    assert said in done.stdout
    assert "verdict:   warn" in done.stdout


@pytest.mark.parametrize(
    "text", [NARROW.replace("x4 (downgraded)", "x16"), PORT.format("PORT_ACTIVE (4)")]
)
def test_nothing_wrong_without_figures_is_refused(text, tmp_path):
    (tmp_path / "text.txt").write_text(text)
    assert called("judge", tmp_path / "text.txt").returncode == 2
