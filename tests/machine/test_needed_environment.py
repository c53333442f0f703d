"""Variables that a machine needs come from a table; what is set wins."""

import os

import pytest

from linkgauge import backends
from linkgauge.backends.torch.runtime import discover
from linkgauge.machine.tree import Disk
from torch_kit import fake_torch

RECLAIM = {"HSA_NO_SCRATCH_RECLAIM": "1"}
P2P = {"NCCL_P2P_DISABLE": "1"}
NVLS = {"NCCL_NVLS_ENABLE": "0"}


def machine(root, vendor, device, *, guest=False):
    folder = root / "sys/bus/pci/devices/0000:1b:00.0"
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "device").write_text(f"{device}\n")
    flags = "fpu hypervisor" if guest else "fpu"
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n\n")
    return Disk(root)


def needed(monkeypatch, root, **environment):
    """What is set of the table once a backend with devices is open."""
    monkeypatch.setattr(os, "environ", dict(environment))
    monkeypatch.setattr(backends, "ROOT", root)
    monkeypatch.setattr(backends, "loaded", lambda place: lambda engines, host: None)
    backends.open_backend("cuda")
    return dict(os.environ)


@pytest.mark.parametrize(
    ("vendor", "device", "guest", "expected"),
    [
        ("0x1002", "0x75a0", False, RECLAIM), ("0x1002", "0x75b0", True, {**RECLAIM, **P2P}),
        ("0x1002", "0x74a1", True, {}), ("0x10de", "0x2335", True, NVLS),
        ("0x10de", "0x2335", False, {}), ("0x8086", "0x75b0", True, {}), ("nonsense", "", True, {}),
    ],
)  # fmt: skip
def test_each_machine_needs(tmp_path, monkeypatch, vendor, device, guest, expected):
    assert needed(monkeypatch, machine(tmp_path, vendor, device, guest=guest)) == expected


def test_what_is_set_stays(tmp_path, monkeypatch):
    root = machine(tmp_path, "0x1002", "0x75b0", guest=True)
    own = {"NCCL_P2P_DISABLE": "0"}
    assert needed(monkeypatch, root, **own) == {**RECLAIM, **own}


def test_what_is_set_for_a_device_is_said(tmp_path, monkeypatch):
    root = machine(tmp_path, "0x1002", "0x75b0", guest=True)
    monkeypatch.setattr(os, "environ", {**RECLAIM, "NCCL_NVLS_ENABLE": "0", "PATH": "/bin"})
    notes = [one.facts.device.notes for one in discover(fake_torch(hip="7.1.2", gpus=1), root)]
    assert "HSA_NO_SCRATCH_RECLAIM=1" in notes[0]
    assert not any("NVLS" in note for note in notes[0])
