"""A part that all cells of its kind cross has no peers. Its own earlier cells show a loss that
begins in mid-run, and what healthy hosts show tells whether it is unsteady."""

import pytest
import yaml

from campaign import KNOWN, SIZES, UNSEEN
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import evidence_of
from linkgauge.judge.verdict import judge
from linkgauge.model.settings import Settings

NAMES = (
    "host_to_device_memcpy_sm", "device_to_host_memcpy_sm", "device_to_device_memcpy_read_sm",
    "device_to_device_memcpy_write_sm", "device_local_copy", "host_to_host_memcpy_read_cpu",
    "host_to_host_memcpy_write_cpu",
)  # fmt: skip


def told(machine, *faults, noise=0.003):
    known = (UNSEEN | KNOWN).get(machine) or yaml.safe_load(load(machine)[1])
    text = yaml.safe_dump(known | {"noise": noise})
    run = run_of(machine, text, *NAMES, faults=faults, devices=["sim:0", "sim:1"],
                 settings=Settings(SIZES, samples=21))  # fmt: skip
    return [f for f in diagnose(evidence_of(judge(run))) if f.is_grave and f.check != "clocks"]


@pytest.mark.parametrize("rate", [0.92, 0.88])
def test_a_loss_that_begins_in_mid_run_is_seen_without_peers(rate):
    (found,) = told("guest2", f"slow nvswitch rate={rate} cells=12..")
    assert (found.check, found.severity) == ("slow", "warn")
    assert "nvswitch" in found.subject + found.found
    if rate > 0.9:
        assert "of those before device_to_device_memcpy_read_sm sim:1 -> sim:0" in found.found


@pytest.mark.parametrize(
    ("fault", "check"),
    [("jitter host:0 sigma=0.22", "scatter"), ("stall host:0 every=4 for=0.14", "stall")],
)
def test_a_lone_part_that_is_less_steady_than_any_healthy_host_is_named(fault, check):
    (found,) = told("guest2", fault)
    assert (found.check, found.subject, found.severity) == (check, "host:0", "warn")


@pytest.mark.parametrize(
    "fault", ["jitter host:0 sigma=0.07", "slow nvswitch rate=0.97 cells=12..", ""]
)
def test_a_lone_part_that_is_as_healthy_hosts_are_is_not(fault):
    assert not told("guest2", *filter(None, [fault]))
