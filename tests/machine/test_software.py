"""A capture keeps what drives the devices and what vendors' tools say, without secrets or names."""

import json
import os
import re
import subprocess

import pytest

from linkgauge.machine.captures.capture import capture, read_machine, read_manifest
from linkgauge.machine.tree import ROOT, Captured
from machine_kit import seen, through_a_file

GPU = "sys/devices/pci0000:00/0000:1b:00.0"
DISK = "sys/devices/pci0000:00/0000:05:00.0"
HUB = "sys/devices/pci0000:00/0000:06:00.0"
KERNEL = "6.8.0-31-generic"
FILES = {
    "proc/sys/kernel/hostname": "gpu07.lab.example.org\n",
    "sys/module/nvidia/version": "580.95.05\n",
    "sys/module/nvidia/srcversion": "0A1B2C3D4E5F60718293A4B\n",
    "sys/module/kvm/parameters/halt_poll_ns": "200000\n",
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
    "580.95.05  Release Build  (root@gpu07)  Tue\nGCC version:  gcc 13.3.0\n",
    f"var/lib/dkms/nvidia/580.95.05/{KERNEL}/x86_64/module/nvidia.ko": "",
    f"var/lib/dkms/nvidia/580.95.05/{KERNEL}/x86_64/log/make.log": "by root@gpu07",
    f"var/lib/dkms/nvidia/580.95.05/{KERNEL}-old/x86_64/module/nvidia.ko": "",
    "var/lib/dkms/mok.key": "PRIVATE KEY",
    "usr/local/cuda-12.4/version.json": '{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}',
    "usr/local/acme/secret-project/README": "",
    "usr/lib/x86_64-linux-gnu/libacme.so.1": "",
    "opt/rocm/.info/version": "6.2.0-66\n",
    f"{GPU}/class": "0x030200\n",
    f"{GPU}/msi_irqs/130": "msix\n",
    f"{GPU}/msi_irqs/99": "msix\n",
    "proc/irq/130/smp_affinity_list": "0-47\n",
    "proc/irq/130/effective_affinity_list": "3\n",
    "proc/irq/99/smp_affinity_list": "48-95\n",
    f"{DISK}/class": "0x010802\n",
    f"{DISK}/irq": "16\n",
    "proc/irq/16/smp_affinity_list": "0-95\n",
    f"{HUB}/class": "0x0c0330\n",
    f"{HUB}/irq": "17\n",
}
LINKS = {
    "usr/local/cuda": "/etc/alternatives/cuda",
    "etc/alternatives/cuda": "/usr/local/cuda-12.4",
    "usr/lib/x86_64-linux-gnu/libcuda.so.1": "libcuda.so.580.95.05",
    "usr/lib/x86_64-linux-gnu/libacme.so": "libacme.so.1",
    "usr/lib/x86_64-linux-gnu/libnccl.so.2": "libnccl.so.2.27.3",
    f"var/lib/dkms/nvidia/kernel-{KERNEL}-x86_64": f"580.95.05/{KERNEL}/x86_64",
    "var/lib/dkms/nvidia/580.95.05/source": "/usr/src/nvidia-580.95.05",
    "var/lib/dkms/mlnx/24.10.1.1/source": "/usr/src/mlnx-24.10.1.1",
    **{f"sys/bus/pci/devices/{place[-12:]}": f"../../../{place[4:]}" for place in (GPU, DISK, HUB)},
}
TREE = Captured({path: text.encode() for path, text in FILES.items()}, LINKS)


@pytest.mark.parametrize("anonymous", [False, True])
def test_what_drives_the_devices_is_kept_and_nothing_beside_it(anonymous, tmp_path):
    once = through_a_file(capture(TREE, seen(TREE)), tmp_path)
    kept = capture(once, read_machine(once), anonymous=anonymous)
    assert json.loads(kept.files["linkgauge/software.json"]) == {
        "modules": {"nvidia": {"version": "580.95.05", "srcversion": "0A1B2C3D4E5F60718293A4B"}},
        "dkms": [
            {"module": "mlnx", "version": "24.10.1.1", "state": "added"},
            {"module": "nvidia", "version": "580.95.05", "state": "installed", "kernel": KERNEL,
             "architecture": "x86_64"},
            {"module": "nvidia", "version": "580.95.05", "state": "built",
             "kernel": f"{KERNEL}-old", "architecture": "x86_64"},
        ],
        "libraries": {"NVIDIA kernel module": "580.95.05", "CUDA toolkit": "12.4.1",
                      "ROCm": "6.2.0-66", "libcuda": "580.95.05", "libnccl": "2.27.3"},
        "interrupts": {
            "0000:05:00.0": [{"number": 16, "kind": "line", "allowed": "0-95"}],
            "0000:1b:00.0": [
                {"number": 99, "kind": "msix", "allowed": "48-95"},
                {"number": 130, "kind": "msix", "allowed": "0-47", "effective": "3"},
            ],
        },
    }  # fmt: skip
    names = " ".join([*kept.files, *kept.links, *kept.folders])
    assert not re.search(r"acme|secret-project|mok\.key|make\.log|halt_poll", names)
    everything = b"".join(kept.files.values())
    assert b"PRIVATE KEY" not in everything
    assert (b"gpu07" in everything) is not anonymous


def test_tools_are_asked_for_a_limited_time(monkeypatch):
    run = subprocess.run
    limits = []

    def sooner(*words, timeout, **more):
        limits.append(timeout)
        return run(*words, timeout=0.3, **more)

    monkeypatch.setattr(subprocess, "run", sooner)
    commands = (
        ("sh", "-c", "echo out; echo err >&2; exit 1"),
        ("sh", "-c", "echo begun; exec sleep 60"),
        ("no-such-tool-anywhere", "-v"),
    )
    kept = capture(ROOT, seen(ROOT), commands=commands)
    failed, late, absent = read_manifest(kept).tools
    texts = [kept.files[name] for name in (failed.file, failed.errors, late.file)]
    assert (failed.exit, texts) == (1, [b"out\n", b"err\n", b"begun\n"])
    assert late.exit is None
    assert late.problem.startswith("still running after")
    assert (absent.problem, absent.file, absent.errors) == ("not installed", None, None)
    assert 0 < max(limits) <= 20


HOST = os.uname().nodename
UUID = "4c4c4544-0042-3010-8054-b4c04f4d3233"
NVIDIA_SMI = f"""\
    Product Name                       : NVIDIA H200
    Serial Number                      : 1650522011
    GPU UUID                           : GPU-{UUID}
    Processes
            Name                       : python train.py --api-key=hunter2
"""


def test_vendors_tools_are_kept_without_secrets_and_if_asked_without_names(tmp_path, monkeypatch):
    for name, text in (("nvidia-smi", NVIDIA_SMI), ("uname", f"Linux {HOST} 6.8.0\n")):
        place = tmp_path / "bin" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{text}END\n")
        place.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    machine = seen(ROOT)
    plain = through_a_file(capture(ROOT, machine), tmp_path)
    hidden = capture(ROOT, machine, anonymous=True)
    told, quiet = (
        "".join(tree.files[tool.file].decode() for tool in read_manifest(tree).tools if tool.file)
        for tree in (plain, hidden)
    )
    for kept in ("Product Name                       : NVIDIA H200", "6.8.0", " : (removed)"):
        assert kept in told
        assert kept in quiet
    for name in ("1650522011", UUID, *(() if HOST == "localhost" else (f"Linux {HOST} ",))):
        assert name in told
        assert name not in quiet
    assert "hunter2" not in told
    asked = {tool.command: tool for tool in read_manifest(plain).tools}
    assert asked["xpu-smi discovery"].problem == "not installed"
    assert asked["nvidia-smi topo -m"].file == "linkgauge/tools/nvidia-smi_topo_-m.txt"
