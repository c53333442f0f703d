"""`linkgauge doctor` from the command line."""

import json

import pytest

from command_kit import called


def linkgauge(*arguments, folder):
    return called(*arguments, cwd=folder, COLUMNS="80")


def test_a_degraded_machine_fails_with_the_lines_that_mend_it(tmp_path):
    done = linkgauge("doctor", "--machine", "vm-degraded", folder=tmp_path)
    assert done.returncode == 1
    assert "SIMULATED vm-degraded" in done.stdout
    assert "target-speed  sim:0 (0000:01:00.0)" in done.stdout
    assert "CAP_EXP+30.w=5:f" in done.stdout


def test_a_machine_that_is_well_passes(tmp_path):
    done = linkgauge("doctor", "--machine", "dgx-h200-8", "--json", folder=tmp_path)
    assert done.returncode == 0
    assert not [f for f in json.loads(done.stdout)["findings"] if f["severity"] == "fail"]


def test_a_run_is_judged_by_what_it_kept(tmp_path):
    fault = "slow sim:1-host:0 rate=25%"
    options = ("--machine", "dgx-h200-8", "--device", "0", "--device", "1", "--size", "256M")
    linkgauge("run", "host_to_device_memcpy_ce", *options, "--fault", fault, folder=tmp_path)
    (run,) = (tmp_path / "results").rglob("run.json")
    done = linkgauge("doctor", str(run), "--json", folder=tmp_path)
    failed = [f for f in json.loads(done.stdout)["findings"] if f["severity"] == "fail"]
    assert done.returncode == 1
    assert {"sim:1 (0000:43:00.0)"} <= {finding["subject"] for finding in failed}


@pytest.mark.parametrize(
    "arguments", [("run.json", "--machine", "ppu-8"), ("--root", "nowhere"), ("nowhere",)]
)
def test_what_cannot_be_judged_is_bad_input(tmp_path, arguments):
    done = linkgauge("doctor", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_captured_tree_without_anything_fails_nothing(tmp_path):
    (tmp_path / "proc").mkdir()
    done = linkgauge("doctor", "--root", str(tmp_path), folder=tmp_path)
    assert done.returncode == 0
    assert "unknown" in done.stdout


def test_a_label_or_a_folder_of_runs_is_its_latest_run(tmp_path):
    options = ("--machine", "vm-degraded", "--profile", "quick", "--label", "first")
    linkgauge("run", "host_to_device_memcpy_ce", *options, folder=tmp_path)
    (run,) = (tmp_path / "results").rglob("run.json")
    for asked in ("first", "results", "results/simulated-vm-degraded"):
        done = linkgauge("doctor", asked, folder=tmp_path)
        assert done.returncode == 1
        assert done.stdout.splitlines()[-1] == f"results: {run.relative_to(tmp_path)}"


def test_a_machine_ends_with_what_is_wrong_and_what_to_do_first(tmp_path):
    done = linkgauge("doctor", "--machine", "vm-degraded", folder=tmp_path)
    last = done.stdout[done.stdout.index("verdict: ") :]
    assert last.startswith("verdict:   fail target-speed  sim:0")
    assert 'setpci -s "${PORT:?}" CAP_EXP+30.w=5:f' in last


@pytest.mark.parametrize("command", ["doctor", "vm"])
def test_remedies_are_written_as_a_script_that_replaces_nothing(command, tmp_path):
    asked = (command, "--machine", "vm-degraded", "--fix-script", "fix.sh")
    plain = linkgauge(*asked[:3], folder=tmp_path)
    done = linkgauge(*asked, folder=tmp_path)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert (tmp_path / "fix.sh").read_text().startswith("#!/bin/sh\n")
    again = linkgauge(*asked, folder=tmp_path)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == (
        "linkgauge: --fix-script fix.sh exists: give another name, or remove it\n"
    )
