"""Machines with more devices than a run of all pairs can hold."""

import json

import pytest

from command_kit import called


@pytest.mark.parametrize("prefix", ["device_to_device_", "host_to_all_"])
def test_too_many_pairs_are_refused_before_they_are_laid_out(prefix):
    done = called("run", "--machine", "fat-tree-1000", "--prefix", prefix, "--dry-run")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "4,000 devices are 16,000,000 pairs, more than a run can hold" in done.stderr


def test_a_plan_names_a_few_of_many_devices():
    done = called("run", "device_local_copy", "--machine", "gb200-nvl72", "--dry-run")
    said = " ".join(done.stdout.split())
    assert "72 cells; memory at most: sim:0 1.0 GiB, sim:1 1.0 GiB, " in said
    assert said.endswith("sim:5 1.0 GiB and 66 more; about 1 s")


def test_a_profile_measures_a_fleet_between_its_nodes():
    """A described fleet has more pairs of devices than a run can hold in a few minutes."""
    machine = "16 x 8 x H100 SXM + 8 x 400G"
    done = called("run", "--profile", "quick", "--machine", machine, "--dry-run", "--json")
    names = {table["benchmark"] for table in json.loads(done.stdout)["plan"]}
    assert {"nodes_rails", "nodes_bisection", "rails_crossing", "device_local_copy"} <= names
    assert not {name for name in names if "_to_all_" in name or "device_to_device" in name}
    assert "128 devices of 16 nodes, which are 16,256 pairs" in done.stderr


def test_pairs_of_a_fleet_are_measured_if_they_are_named():
    words = "device_to_device_memcpy_write_ce", "--sample-pairs", "2", "--dry-run", "--json"
    done = called("run", *words, "--machine", "16 x 8 x H100 SXM + 8 x 400G")
    assert {table["benchmark"] for table in json.loads(done.stdout)["plan"]} == {words[0]}
    assert "nodes" not in done.stderr
