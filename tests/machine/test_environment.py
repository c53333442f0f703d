"""What a kernel runs under and a process runs in is told by the signs that each leaves."""

import pytest

from linkgauge.machine.tree import Captured, Disk
from machine_kit import GROUPS, captured, host_of, reason, subjects
from pci_kit import CARD, PORT, Bus

OTHER = f"{PORT}/0000:01:00.1"
VENDOR, PRODUCT = "sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name"
CLOCKS = "sys/devices/system/clocksource/clocksource0/available_clocksource"
TREE, NVIDIA = "proc/device-tree", "proc/driver/nvidia/version"
X86, GUEST = ({"proc/cpuinfo": f"flags\t\t: lm{more}\n"} for more in ("", " hypervisor"))
TYPES = [f"{GROUPS}/{group}/type" for group in (0, 1)]


@pytest.mark.parametrize(
    ("field", "files", "value"),
    [
        ("hypervisor", {**GUEST, VENDOR: "QEMU\n"}, "QEMU"),
        ("hypervisor", {**GUEST, VENDOR: "VMware, Inc.\n"}, "VMware"),
        ("hypervisor", {**GUEST, VENDOR: "Microsoft Corporation\n", PRODUCT: "Virtual Machine\n"},
         "Hyper-V"),
        ("hypervisor", {**GUEST, CLOCKS: "kvm-clock tsc acpi_pm\n"}, "KVM"),
        ("hypervisor", {**GUEST, "sys/hypervisor/type": "xen\n"}, "Xen"),
        ("hypervisor", {**GUEST, VENDOR: "ACME Cloud\n"}, "ACME Cloud"),
        ("hypervisor", GUEST, "without a name"),
        # One that hides is known by its firmware.
        ("hypervisor", {**X86, VENDOR: "QEMU\n"}, "QEMU"),
        ("hypervisor", {f"{TREE}/compatible": b"linux,dummy-virt\0"}, "QEMU"),
        ("hypervisor", {f"{TREE}/compatible": b"riscv-virtio\0"}, "QEMU"),
        ("hypervisor", {f"{TREE}/hypervisor/compatible": b"xen,xen-4.17\0xen,xen\0"}, "Xen"),
        ("hypervisor", {VENDOR: "Amazon EC2\n"}, "Amazon EC2"),
        ("hypervisor", {**X86, VENDOR: "Amazon EC2\n"}, None),
        ("hypervisor", {VENDOR: "Amazon EC2\n", PRODUCT: "m7g.metal\n"}, None),
        # Xen's first domain owns the hardware.
        ("hypervisor", {"proc/xen/capabilities": "control_d\n", "sys/hypervisor/type": "xen\n"},
         None),
        ("container", {".dockerenv": ""}, "Docker"),
        ("container", {"run/.containerenv": 'engine="podman"\n'}, "Podman"),
        ("container", {"proc/1/cgroup": "0::/kubepods.slice/pod1\n", ".dockerenv": ""},
         "Kubernetes"),
        ("container", {"proc/1/environ": "PATH=/bin\0container=lxc\0"}, "LXC"),
        ("container", {"run/systemd/container": "systemd-nspawn\n"}, "systemd-nspawn"),
        ("container", {"proc/self/mounts": "overlay / overlay rw,lowerdir=/x 0 0\n"},
         "overlay root"),
        ("container", {"proc/self/mounts": "/dev/sda2 / ext4 rw 0 0\noverlay /x overlay rw\n"},
         None),
        ("iommu", dict.fromkeys(TYPES, "identity\n"), "passthrough"),
        ("iommu", {TYPES[0]: "identity\n", TYPES[1]: "DMA\n"}, "translating"),
        ("iommu", {f"{GROUPS}/0/devices/x": "", "proc/cmdline": "ro iommu=pt\n"}, "passthrough"),
        ("iommu", {"proc/cmdline": "intel_iommu=off\n"}, "off"),
        ("gpudirect", {NVIDIA: "NVIDIA UNIX x86_64 Kernel Module\n"}, "none"),
        ("gpudirect", {NVIDIA: "NVIDIA UNIX Open Kernel Module\n"}, "DMA-BUF"),
        ("gpudirect", {"sys/module/nvidia_peermem/refcnt": "0\n"}, "nvidia_peermem"),
        ("gpudirect", {}, None),
        ("iommu", {f"{GROUPS}/0/devices/x": ""}, None),
        ("iommu", {}, None),
    ],
)  # fmt: skip
def test_it_is_told_by_the_signs_that_it_leaves(field, files, value):
    details = host_of(captured(files))
    assert getattr(details, field) == value
    if field == "iommu":
        assert ("IOMMU" in subjects(details)) is (value is None)
    elif field == "hypervisor":
        assert "hypervisor" not in subjects(details)
        assert value is None or f"the hypervisor ({value})" in reason(details, "frequency governor")


def test_groups_of_accelerators_and_adapters_count():
    """What a sound card's group does, slows no transfer."""
    groups = {f"{GROUPS}/0/type": b"DMA-FQ\n", f"{GROUPS}/1/type": b"identity\n"}
    for card, sound, state in ((1, 0, "passthrough"), (0, 1, "translating")):
        bus = Bus()
        for path, group, code in ((CARD, card, "0x030200"), (OTHER, sound, "0x040300")):
            bus.links[f"{bus.add(path, **{'class': code})}/iommu_group"] = f"/{GROUPS}/{group}"
        tree = Captured(bus.files | groups, bus.links)
        assert host_of(tree).iommu == state


def test_a_kernel_with_an_iommu_folder_and_no_groups_has_it_off(tmp_path):
    (tmp_path / GROUPS).mkdir(parents=True)
    assert host_of(Disk(tmp_path)).iommu == "off"


def test_the_tightest_group_of_version_one_counts_too():
    files = {
        "proc/self/cgroup": "9:name=systemd:/x\n4:cpuacct,memory:/a/b\n0::/\n",
        "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096\n",
    }
    assert host_of(captured(files)).memory_limit == 4096


@pytest.mark.parametrize(
    "folder",
    ["sys/fs/cgroup/job/cpuset.{}.effective", "sys/fs/cgroup/cpuset/job/cpuset.{}",
     "dev/cpuset/job/{}"],
)  # fmt: skip
def test_without_a_status_the_cpuset_says_what_is_allowed(folder):
    files = {folder.format("cpus"): "2-3\n", folder.format("mems"): "1\n"}
    details = host_of(captured(files, {"proc/self/cpuset": "/job\n"}))
    assert (details.allowed_cpus, details.allowed_nodes) == ((2, 3), (1,))


def test_groups_are_found_where_they_are_mounted():
    files = {
        "proc/mounts": (
            "none /cgroup/all cgroup2 rw 0 0\nnone /cgroup/sets cgroup rw,cpuset,noprefix 0 0\n"
            "none /cgroup/memory cgroup rw,memory 0 0\n"
        ),
        "proc/self/cgroup": "4:memory:/a\n0::/b\n",
        "proc/self/cpuset": "/job\n",
        "cgroup/all/b/memory.max": "8192\n",
        "cgroup/memory/a/memory.limit_in_bytes": "4096\n",
        "cgroup/all/job/cpuset.cpus.effective": "0-5\n",
        "cgroup/sets/job/mems": "1\n",
    }
    details = host_of(captured(files))
    assert details.memory_limit == 4096
    assert (details.allowed_cpus, details.allowed_nodes) == (tuple(range(6)), (1,))
