"""Settings that firmware, kernel or an administrator changed for the worse are found, and what is
as it comes gives no finding."""

import pytest
from msgspec.structs import replace

import fakes
from doctor_kit import GOOD, GPU, card, found, gpu, inventory, measured, root, the
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.doctor.accelerator_state import is_of_data_centre
from linkgauge.judge.findings import Evidence
from linkgauge.model.documents.result import CellResult
from linkgauge.model.hardware.machine import Device
from linkgauge.model.notation import parse_transfers
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report
from remedy_kit import assert_pasteable

H200 = {"model": "NVIDIA H200"}
SMT = replace(
    GOOD, threads_per_core=2, node_cpus={0: (0, 1, 2, 3), 1: (4, 5, 6, 7)}, allowed_cores=1,
    allowed_cpus=(0, 1),
)  # fmt: skip


def after_all(what, **device):
    """What is found of one card with 16 GiB of memory, or as `device` says."""
    own = Device(**{"memory": "cuda:0", "model": "X", "memory_bytes": 16 << 30, "pci": GPU,
                    "largest_buffer": 1 << 30, **device})  # fmt: skip
    of = replace(fakes.machine(nodes=2), devices={"cuda": (own,)}, inventory=what)
    findings = diagnose(Evidence(of, None, ()))
    assert_pasteable(findings)
    return findings


@pytest.mark.parametrize(
    ("check", "severity", "what"),
    [
        ("relaxed-ordering", "warn", inventory(pci=(root(), gpu(relaxed_ordering=False)))),
        ("aspm", "note", inventory(pci=(root(), gpu(aspm=("L1",))))),
        ("aspm", "note", inventory(pci=(root(aspm=("L0s", "L1")), gpu()))),
        ("aspm", "warn", inventory(pci=(root(), gpu(aspm=("L1",))), cards=(card(**H200),))),
        ("aspm", "warn", inventory(host=replace(GOOD, aspm_policy="powersave"))),
        ("bar1", "note", inventory(cards=(card(bar1_bytes=256 << 20),))),
        ("bar1", "note", inventory(cards=(card(model="Tesla T4", bar1_bytes=256 << 20),))),
        ("bar1", "warn", inventory(cards=(card(**H200, bar1_bytes=256 << 20),))),
        ("ecc-off", "warn", inventory(cards=(card(**H200, ecc=False),))),
        ("power-limit", "warn", inventory(cards=(card(power_limit=400.0, power_default=700.0),))),
        ("gone", "fail", inventory(pci=(root(), gpu(address="0000:03:00.0")))),
        ("near-node", "warn", inventory(pci=(root(), gpu(numa_node=None)))),
        ("smt", "note", inventory(host=SMT)),
    ],
)
def test_a_setting_is_found(check, severity, what):
    assert the(check, after_all(what)).severity == severity


@pytest.mark.parametrize(
    "what",
    [
        inventory(),
        inventory(pci=(root(), gpu(relaxed_ordering=True))),
        inventory(host=replace(GOOD, aspm_policy="default")),
        inventory(host=replace(GOOD, aspm_policy="performance")),
        inventory(cards=(card(**H200, bar1_bytes=32 << 30, ecc=True),)),
        inventory(cards=(card(model="NVIDIA GeForce RTX 4090", ecc=False),)),
        inventory(cards=(card(power_limit=700.0, power_default=700.0),)),
        # A whole node, and whole cores beside more CPUs than there are cores.
        inventory(host=replace(SMT, allowed_cpus=(0, 1, 2, 3), allowed_cores=2)),
        inventory(host=replace(SMT, allowed_cpus=(0, 2), allowed_cores=2)),
    ],
)
def test_what_is_as_it_comes_gives_no_finding(what):
    assert after_all(what) == ()


def test_one_of_several_with_less_power_is_found():
    cards = (card(power_limit=700.0), card(memory="cuda:1", pci="0000:03:00.0", power_limit=500.0))
    assert the("power-limit", found(inventory(cards=cards))).subject.startswith("cuda:1")


def test_nothing_is_gone_where_pci_is_hidden():
    assert "gone" not in {finding.check for finding in after_all(inventory(pci=()))}


@pytest.mark.parametrize(("full", "told"), [(70e9, ["warn"]), (95e9, []), (120e9, [])])
def test_threads_that_get_in_each_others_way_are_found(full, told):
    cells = tuple(
        CellResult(
            "0", str(count), parse_transfers(f"host:0 -> null by cpu*{count}"), Report.FIRST,
            "pass", bytes=1 << 30, summary=summarize([rate] * 6),
        )
        for count, rate in ((1, 50e9), (2, 100e9), (4, full))
    )  # fmt: skip
    result = replace(measured(), benchmark="host_threads_memcpy_read_cpu", cells=cells)
    bare, what = fakes.machine(), inventory(host=replace(GOOD, threads_per_core=2), pci=())
    nodes = (replace(bare.host.nodes[0], cpus=(0, 1, 2, 3)),)
    of = replace(bare, host=replace(bare.host, cpus=4, nodes=nodes), inventory=what)
    findings = diagnose(Evidence(of, None, (result,)))
    assert [one.severity for one in findings if one.check == "smt"] == told


@pytest.mark.parametrize(
    ("model", "is_one"),
    [
        *((name, True) for name in (
            "NVIDIA A100-SXM4-80GB", "NVIDIA H20-3e", "NVIDIA L40S", "Tesla V100-SXM2-32GB",
            "NVIDIA GB200", "NVIDIA GH200 480GB", "AMD Instinct MI300X", "NVIDIA B300 SXM6 AC",
        )),
        *((name, False) for name in (
            "NVIDIA GeForce RTX 4090", "NVIDIA RTX A6000", "NVIDIA RTX A400", "Quadro P400",
            "AMD Radeon Pro W7900", "Card", "NVIDIA T400 4GB",
        )),
    ],
)  # fmt: skip
def test_models_of_data_centres(model, is_one):
    assert is_of_data_centre(model) == is_one
