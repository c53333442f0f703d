"""Machines with more devices than a run of all pairs can hold."""

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
    assert "72 cells; at once at most sim:0 1.0 GiB, sim:1 1.0 GiB, " in said
    assert said.endswith("sim:5 1.0 GiB and 66 more; at most about 0 s")
