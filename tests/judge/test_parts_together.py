"""Parts that no single cell shows: only all cells of a part, or of what several transfers share."""

import pytest

from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import evidence_of
from linkgauge.judge.verdict import judge

MESH = """
source: three devices whose library tells no link's rate or state
noise: 0.3%
seed: 5
host:
  cpu_model: Example CPU
  nodes:
  - {count: 1, cpus: 32, memory: 256G, rate: 280 GB/s}
link_kinds:
  p: {kind: internal, rate: 63 GB/s, rate_reported: false, state_reported: false, latency: 500 ns,
      efficiency: {read: 0.86, write: 0.88}}
  f: {kind: fabric, rate: 100 GB/s, rate_reported: false, state_reported: false, latency: 500 ns,
      efficiency: {read: 0.8, write: 0.82}}
devices: [{count: 3, model: Example Accelerator, memory: 64G, memory_rate: 2 TB/s}]
links:
- {kind: f, mesh: 'sim:0..2'}
- {kind: p, each: 'sim:0..2', to: 'host:0'}
"""
HOST = tuple(f"{way}_memcpy_{by}" for way in ("host_to_device", "device_to_host")
             for by in ("ce", "sm"))  # fmt: skip
BOTH = tuple(name.replace("_memcpy", "_bidirectional_memcpy") for name in HOST)
PAIRS = ("device_to_device_memcpy_read_ce", "device_to_device_memcpy_write_ce")
WITHIN = "host_to_host_memcpy_read_cpu"
TOTALS = ("all_to_one_write_ce", "all_to_one_read_ce", "one_to_all_write_ce", "one_to_all_read_ce")


def grave(text, *names, fault, samples=6):
    run = judge(run_of("drawn", text, *names, faults=[fault], samples=samples, size=64 << 20))
    found = diagnose(evidence_of(run))
    inferred = [f for f in found if f.severity in ("fail", "warn") and f.check in ("slow", "stall")]
    return [(f.check, f.subject) for f in inferred]


def test_one_of_two_uplinks_that_only_several_copies_fill_is_named():
    """A single copy is as fast as ever; of eight at once, the four below it are not."""
    names = (*HOST, "all_to_host_memcpy_ce", "host_to_all_memcpy_ce", WITHIN)
    found = grave(load("ppu-8")[1], *names, fault="slow root0-host:0 rate=50%")
    assert found == [("slow", "host bridge 0000:00")]


def test_one_of_three_links_that_lost_a_tenth_is_named():
    assert grave(MESH, *HOST, *PAIRS, fault="slow sim:0-host:0 rate=90%") == [
        ("slow", "sim:0-host:0")
    ]


@pytest.mark.parametrize("every", [4, 5])
def test_stalls_of_a_link_are_named_although_no_cell_shows_two(every):
    fault = f"stall sim:2-host:0 every={every} for=0.02"
    assert grave(MESH, *HOST, *BOTH, *PAIRS, fault=fault) == [("stall", "sim:2-host:0")]


def test_totals_of_several_transfers_blame_no_second_part():
    """A slow link costs each total what the total sends over it."""
    names = (*PAIRS, *TOTALS)
    found = grave(load("ipu-m2000")[1], *names, fault="slow sim:0-sim:2 rate=35%")
    assert found == [("slow", "sim:0-sim:2")]


def test_one_of_two_host_links_that_lost_a_tenth_is_named():
    two = MESH.replace("count: 3", "count: 2").replace("sim:0..2", "sim:0..1")
    assert grave(two, *HOST, *BOTH, fault="slow sim:0-host:0 rate=90%") == [
        ("slow", "sim:0-host:0")
    ]
