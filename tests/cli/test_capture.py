"""`linkgauge capture` as a user types it: this machine, kept and read back."""

import json
import os
import subprocess
import sys

from cli.test_cli import linkgauge


def told(*arguments):
    done = linkgauge("devices", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_this_machine_reads_back_from_its_archive(tmp_path):
    path = tmp_path / "machine.tgz"
    done = linkgauge("capture", path)
    assert (done.returncode, done.stderr) == (0, "")
    here, there = told(), told("--root", path)
    assert there["devices"] == here["devices"]
    assert there["unavailable"] == here["unavailable"]
    for part in ("pci", "accelerators", "adapters"):
        ours, theirs = here["inventory"][part], there["inventory"][part]
        assert [one.get("address", one.get("name")) for one in theirs] == [
            one.get("address", one.get("name")) for one in ours
        ]
    for field in ("sockets", "cores", "isa", "caches", "hypervisor", "container", "unknown"):
        assert there["inventory"]["host"][field] == here["inventory"]["host"][field]


def test_anonymised_it_has_no_host_name(tmp_path):
    plain, hidden = tmp_path / "plain.tgz", tmp_path / "hidden.tgz"
    assert linkgauge("capture", plain).returncode == 0
    assert linkgauge("capture", hidden, "--anonymize", "--root", plain).returncode == 0
    assert told("--root", plain)["host"]["hostname"] == os.uname().nodename
    assert told("--root", hidden)["host"]["hostname"] == "host-1"


def test_a_dash_is_standard_output(tmp_path):
    path = tmp_path / "machine.tgz"
    with path.open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "linkgauge", "capture", "-", "--backend", "host"],
            stdout=out, stderr=subprocess.PIPE, check=False, cwd=tmp_path,
        )  # fmt: skip
    assert done.returncode == 0
    assert told("--root", path)["host"]["hostname"] == os.uname().nodename
    assert not (tmp_path / "-").exists()
