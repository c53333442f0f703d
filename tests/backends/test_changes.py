"""A change of a described machine: what is changed into another machine measures as that one."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_kit import called
from linkgauge.backends.sim.changes import changed
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.hardware import build
from linkgauge.model.errors import InputError

ALL_OF = "gpus={0} pcie={0} nodes={0}"
BENCHMARKS = (
    "all_to_host_memcpy_sm", "host_to_all_bidirectional_memcpy_ce",
    "device_to_device_memcpy_read_ce", "device_to_device_latency_sm", "host_device_latency_sm",
    "device_local_copy", "host_to_host_memcpy_copy_cpu", "all_reduce",
)  # fmt: skip
FEW = ("--samples", "3", "--size", "64M", "--no-verdict", "--json")


def figures(tmp_path, machine, change=None):
    options = ("--change", change) if change else ()
    done = called("run", *BENCHMARKS, "--machine", machine, *options, *FEW, "--out", tmp_path,
                  "--no-report")  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {
        (result["benchmark"], cell["row"], cell["column"]): cell["summary"]["median"]
        for result in json.loads(done.stdout)["results"]
        for cell in result["cells"]
        if cell["status"] == "pass"
    }


@pytest.mark.parametrize(
    ("base", "change", "other", "its_change"),
    [
        ("dgx-h200-8", "fabric=none " + ALL_OF.format("pcie-tree-8"), "pcie-tree-8", None),
        ("pcie-tree-8", "fabric=dgx-h200-8 " + ALL_OF.format("dgx-h200-8"), "dgx-h200-8", None),
        ("dgx-h200-8", "fabric=none", "pcie-tree-8", ALL_OF.format("dgx-h200-8")),
        ("full-8", "fabric=ring-8 gpus=ring-8", "ring-8", None),
        ("dgx-h200-8", "gpus=8 nodes=2 pcie=5x16", "dgx-h200-8", None),
    ],
)
def test_a_machine_changed_into_another_measures_as_that_one(
    base, change, other, its_change, tmp_path
):
    made, expected = figures(tmp_path, base, change), figures(tmp_path, other, its_change)
    assert made.keys() == expected.keys()
    assert len(made) > 100
    assert made == {place: pytest.approx(figure, rel=0.01) for place, figure in expected.items()}


def links(machine, change):
    return build(parse_description(changed(load(machine)[1], change))).links


@pytest.mark.parametrize(
    ("machine", "gpus", "links_of_fabric", "rate"),
    [
        ("full-8", 4, 6, 50e9 * 7 / 3),
        ("full-8", 16, 120, 50e9 * 7 / 15),
        ("ring-8", 5, 5, 100e9),
        ("islands-2x4", 16, 16, 450e9),
        ("dgx-h200-8", 3, 3, 450e9),
    ],
)
def test_a_fabric_keeps_its_shape_for_another_number_of_accelerators(
    machine, gpus, links_of_fabric, rate
):
    found = links(machine, f"gpus={gpus}")
    fabric = [link for link in found if link.kind == "fabric"]
    assert len(fabric) == links_of_fabric
    assert [link.rate for link in fabric] == pytest.approx([rate] * len(fabric))
    ends = [link.b for link in found if link.a.startswith("sim:") and link.b.startswith("host:")]
    assert ends == sorted(ends)
    assert len(ends) == gpus


def test_accelerators_share_other_nodes_in_order():
    ends = [link.b for link in links("dgx-h200-8", "nodes=4") if link.b.startswith("host:")]
    assert [ends.count(f"host:{node}") - node for node in range(4)] == [2, 2, 2, 2]


def test_a_generation_and_lanes_of_pcie_are_a_rate():
    (rate,) = {link.rate for link in links("dgx-h200-8", "pcie=4x8") if link.kind == "pcie"}
    assert rate == pytest.approx(16e9 * 128 / 130)


@pytest.mark.parametrize(
    ("machine", "change", "said"),
    [
        ("dgx-h200-8", "gpu=4", "unknown part 'gpu', did you mean 'gpus'?"),
        ("dgx-h200-8", "gpus", "gpus of what?"),
        ("dgx-h200-8", "", "give PART=VALUE"),
        ("dgx-h200-8", "gpus=65", "give 1 to 64"),
        ("dgx-h200-8", "pcie=9", "give a generation and lanes"),
        ("dgx-h200-8", "pcie=5x3", "give a generation and lanes"),
        ("dgx-h200-8", "fabric=full-9", "did you mean 'full-8'?"),
        ("riscv-2gpu", "pcie=5", "no PCIe link"),
        ("ppu-8", "gpus=4", "have no shape that fits 4: also give fabric=none"),
        ("vm-degraded", "nodes=2", "no link between nodes to repeat"),
        ("fat-tree-64", "gpus=4", "only a single machine"),
    ],
)
def test_an_impossible_change_is_refused_with_what_is_possible(machine, change, said):
    with pytest.raises(InputError) as refused:
        changed(load(machine)[1], change)
    assert said in str(refused.value)


@given(st.text("abcfgpusienod=x0123456789'\" ", max_size=24))
def test_any_text_is_a_change_or_is_refused(change):
    with suppress(InputError):
        build(parse_description(changed(load("vm-degraded")[1], change)))
