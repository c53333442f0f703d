"""A capture keeps what drives the devices: modules, DKMS's builds, libraries, interrupts."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.machine.capture import MANIFEST, capture, read_manifest
from linkgauge.machine.secrets import REMOVED
from linkgauge.machine.software import (
    SOFTWARE,
    DkmsModule,
    Interrupt,
    Module,
    Software,
    installed_packages,
    interfaces,
    read_software,
)
from linkgauge.machine.tools import COMMANDS, commands_for
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
    "sys/module/megaraid_sas/version": "07.725.01.00\n",
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
    "usr/lib/x86_64-linux-gnu/libnccl.so.2": "libnccl.so.2.26.2",
    "usr/lib/x86_64-linux-gnu/libacme.so": "libacme.so.1",
    f"var/lib/dkms/nvidia/kernel-{KERNEL}-x86_64": f"580.95.05/{KERNEL}/x86_64",
    "var/lib/dkms/nvidia/580.95.05/source": "/usr/src/nvidia-580.95.05",
    "var/lib/dkms/mlnx/24.10.1.1/source": "/usr/src/mlnx-24.10.1.1",
    **{f"sys/bus/pci/devices/{place[-12:]}": f"../../../{place[4:]}" for place in (GPU, DISK, HUB)},
}
TREE = Captured({path: text.encode() for path, text in FILES.items()}, LINKS)
FOUND = Software(
    modules={
        "megaraid_sas": Module("07.725.01.00"),
        "nvidia": Module("580.95.05", "0A1B2C3D4E5F60718293A4B"),
    },
    dkms=(
        DkmsModule("mlnx", "24.10.1.1", "added"),
        DkmsModule("nvidia", "580.95.05", "installed", KERNEL, "x86_64"),
        DkmsModule("nvidia", "580.95.05", "built", f"{KERNEL}-old", "x86_64"),
    ),
    libraries={
        "NVIDIA kernel module": "580.95.05",
        "CUDA toolkit": "12.4.1",
        "ROCm": "6.2.0-66",
        "libcuda": "580.95.05",
        "libnccl": "2.26.2",
    },
    interrupts={
        "0000:05:00.0": (Interrupt(16, "line", "0-95"),),
        "0000:1b:00.0": (Interrupt(99, "msix", "48-95"), Interrupt(130, "msix", "0-47", "3")),
    },
)


def test_what_drives_the_devices_is_read_below_a_root():
    assert read_software(TREE) == FOUND


@pytest.mark.parametrize("anonymous", [False, True])
def test_a_capture_reads_back_the_same_and_lists_it(anonymous, tmp_path):
    kept = through_a_file(capture(TREE, seen(TREE), anonymous=anonymous), tmp_path)
    assert read_software(kept) == FOUND
    assert msgspec.json.decode(kept.files[SOFTWARE], type=Software) == FOUND


def test_names_and_keys_beside_them_are_nobodys_business(tmp_path):
    kept = through_a_file(capture(TREE, seen(TREE)), tmp_path)
    names = " ".join([*kept.files, *kept.links, *kept.folders])
    assert not re.search(r"acme|secret-project|mok\.key|make\.log|halt_poll", names)
    assert b"PRIVATE KEY" not in b"".join(kept.files.values())
    hidden = capture(TREE, seen(TREE), anonymous=True)
    assert b"gpu07" not in b"".join(hidden.files.values())


def test_a_machine_without_any_of_it_has_none():
    assert read_software(Captured({})) == Software()


@given(st.sampled_from(sorted(FILES)), st.binary(max_size=40))
def test_garbled_files_raise_nothing(path, content):
    assert read_software(Captured({**TREE.files, path: content}, LINKS)).modules


def test_this_machine_can_be_read():
    assert read_software(ROOT) == read_software(ROOT)
    assert "numpy" in installed_packages()


def test_packages_come_with_a_capture_of_this_machine(tmp_path):
    machine = seen(ROOT)
    kept = through_a_file(capture(ROOT, machine, commands=()), tmp_path)
    assert read_manifest(kept).packages == installed_packages()
    assert read_manifest(capture(kept, machine, anonymous=True)).packages == installed_packages()


ADAPTER = "enx0c42a1000007"
ETHTOOL = """\
Settings for {name}:
\tSpeed: 100000Mb/s
\tWake-on: s
        SecureOn password: 00:de:ad:be:ef:01
"""


def test_ethtool_is_asked_of_interfaces_that_have_a_device(tmp_path, monkeypatch):
    machine = Captured({f"{DISK}/class": b""}, {
        "sys/class/net/eno1": f"../../../{DISK}/net/eno1",
        f"{DISK}/net/eno1/device": "../..",
    }, [f"{DISK}/net/eno1", "sys/class/net/docker0"])  # fmt: skip
    assert interfaces(machine) == ("eno1",)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commands_for(("eno1",)) == COMMANDS
    (tmp_path / "ethtool").write_text("#!/bin/sh\n")
    (tmp_path / "ethtool").chmod(0o755)
    asked = commands_for(("eno1",))[len(COMMANDS) :]
    assert asked[:2] == (("ethtool", "eno1"), ("ethtool", "-i", "eno1"))
    assert len(commands_for(tuple(f"eth{number}" for number in range(500)))) < 300


def test_what_ethtool_prints_is_kept_without_its_password(tmp_path, monkeypatch):
    (tmp_path / "ethtool").write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{ETHTOOL}END\n")
    (tmp_path / "ethtool").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    commands = (("ethtool", ADAPTER),)
    machine = seen(ROOT)
    plain = through_a_file(capture(ROOT, machine, commands=commands), tmp_path)
    (tool,) = read_manifest(plain).tools
    text = plain.files[tool.file].decode()
    assert "Speed: 100000Mb/s" in text
    assert f"SecureOn password: {REMOVED}" in text
    hidden = capture(ROOT, machine, anonymous=True, commands=commands)
    (tool,) = read_manifest(hidden).tools
    assert tool.file in hidden.files
    assert tool.command == "ethtool enx020000000001"
    assert ADAPTER not in hidden.files[MANIFEST].decode()
