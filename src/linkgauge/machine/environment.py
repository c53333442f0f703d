"""What the kernel runs under and what this process runs in: hypervisor, container, IOMMU."""

from __future__ import annotations

import re
from typing import Literal

from .pci import groups_of_devices
from .tree import Root, names_in, read_text

GROUPS = "sys/kernel/iommu_groups"
NO_GROUPS = f"no /{GROUPS} (a kernel without IOMMU, a container, or not captured)"

# Words in the firmware's vendor and product, device trees and clock sources, in order of priority.
_HYPERVISORS = (
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("parallels", "Parallels"),
    ("hyperv", "Hyper-V"),
    ("microsoft corporation virtual machine", "Hyper-V"),
    ("nutanix", "Nutanix AHV"),
    ("xen", "Xen"),
    ("amazon ec2", "Amazon EC2"),
    ("google compute engine", "Google Compute Engine"),
    ("alibaba cloud", "Alibaba Cloud"),
    ("openstack", "OpenStack"),
    ("bochs", "Bochs"),
    ("qemu", "QEMU"),
    ("dummy-virt", "QEMU"),
    ("riscv-virtio", "QEMU"),
    ("kvm", "KVM"),
)
_MADE_UP = {"VMware", "VirtualBox", "Parallels", "Hyper-V", "Bochs", "QEMU"}
"""Hypervisors whose firmware no real machine has; clouds also rent bare metal."""
_CONTAINERS = (
    ("kubepods", "Kubernetes"),
    ("libpod", "Podman"),
    ("docker", "Docker"),
    ("crio", "CRI-O"),
    ("containerd", "containerd"),
    ("lxc", "LXC"),
    ("machine.slice/machine-", "systemd-nspawn"),
)
_CONTAINER_NAMES = {"podman": "Podman", "docker": "Docker", "lxc": "LXC", "oci": "OCI"}

_Iommu = Literal["off", "passthrough", "translating"]
_FIRMWARE = (
    "sys/hypervisor/type",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/dmi/id/product_name",
    "proc/device-tree/hypervisor/compatible",
    "proc/device-tree/compatible",
    "proc/device-tree/model",
)
_CLOCKS = "sys/devices/system/clocksource/clocksource0/available_clocksource"


def hypervisor(root: Root) -> tuple[str | None, bool]:
    """The hypervisor below the kernel (None: none), and whether that could be determined.

    On x86 a CPU flag shows that there is one, unless it is configured to hide; elsewhere the
    firmware's tables and the device tree do. Xen's first domain owns the hardware and is not a
    guest. The firmware of a cloud's bare metal names the cloud's vendor.
    """
    if "control_d" in (read_text(root, "proc/xen/capabilities") or ""):
        return None, True
    cpuinfo = read_text(root, "proc/cpuinfo") or ""
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    firmware = " ".join(_words(root, place) for place in _FIRMWARE)
    if not flags and ".metal" in firmware:
        return None, True
    words = f"{firmware} {_words(root, _CLOCKS)}"
    known = (name for word, name in _HYPERVISORS if re.search(f"(?<![a-z]){word}(?![a-z])", words))
    name = next(known, None)
    if flags and "hypervisor" not in flags[1].split():
        return (name if name in _MADE_UP else None), True
    if flags:
        return name or read_text(root, "sys/class/dmi/id/sys_vendor") or "without a name", True
    return name, bool(name or firmware.strip())


def _words(root: Root, place: str) -> str:
    """A file in lower case, with spaces for the zeros that separate words in device trees."""
    return (read_text(root, place) or "").replace("\0", " ").strip().lower()


def firmware(root: Root) -> str | None:
    """The version of the BIOS and its date, as its tables have them (Documentation/ABI/testing/
    sysfs-class-dmi: `bios_version`, `bios_date`)."""
    texts = (read_text(root, f"sys/class/dmi/id/bios_{name}") for name in ("version", "date"))
    return " of ".join(text.strip() for text in texts if text and text.strip()) or None


def container(root: Root) -> str | None:
    """The kind of container that this process runs in, by the traces that each leaves; None: none.

    A root file system made only of layers (overlay) counts as a container of unknown kind.
    """
    if read_text(root, "run/.containerenv") is not None:
        return "Podman"
    environment = (read_text(root, "proc/1/environ") or "").split("\0")
    stated = next((v for v in environment if v.startswith("container=")), "").partition("=")[2]
    stated = stated or read_text(root, "run/systemd/container") or ""
    groups = read_text(root, "proc/1/cgroup") or ""
    for word, name in _CONTAINERS:
        if word in groups:
            return name
    if stated:
        return _CONTAINER_NAMES.get(stated, stated)
    if read_text(root, ".dockerenv") is not None:
        return "Docker"
    mounts = read_text(root, "proc/self/mounts") or read_text(root, "proc/mounts") or ""
    return "overlay root" if re.search(r"^\S+ / overlay ", mounts, re.MULTILINE) else None


def iommu(root: Root) -> tuple[_Iommu | None, str | None]:
    """What the IOMMU does to devices' addresses, or why that is unknown.

    Groups show the type of their domain: DMA and DMA-FQ translate, identity passes through
    (Documentation/ABI/testing/sysfs-kernel-iommu_groups). Groups of accelerators and RDMA adapters
    count, or all groups if these are in none; one that translates suffices.
    """
    groups = names_in(root, GROUPS)
    groups = sorted(groups_of_devices(root).intersection(groups)) or groups
    kinds = {read_text(root, f"{GROUPS}/{group}/type") for group in groups}
    if any(kind and kind.startswith("DMA") for kind in kinds):
        return "translating", None
    if "identity" in kinds:
        return "passthrough", None
    options = (read_text(root, "proc/cmdline") or "").split()
    if {"iommu=off", "intel_iommu=off", "amd_iommu=off"}.intersection(options):
        return "off", None
    if groups or names_in(root, "sys/class/iommu"):
        if {"iommu=pt", "iommu.passthrough=1"}.intersection(options):
            return "passthrough", None
        return None, "the kernel does not show the type of groups (Linux before 5.11)"
    if "iommu_groups" in names_in(root, "sys/kernel"):
        return "off", None
    return None, NO_GROUPS
