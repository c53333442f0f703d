"""`linkgauge devices` as a user types it."""

import json
import subprocess
import sys

import pytest
import yaml

from cli.test_cli import linkgauge


def test_hardware_yml_goes_out_and_comes_back(tmp_path):
    done = linkgauge("devices", "--machine", "riscv-2gpu", "--yaml")
    written = yaml.safe_load(done.stdout)
    assert (written["gpu"], written["nvidia_driver"]) == ("NVIDIA A10X", "535.104.07")
    assert written["nvlink_fusion_fw"] is None
    path = tmp_path / "hardware.yml"
    path.write_text(done.stdout.replace("nvlink_fusion_fw:", "nvlink_fusion_fw: 2025.12.4"))
    again = ("devices", "--machine", "riscv-2gpu", "--hardware", path)
    assert "nvlink_fusion_fw: 2025.12.4 (stated)" in linkgauge(*again).stdout
    told = json.loads(linkgauge(*again, "--json").stdout)
    assert told["inventory"]["stated"] == {"nvlink_fusion_fw": "2025.12.4"}


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
