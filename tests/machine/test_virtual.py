"""What is read of a machine to compare it with a domain, as Linux and libvirt lay it out."""

import pytest

from linkgauge.machine.tree import Captured
from linkgauge.machine.virtual import read_virtual, running_domains
from vm_kit import tree

SCOPE = "sys/fs/cgroup/machine.slice/machine-qemu\\x2d3\\x2dgpu\\x2dvm.scope"


def test_signs_of_a_guest_and_of_a_host():
    assert read_virtual(tree()).signs == (
        "the CPU has flag `hypervisor`", "the firmware names QEMU"
    )  # fmt: skip
    assert "the CPU has no flag `hypervisor`" in read_virtual(tree(guest=False)).signs
    arm = Captured({
        "proc/cpuinfo": b"processor\t: 0\nCPU implementer\t: 0x41\n",
        "proc/device-tree/hypervisor/compatible": b"linux,kvm\0",
        "sys/firmware/qemu_fw_cfg/rev": b"3\n",
    })  # fmt: skip
    assert read_virtual(arm).signs == (
        "the device tree names linux,kvm", "QEMU's firmware interface (fw_cfg) is there"
    )  # fmt: skip


@pytest.mark.parametrize("inner", ["/libvirt", ""])
def test_running_domains_by_their_control_groups(inner):
    files = {
        f"{SCOPE}{inner}/vcpu0/cpuset.cpus": b"4\n",
        f"{SCOPE}{inner}/vcpu1/cpuset.cpus": b"\n",
        f"{SCOPE}{inner}/vcpu1/cpuset.cpus.effective": b"0-7\n",
        f"{SCOPE}{inner}/iothread1/cpuset.cpus": b"0-1\n",
        f"{SCOPE}{inner}/emulator/cpuset.cpus": b"0\n",
        f"{SCOPE}{inner}/emulator/cpuset.mems": b"0\n",
        "sys/fs/cgroup/machine.slice/cgroup.procs": b"",
        "sys/fs/cgroup/cpuset/machine/qemu-1-old.libvirt-qemu/vcpu0/cpuset.cpus": b"2\n",
    }
    gpu, old = running_domains(Captured(files))
    assert (gpu.name, gpu.vcpus, gpu.iothreads) == (
        "gpu-vm",
        {0: (4,), 1: tuple(range(8))},
        {1: (0, 1)},
    )
    assert (gpu.emulator, gpu.nodes) == ((0,), (0,))
    assert (old.name, old.vcpus) == ("old", {0: (2,)})
