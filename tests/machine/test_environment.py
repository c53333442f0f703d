"""What a kernel runs under and a process runs in is told by the signs that each leaves."""

import pytest

from linkgauge.machine.tree import Captured
from machine_kit import GROUPS, captured, host_of, reason, subjects
from pci_kit import CARD, PORT, Bus

OTHER = f"{PORT}/0000:01:00.1"
VIRTUAL = {"proc/cpuinfo": "flags\t\t: lm hypervisor\n"}


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"sys/class/dmi/id/sys_vendor": "QEMU\n"}, "QEMU"),
        ({"sys/class/dmi/id/sys_vendor": "VMware, Inc.\n"}, "VMware"),
        (
            {
                "sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n",
                "sys/class/dmi/id/product_name": "Virtual Machine\n",
            },
            "Hyper-V",
        ),
        (
            {
                "sys/devices/system/clocksource/clocksource0/available_clocksource": (
                    "kvm-clock tsc acpi_pm\n"
                )
            },
            "KVM",
        ),
        ({"sys/hypervisor/type": "xen\n"}, "Xen"),
        ({"sys/class/dmi/id/sys_vendor": "ACME Cloud\n"}, "ACME Cloud"),
        ({}, "without a name"),
        ({"proc/device-tree/compatible": b"linux,dummy-virt\0"}, "QEMU"),
        ({"proc/device-tree/compatible": b"riscv-virtio\0"}, "QEMU"),
        ({"proc/device-tree/hypervisor/compatible": b"xen,xen-4.17\0xen,xen\0"}, "Xen"),
    ],
)
def test_a_virtual_machine_names_its_hypervisor(files, name):
    no_x86 = any(path.startswith("proc/device-tree") for path in files)
    details = host_of(captured({} if no_x86 else VIRTUAL, files))
    assert details.hypervisor == name
    assert f"the hypervisor ({name})" in reason(details, "frequency governor")


@pytest.mark.parametrize(
    "files",
    [
        {"proc/cpuinfo": "flags\t\t: lm\n", "sys/class/dmi/id/sys_vendor": "Amazon EC2\n"},
        {
            "sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
            "sys/class/dmi/id/product_name": "m7g.metal\n",
        },
        # Xen's first domain owns the hardware.
        {"proc/xen/capabilities": "control_d\n", "sys/hypervisor/type": "xen\n"},
    ],
)
def test_metal_is_not_taken_for_a_virtual_machine(files):
    details = host_of(captured(files))
    assert details.hypervisor is None
    assert "hypervisor" not in subjects(details)


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({".dockerenv": ""}, "Docker"),
        ({"run/.containerenv": 'engine="podman"\n'}, "Podman"),
        ({"proc/1/cgroup": "0::/kubepods.slice/pod1\n", ".dockerenv": ""}, "Kubernetes"),
        ({"proc/1/environ": "PATH=/bin\0container=lxc\0"}, "LXC"),
        ({"run/systemd/container": "systemd-nspawn\n"}, "systemd-nspawn"),
        ({"proc/self/mounts": "overlay / overlay rw,lowerdir=/x 0 0\n"}, "overlay root"),
        ({"proc/self/mounts": "/dev/sda2 / ext4 rw 0 0\noverlay /x overlay rw 0 0\n"}, None),
    ],
)
def test_a_container_is_known_by_the_signs_that_it_leaves(files, name):
    assert host_of(captured(files)).container == name


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({f"{GROUPS}/0/type": "identity\n", f"{GROUPS}/1/type": "identity\n"}, "passthrough"),
        ({f"{GROUPS}/0/type": "identity\n", f"{GROUPS}/1/type": "DMA\n"}, "translating"),
        ({f"{GROUPS}/0/devices/x": "", "proc/cmdline": "ro iommu=pt\n"}, "passthrough"),
        ({"proc/cmdline": "intel_iommu=off\n"}, "off"),
        ({f"{GROUPS}/0/devices/x": ""}, None),
        ({}, None),
    ],
)
def test_the_iommu_translates_or_passes_through_or_is_off(files, state):
    details = host_of(captured(files))
    assert details.iommu == state
    assert ("IOMMU" in subjects(details)) is (state is None)


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
    assert host_of(tmp_path).iommu == "off"


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
