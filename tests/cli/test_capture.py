"""`linkgauge capture` and `devices` as a user types them: a machine is kept and read back."""

import json
import os
import subprocess
import sys

import pytest

from command_kit import called


def told(*arguments):
    done = called("devices", "--json", "--backend", "host", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_this_machine_reads_back_from_its_archive_and_anonymised_without_its_name(tmp_path):
    path, hidden = tmp_path / "machine.tgz", tmp_path / "hidden.tgz"
    with path.open("wb") as out:  # a dash is standard output
        done = subprocess.run(
            [sys.executable, "-m", "linkgauge", "capture", "-", "--backend", "host"],
            stdout=out, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert called("capture", hidden, "--anonymize", "--root", path).returncode == 0
    here, there = told(), json.loads(called("devices", "--json", "--root", path).stdout)
    for part in ("pci", "accelerators", "adapters"):
        ours, theirs = here["inventory"][part], there["inventory"][part]
        assert [one.get("address", one.get("name")) for one in theirs] == [
            one.get("address", one.get("name")) for one in ours
        ]
    for field in ("sockets", "cores", "isa", "caches", "hypervisor", "container", "unknown"):
        assert there["inventory"]["host"][field] == here["inventory"]["host"][field]
    assert there["host"]["hostname"] == os.uname().nodename
    shown = json.loads(called("devices", "--json", "--root", hidden).stdout)
    assert shown["host"]["hostname"] == "host-1"


def test_a_container_that_hides_sys_is_told_with_what_would_help():
    hidden = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys && exec "$@"', "sh")
    try:
        subprocess.run([*hidden, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no mount namespace of one's own here: run as root")
    done = subprocess.run(
        [*hidden, sys.executable, "-m", "linkgauge", "devices", "-v", "--backend", "host"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "host:0" in done.stdout
    assert "PCI functions: /sys/bus/pci/devices lists none" in done.stdout
    assert "or a container that hides it: run on the host" in done.stdout


@pytest.mark.parametrize("command", ["doctor", "vm"])
def test_remedies_are_written_as_a_script_that_replaces_nothing(command, tmp_path):
    asked = (command, "--machine", "vm-degraded", "--fix-script", "fix.sh")
    plain = called(*asked[:3], cwd=tmp_path)
    done = called(*asked, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert (tmp_path / "fix.sh").read_text().startswith("#!/bin/sh\n")
    again = called(*asked, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == (
        "linkgauge: --fix-script fix.sh exists: give another name, or remove it\n"
    )
