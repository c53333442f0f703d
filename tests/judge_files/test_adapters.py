"""Machines with network adapters: texts of real ones, with all parts and nothing to find; trees
with one wrong thing each; and hosts that a network joins.

The texts below `data/judge/adapters` are outputs of tools, with made-up names of hosts. Origins:
azhpc-images of Azure (ndv4, ndv5); OneFlow's DLPerf (v100-eight); Baidu's FleetX (v100-one-node);
the guide of a university's cluster (a100-four-nodes); a report of an inference server
(h100-eight); NVIDIA/nccl issue of guests with passed-through adapters (h100-guest);
NVIDIA/nccl-tests 78 (v100-sixteen); open-mpi/hwloc (two-gpus, a100); NVIDIA/nccl 2409 (lspci-h100);
ROCm/rccl 1185 (rccl-two-ports)."""

import json
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from command_kit import called
from linkgauge.backends.sim.description import parse_description
from linkgauge.backends.sim.hardware import build
from linkgauge.backends.sim.machine import SimMachine, parts_of
from linkgauge.cli.devices import survey
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Evidence
from linkgauge.model.hardware.topology import topology_of
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.exchanges import rings_by_rail
from linkgauge.rooms.judge_files.descriptions import given
from linkgauge.rooms.judge_files.readers import read_text
from remedy_kit import assert_pasteable

TEXTS = Path(__file__).parents[1] / "data/judge/adapters"
HEALTHY = {  # accelerators, adapters, PCIe switches, NUMA nodes
    "azure-ndv4.xml": (8, 8, 4, 4),
    "azure-ndv5.xml": (8, 8, 8, 2),
    "lspci-h100.txt": (1, 1, 1, 1),
    "lstopo-a100.xml": (1, 1, 1, 1),
    "lstopo-h100-guest.txt": (8, 4, 4, 2),
    "lstopo-two-gpus.txt": (2, 1, 1, 2),
    "topo-a100-four-nodes.txt": (8, 1, 1, 8),
    "topo-h100-eight.txt": (8, 8, 8, 2),
    "topo-h100-guest.txt": (8, 4, 4, 2),
    "topo-v100-eight.txt": (8, 1, 1, 2),
    "topo-v100-one-node.txt": (8, 1, 0, 1),
    "topo-v100-sixteen.txt": (16, 10, 4, 2),
}


def found_in(machine):
    """The failures and warnings of a described machine, by check."""
    findings = diagnose(Evidence(survey((), str(machine))))
    assert_pasteable(findings)
    return {one.check for one in findings if one.severity in ("fail", "warn")}


def text_of(name):
    return (TEXTS / name).read_text()


@pytest.mark.parametrize("name", HEALTHY)
def test_text_of_a_real_machine_has_all_parts_and_no_fault(name):
    _, text = given(str(TEXTS / name))
    made = build(parse_description(text))
    switches = [one for one in made.switches if one.group.kind == "pcie"]
    counts = len(made.devices), len(made.adapters), len(switches), len(made.nodes)
    assert counts == HEALTHY[name]
    machine = survey((), str(TEXTS / name))
    drawn = [one.name for one in topology_of(machine).places.values() if one.kind == "nic"]
    assert sorted(drawn) == sorted(one.name for one in made.adapters)
    assert found_in(TEXTS / name) == set()


def test_adapters_are_below_the_switch_of_their_accelerators():
    machine = survey((), str(TEXTS / "topo-h100-eight.txt"))
    tree, at = machine.pci_tree, machine.endpoints
    near = {tree.topo_class(at[f"sim:{n}"], at[f"mlx5_{n}"]) for n in range(8)}
    assert (near, tree.topo_class(at["sim:0"], at["mlx5_7"])) == ({"PIX"}, "SYS")


# One wrong thing each.


def changed_text(tmp_path, name, *pairs):
    text = text_of(name)
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / name).write_text(text)
    return tmp_path / name


def changed_tree(tmp_path, change):
    tree = yaml.safe_load(given("8 x H100 SXM + 8 x 400G")[1])
    change(tree)
    (tmp_path / "machine.yml").write_text(yaml.safe_dump(tree))
    return tmp_path / "machine.yml"


def all_at_node_0(text):
    """The table with the adapters of the second node at the first one."""
    lines = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] and words[0].startswith("GPU") and words[1:2] != ["GPU1"]:
            own = int(words[0][3:])
            words[9:17] = ["SYS"] * 8 if own > 3 else ["PIX", *["NODE"] * 7]
            line = "  ".join(words)
        lines.append(line)
    return "\n".join(lines)


def of_kind(tree, **values):
    names = {link["kind"] for link in tree["links"] if str(link.get("each", "")).startswith("nic")}
    for name in names:
        tree["link_kinds"][f"own_{name}"] = tree["link_kinds"][name] | values
    for link in tree["links"]:
        if str(link.get("each", "")).startswith("nic"):
            link["kind"] = f"own_{link['kind']}"


LNKSTA = (
    "ConnectX-7]\n\tNUMA node: 0\n\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n\t\tLnkCap:"
)
LNKSTA += "\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n\t\tLnkSta:\tSpeed "


def test_acs_between_an_accelerator_and_its_adapter(tmp_path):
    path = changed_text(
        tmp_path, "lspci-h100.txt", ("ReqRedir- CmpltRedir-", "ReqRedir+ CmpltRedir+")
    )
    assert found_in(path) == {"acs"}


@pytest.mark.parametrize(
    ("state", "check"),
    [("8GT/s (downgraded), Width x16 (ok)", "link-speed"),
     ("32GT/s (ok), Width x8 (downgraded)", "link-width")],
)  # fmt: skip
def test_adapter_whose_link_trained_down(state, check, tmp_path):
    old = f"{LNKSTA}32GT/s (ok), Width x16 (ok)"
    path = changed_text(tmp_path, "lspci-h100.txt", (old, f"{LNKSTA}{state}"))
    # A machine of texts has ports that ask for what their links run at.
    assert check in found_in(path) <= {check, "target-speed"}


def test_accelerators_whose_adapters_are_all_at_the_other_node(tmp_path):
    (tmp_path / "topo.txt").write_text(all_at_node_0(text_of("topo-h100-eight.txt")))
    assert found_in(tmp_path / "topo.txt") == {"far-adapter"}


def test_two_ports_that_need_more_than_their_slot():
    assert found_in(TEXTS / "rccl-two-ports.xml") == {"adapter-slot"}


def test_port_that_needs_more_than_its_slot(tmp_path):
    path = changed_tree(tmp_path, lambda tree: of_kind(tree, speed=16))
    assert found_in(path) == {"adapter-slot"}


def test_small_packets_of_a_fast_port(tmp_path):
    def change(tree):
        for nic in tree["adapters"]:
            nic |= {"link_layer": "Ethernet", "mtu": 1500}

    assert found_in(changed_tree(tmp_path, change)) == {"mtu"}


def test_module_of_gpudirect_is_missing(tmp_path):
    def change(tree):
        tree["host"]["gpudirect"] = False

    assert found_in(changed_tree(tmp_path, change)) == {"gpudirect"}


def test_iommu_between_accelerators_and_adapters(tmp_path):
    def change(tree):
        tree["host"]["iommu"] = "translating"

    path = changed_tree(tmp_path, change)
    assert found_in(path) == {"iommu"}
    (iommu,) = [one for one in diagnose(Evidence(survey((), str(path)))) if one.check == "iommu"]
    assert "GPUDirect" in iommu.why


# What nvidia-smi -q tells.

QUERY = """
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Conf Compute Protected Memory Usage
        Total                             : {memory}
        Used                              : 0 MiB
    PCI
        Bus Id                            : 00000000:1B:00.0
        GPU Link Info
            PCIe Generation
                Max                       : {host}
                Current                   : {host}
                Device Current            : {host}
                Device Max                : 5
                Host Max                  : {host}
            Link Width
                Max                       : 16x
                Current                   : 16x
    Fabric
        State                             : {state}
        Status                            : {status}
        CliqueId                          : 1
        Health
            Bandwidth                     : N/A
            Route Unhealthy               : {route}
"""
WELL = {"memory": "0 MiB", "host": 5, "state": "Completed", "status": "Success", "route": "False"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, []),
        (
            {"status": "Insufficient Resources"},
            ["GPU 0 is not part of NVLink's fabric, whose status is Insufficient Resources"],
        ),
        ({"state": "In Progress", "status": "N/A"}, ["fabric is In Progress"]),
        ({"route": "True"}, ["Route Unhealthy is True"]),
        ({"host": 4}, ["its slot carries 16 GT/s, the GPU 32 GT/s"]),
    ],
)
def test_query_tells_of_fabric_encryption_and_slot(wrong, said):
    (read,) = read_text("q.txt", QUERY.format(**(WELL | wrong)))
    warnings = [text for facts in read.facts for text in facts.warnings]
    assert len(warnings) == len(said)
    assert all(one in text for one, text in zip(said, warnings, strict=True))


def test_protected_memory_is_confidential_computing():
    (read,) = read_text("q.txt", QUERY.format(**(WELL | {"memory": "81559 MiB"})))
    assert [facts.ways for facts in read.facts] == [{"confidential computing"}]


def test_channel_without_memory_costs_its_share():
    machine = survey((), "full-8")
    host = replace(machine.known.host, memory_channels=6, memory_channels_empty=2)
    known = replace(machine.known, host=host)
    findings = diagnose(Evidence(replace(machine, inventory=known)))
    (one,) = [one for one in findings if one.check == "channels"]
    assert ("2 of 8" in one.found, "75%" in one.why) == (True, True)
    assert_pasteable([one])


# Hosts that a network joins.


@pytest.mark.parametrize(
    ("text", "counts"),  # accelerators, adapters, NUMA nodes, leaves, spines
    [
        ("8 x H100 SXM + 8 x CX-7 400G", (8, 8, 1, 0, 0)),
        ("8 x H100 SXM + 8 x 400G", (8, 8, 1, 0, 0)),
        ("2 x 8 x H100 SXM + 8 x 400G", (16, 16, 2, 8, 1)),
        ("4 x 8 x A100 SXM + 4 x 200G", (32, 16, 4, 4, 1)),
        ("4 x GB200 NVL72", (288, 288, 144, 72, 1)),
    ],
)
def test_hosts_of_a_product_have_adapters_and_switches(text, counts):
    made = build(parse_description(given(text)[1]))
    names = [one.name for one in made.switches]
    leaves, spines = (sum(name.startswith(row) for name in names) for row in ("leaf", "spine"))
    assert counts == (len(made.devices), len(made.adapters), len(made.nodes), leaves, spines)


@pytest.mark.parametrize(
    "text", ["8 x H100 SXM + 8 x", "0 x 8 x H100 + 8 x 400G", "2 x 8 x + 400G"]
)
def test_what_is_no_number_of_hosts_is_an_input_error(text):
    tried = called("devices", "--machine", text)
    assert (tried.returncode, tried.stderr.count("\n")) == (2, 1)


SMALL = "4 x 2 x H100 SXM + 2 x 400G"


def simulated(text=SMALL, **host):
    tree = yaml.safe_load(given(text)[1])
    tree["host"] |= host
    return SimMachine(parts_of(parse_description(yaml.safe_dump(tree))))


WAY = parse_transfer("sim:0 -> sim:1 by sim:0.ce")  # both first accelerators of two hosts


def test_path_between_hosts_goes_over_switch_adapter_and_network():
    touched = simulated().touched(WAY)
    assert {"plx0_0", "nic0_0", "leaf0", "nic0_1", "plx0_1"} <= touched
    assert not {"host:0", "host:1", "nic1_0"} & touched


def test_without_gpudirect_the_memory_of_both_hosts_is_on_the_way():
    touched = simulated(gpudirect=False).touched(WAY)
    assert {"nic0_0", "leaf0", "nic0_1", "host:0", "host:1"} <= touched


def test_other_rails_are_reached_over_the_spines():
    assert "spine0" in simulated().touched(parse_transfer("sim:0 -> sim:5 by sim:0.ce"))


def test_nodes_of_different_hosts_do_not_reach_each_other():
    machine = survey((), SMALL)
    assert machine.known.host.distances[0] == (10, 255, 255, 255)


@pytest.mark.parametrize(
    ("fault", "parts"),
    [
        ("slow nic1_2 rate=40%", {"nic1_2"}),
        ("slow leaf1 rate=40%", {"leaf1", "rail1"}),
        ("slow spine0 rate=40%", {"spine0"}),
        ("slow nic0_3-leaf0 rate=40%", {"nic0_3", "leaf0-nic0_3"}),
        ("slow leaf0-spine0 rate=40%", {"leaf0-spine0"}),
    ],
)
def test_fault_of_a_network_is_named(fault, parts, tmp_path):
    words = ("nodes_rails", "nodes_bisection", "rails_crossing", "--profile", "quick")
    done = called("run", *words, "--machine", SMALL, "--fault", fault, "--json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (folder,) = tmp_path.rglob("run.json")
    said = called("doctor", folder, "--json").stdout
    findings = [one for one in json.loads(said)["findings"] if one["severity"] in ("fail", "warn")]
    named = " ".join(f"{one['subject']} {one['found']}" for one in findings)
    assert any(part in named for part in parts), named


def test_links_that_no_cell_crossed_are_told(tmp_path):
    words = ("nodes_rails", "--profile", "quick", "--machine", SMALL)
    called("run", *words, cwd=tmp_path)
    (folder,) = tmp_path.rglob("run.json")
    said = json.loads(called("doctor", folder, "--json").stdout)
    (one,) = [one for one in said["findings"] if one["check"] == "uncrossed"]
    assert "spine" in one["found"]


def test_collective_across_hosts_uses_all_rails():
    """A ring for each rail: as many adapters as a host has carry it."""
    both = simulated(), simulated("4 x 2 x H100 SXM + 1 x 400G")
    ranks = [parse_transfer(f"sim:{n} -> sim:{n} by sim:{n}.ccl") for n in range(8)]
    two, one = (machine.touched_by(ranks, Collective("all_reduce")) for machine in both)
    counts = [sum(name.startswith("nic") and "-" not in name for name in of) for of in (two, one)]
    assert counts == [8, 4]


def test_rings_by_rail_pass_each_adapter_once():
    orders = rings_by_rail(["a", "b", "a", "b", "a", "b"])
    assert orders == ((0, 2, 4, 5, 1, 3), (2, 4, 0, 1, 3, 5), (4, 0, 2, 3, 5, 1))
    assert rings_by_rail(["a", "a", "b"]) == rings_by_rail([None, None]) == ()
