"""`devices --nccl-topo`: what is written is read back with the same parts, and NCCL's own form."""

import gzip
from xml.etree import ElementTree as ET

import pytest
import yaml

from command_kit import called
from linkgauge.backends.sim.description import load
from linkgauge.cli.devices import survey
from linkgauge.judge.findings import Evidence
from linkgauge.machine.tree import parse_cpu_mask
from linkgauge.rooms.judge_files.descriptions import facts_of, read_bytes
from recorded_kit import DATA


def written(machine, folder):
    path = folder / "topo.xml"
    done = called("devices", "--machine", machine, "--nccl-topo", path)
    assert (done.returncode, done.stderr) == (0, "")
    return path


def read_back(path):
    (facts,) = (one for text in read_bytes(path.name, path.read_bytes()) for one in text.facts)
    return facts


@pytest.mark.parametrize("machine", ["dgx-h200-8", "pcie-tree-8", "full-8", "islands-2x4"])
def test_what_is_written_is_read_back_with_the_same_parts(machine, tmp_path):
    found = survey((), machine)
    facts, own = read_back(written(machine, tmp_path)), facts_of(Evidence(found))
    cards = {gpu.pci: gpu for gpu in facts.gpus.values()}
    assert cards.keys() == {gpu.pci for gpu in own.gpus.values()}
    for gpu in own.gpus.values():
        card = cards[gpu.pci]
        assert (card.node, card.max_speed, card.width) == (gpu.node, gpu.max_speed, gpu.width)
        ports = [found.functions[address] for address in gpu.above]
        assert card.above == tuple(one.address for one in ports if one.port == "upstream port")
    used = {gpu.node for gpu in own.gpus.values()}
    assert {n: node.cpus for n, node in facts.nodes.items()} == {n: own.nodes[n].cpus for n in used}


def test_cards_below_one_switch_are_written_so(tmp_path):
    """A guest sees its cards at root ports; its own description says what the host knows."""
    tree = yaml.safe_load(load("dgx-h200-8")[1])
    tree["switches"].append({"name": "plx0", "kind": "pcie"})
    tree["links"] = [one for one in tree["links"] if one["kind"] != "pcie5"]
    tree["links"] += [
        {"kind": "pcie5", "each": "sim:0..1", "to": "plx0"},
        {"kind": "pcie5", "each": "plx0", "to": "host:0"},
        {"kind": "pcie5", "each": "sim:2..7", "to": "host:0..1"},
    ]
    (tmp_path / "mine.yml").write_text(yaml.safe_dump(tree))
    path = written(tmp_path / "mine.yml", tmp_path)
    first, second, *_ = ET.parse(path).getroot().iter("pci")
    assert first.get("class") == "0x060400"
    assert [one.get("busid") for one in first] == ["0000:1b:00.0", "0000:43:00.0"]
    assert second.get("link_speed") == "32.0 GT/s PCIe"
    assert read_back(path).joins[0, 1] == "PIX"


def test_nccl_reads_what_is_written(tmp_path):
    """What NCCL 2.28.9 dumped on two H200s (NCCL_TOPO_DUMP_FILE) of a file in which the described
    machine's cards are below a switch that they do not have."""
    run = tmp_path / "two.json"
    run.write_bytes(gzip.decompress((DATA / "recorded/2xh200/01.json.gz").read_bytes()))
    called("describe", run, "-o", tmp_path / "mine.yml")
    tree = yaml.safe_load((tmp_path / "mine.yml").read_text())
    tree["switches"] += [{"name": "plx0", "kind": "pcie"}]
    (cards,) = (one for one in tree["links"] if one["kind"] == "pcie32x16")
    tree["links"] += [{"kind": "pcie32x16", "pairs": [["plx0", cards["pairs"][0][1]]]}]
    cards["pairs"] = [["sim:0", "plx0"], ["sim:1", "plx0"]]
    (tmp_path / "mine.yml").write_text(yaml.safe_dump(tree))
    own = ET.parse(written(tmp_path / "mine.yml", tmp_path)).getroot()
    dumped = ET.parse(DATA / "nccl-topology-2xH200.xml").getroot()

    def is_part(one, other):
        known = all(other.get(name) == value for name, value in one.items())
        return known and all(any(is_part(a, b) for b in other) for a in one)

    assert is_part(own, dumped)
    assert sum(1 for _ in own.iter("pci")) == sum(1 for _ in dumped.iter("pci")) == 3


def test_masks_are_in_groups_as_in_sysfs(tmp_path):
    cpus = ET.parse(written("dgx-h200-8", tmp_path)).getroot().findall("cpu")
    masks = [cpu.get("affinity") for cpu in cpus]
    assert all(len(group) == 8 for mask in masks for group in mask.split(","))
    assert [list(parse_cpu_mask(mask)) for mask in masks] == [[*range(112)], [*range(112, 224)]]


def test_the_machine_of_a_run_is_written(tmp_path):
    called("run", "device_local_copy", "--machine", "full-8", "--samples", "3", "--no-report",
           "--out", tmp_path)  # fmt: skip
    path = tmp_path / "t.xml"
    assert called("devices", tmp_path, "--nccl-topo", path).returncode == 0
    assert path.read_bytes() == written("full-8", tmp_path).read_bytes()


def test_a_machine_without_accelerators_is_refused(tmp_path):
    tree = {"source": "a test's", "host": yaml.safe_load(load("dgx-h200-8")[1])["host"]}
    (tmp_path / "bare.yml").write_text(yaml.safe_dump(tree))
    done = called("devices", "--machine", tmp_path / "bare.yml", "--nccl-topo", tmp_path / "t.xml")
    assert done.returncode == 2
    assert "no accelerator on PCI" in done.stderr
    assert not (tmp_path / "t.xml").exists()
