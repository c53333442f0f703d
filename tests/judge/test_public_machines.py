"""Whole machines of public reports with nothing broken: no part is blamed. Their single figures are
in test_public_figures.py, ACS in test_doctor.py, links that rest in the transcript doctor/idle.txt.
"""

import pytest
import yaml

from judge_kit import run_of
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import evidence_of
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge

HOST = {"cpu_model": "AMD EPYC 7543 32-Core Processor", "nodes": [
    {"count": 2, "cpus": 32, "memory": "256G", "rate": "200 GB/s"}]}  # fmt: skip
ONE_WAY = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
BOTH_WAYS = ("host_to_device_bidirectional_memcpy_ce", "device_to_host_bidirectional_memcpy_ce")


def measured(model, count, speed, links, names, kinds=(), **pcie):
    """What a run of such a machine finds, and its exit code."""
    about = {
        "source": "a public report", "noise": 0.001, "host": HOST,
        "link_kinds": {"pcie": {
            "kind": "pcie", "speed": speed, "width": 16, "latency": "1 us",
            "efficiency": {"read": 0.8062, "write": 0.8315}, **pcie,
        }, "upi": {"kind": "socket", "rate": "60 GB/s"}, **dict(kinds)},
        "devices": [{"count": count, "model": model, "memory": "40G", "memory_rate": "1.5 TB/s",
                     "vendor_id": 0x10DE, "device_id": 1}],
        "links": [
            {"kind": "pcie", "each": f"sim:0..{count - 1}", "to": "host:0..1"},
            {"kind": "upi", "pairs": [["host:0", "host:1"]]}, *links,
        ],
    }  # fmt: skip
    run = judge(run_of("public", yaml.safe_dump(about), *names, samples=3))
    found = diagnose(evidence_of(run))
    grave = [(f.check, f.subject) for f in found if f.severity in ("fail", "warn")]
    return grave, {f.check for f in found}, outcome_of(run).code


@pytest.mark.parametrize(
    ("both", "code", "blamed"),
    [
        # nvbandwidth issues 11, 53 and 67: 12 GB/s to A100s beside 24 from them.
        ({"both_each": {"read": "12.1 GB/s", "write": "24.5 GB/s"}}, 0, []),
        # As slow from them, which nobody reports.
        ({"both": "29.5 GB/s"}, 1, [("slow", "4 links (both directions at once)")]),
    ],
)
def test_a100s_are_slow_both_ways_at_once_and_no_host_is_to_blame(both, code, blamed):
    names = (*ONE_WAY, *BOTH_WAYS)
    found = measured("NVIDIA A100-SXM4-80GB", 4, 16, [], names, **both)
    assert found[::2] == (blamed, code)
    assert "both-ways" in found[1]


def test_a_cube_mesh_has_three_classes_of_pairs_and_no_slow_one():
    """DGX-1 with V100s: two links of NVLink, one, or none join a pair."""
    lane = {"kind": "fabric", "rate": "25.781 GB/s", "latency": "300 ns",
            "efficiency": {"read": 0.9367, "write": 0.9367}}  # fmt: skip
    pairs = {2: "03 04 12 15 23 47 56 67", 1: "01 02 13 26 37 45 46 57"}
    links = [
        {"kind": f"nvlink{n}", "pairs": [[f"sim:{a}", f"sim:{b}"] for a, b in of.split()]}
        for n, of in pairs.items()
    ]
    kinds = {f"nvlink{n}": {**lane, "count": n} for n in pairs}
    names = ("device_to_device_memcpy_read_ce", "device_to_device_memcpy_write_ce", *ONE_WAY)
    assert measured("Tesla V100-SXM2-32GB", 8, 8, links, names, kinds)[::2] == ([], 0)
