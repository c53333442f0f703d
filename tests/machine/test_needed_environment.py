"""Variables that a machine needs come from a table; what is set wins."""

import pytest

from linkgauge.machine.needed_environment import NEEDS, in_force, needed

RECLAIM, P2P, NVLS = ({need.variable: need.value} for need in NEEDS)


def machine(root, vendor, device, *, guest=False):
    folder = root / "sys/bus/pci/devices/0000:05:00.0"
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "device").write_text(f"{device}\n")
    flags = "fpu hypervisor" if guest else "fpu"
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n\n")
    return root


@pytest.mark.parametrize(
    ("vendor", "device", "guest", "expected"),
    [
        ("0x1002", "0x75a0", False, RECLAIM),
        ("0x1002", "0x75b0", True, {**RECLAIM, **P2P}),
        ("0x1002", "0x74a1", True, {}),
        ("0x10de", "0x2335", True, NVLS),
        ("0x10de", "0x2335", False, {}),
        ("0x8086", "0x75b0", True, {}),
        ("nonsense", "", True, {}),
    ],
)
def test_each_machine_needs(tmp_path, vendor, device, guest, expected):
    assert needed(machine(tmp_path, vendor, device, guest=guest), {}) == expected


def test_what_is_set_stays(tmp_path):
    root = machine(tmp_path, "0x1002", "0x75b0", guest=True)
    assert needed(root, {"NCCL_P2P_DISABLE": "0"}) == RECLAIM


def test_what_is_set_for_a_device_is_said(tmp_path):
    root = machine(tmp_path, "0x1002", "0x75b0", guest=True)
    variables = {**RECLAIM, "NCCL_NVLS_ENABLE": "0", "PATH": "/bin"}
    assert in_force(root, "0000:05:00.0", variables) == ("HSA_NO_SCRATCH_RECLAIM=1",)
    for address in ("0000:06:00.0", ""):
        assert in_force(root, address, variables) == ()


def test_each_need_names_its_source():
    assert all(need.because and need.source for need in NEEDS)
