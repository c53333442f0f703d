"""Describes what is around this process: hypervisor, container, IOMMU, environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from linkgauge.model.hardware.gaps import NO_GROUPS

from .pci import groups_of_devices
from .tree import PCI, Root, hexadecimal, labelled

GROUPS = "sys/kernel/iommu_groups"

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
"""Hypervisors that always make up their firmware. Clouds are not listed, because they also rent
bare metal under the same name."""
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
    """Returns the hypervisor's name (or None), and whether this is certain."""
    # Xen's dom0 and a cloud's bare metal have no hypervisor.
    if "control_d" in (root.text("proc/xen/capabilities") or ""):
        return None, True
    cpuinfo = root.text("proc/cpuinfo") or ""
    flags = labelled(cpuinfo, "flags")
    firmware = " ".join(_words(root, place) for place in _FIRMWARE)
    if not flags and ".metal" in firmware:
        return None, True
    words = f"{firmware} {_words(root, _CLOCKS)}"
    known = (name for word, name in _HYPERVISORS if re.search(f"(?<![a-z]){word}(?![a-z])", words))
    name = next(known, None)
    # On x86 a CPU flag shows a hypervisor, elsewhere the firmware or device tree.
    if flags and "hypervisor" not in flags.split():
        return (name if name in _MADE_UP else None), True
    if flags:
        return name or root.text("sys/class/dmi/id/sys_vendor") or "without a name", True
    return name, bool(name or firmware.strip())


def _words(root: Root, place: str) -> str:
    return (root.text(place) or "").replace("\0", " ").strip().lower()


def firmware(root: Root) -> str | None:
    texts = (root.text(f"sys/class/dmi/id/bios_{name}") for name in ("version", "date"))
    return " of ".join(text.strip() for text in texts if text and text.strip()) or None


def container(root: Root) -> str | None:
    """Returns the kind of container around this process (`overlay root`: unknown kind), or None."""
    if root.text("run/.containerenv") is not None:
        return "Podman"
    environment = (root.text("proc/1/environ") or "").split("\0")
    stated = next((v for v in environment if v.startswith("container=")), "").partition("=")[2]
    stated = stated or root.text("run/systemd/container") or ""
    groups = root.text("proc/1/cgroup") or ""
    for word, name in _CONTAINERS:
        if word in groups:
            return name
    if stated:
        return _CONTAINER_NAMES.get(stated, stated)
    if root.text(".dockerenv") is not None:
        return "Docker"
    mounts = root.text("proc/self/mounts") or root.text("proc/mounts") or ""
    return "overlay root" if re.search(r"^\S+ / overlay ", mounts, re.MULTILINE) else None


def iommu(root: Root) -> tuple[_Iommu | None, str | None]:
    """Returns the IOMMU's mode and None, or None and why the mode is unknown
    (Documentation/ABI/testing/sysfs-kernel-iommu_groups)."""
    groups = root.names(GROUPS)
    groups = sorted(groups_of_devices(root).intersection(groups)) or groups
    kinds = {root.text(f"{GROUPS}/{group}/type") for group in groups}
    if any(kind and kind.startswith("DMA") for kind in kinds):
        return "translating", None
    if "identity" in kinds:
        return "passthrough", None
    options = (root.text("proc/cmdline") or "").split()
    if {"iommu=off", "intel_iommu=off", "amd_iommu=off"}.intersection(options):
        return "off", None
    if groups or root.names("sys/class/iommu"):
        if {"iommu=pt", "iommu.passthrough=1"}.intersection(options):
            return "passthrough", None
        return None, "the kernel does not show the type of groups (Linux before 5.11)"
    if "iommu_groups" in root.names("sys/kernel"):
        return "off", None
    return None, NO_GROUPS


_PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")
_NVIDIA_VERSION = "proc/driver/nvidia/version"


def gpudirect(root: Root) -> str | None:
    """Returns how network adapters access NVIDIA GPUs' memory: by a kernel module (its name), by
    `DMA-BUF`, or not at all (`none`). Returns None without NVIDIA's driver."""
    module = next((one for one in _PEER_MODULES if root.names(f"sys/module/{one}")), None)
    version = root.text(_NVIDIA_VERSION)
    if module is not None or version is None:
        return module
    return "DMA-BUF" if "Open Kernel Module" in version else "none"


# Environment variables that accelerators' libraries need on some machines to work at all: as a
# table, with what each is for and who says so.

_AMD, _NVIDIA = 0x1002, 0x10DE
_MI350, _MI350_VIRTUAL = (0x75A0, 0x75A3), (0x75B0, 0x75B3)
"""PCI device numbers of MI350X and MI355X, and of the virtual functions of both."""


class EnvironmentNeed(msgspec.Struct, frozen=True):
    """An environment variable that a vendor's devices need. `devices` are PCI device ids; empty
    means all. `because` says what happens without the variable, `source` where this is stated."""

    variable: str
    value: str
    vendor: int
    devices: tuple[int, ...]
    because: str
    source: str
    only_in_guests: bool = False


NEEDS: tuple[EnvironmentNeed, ...] = (
    EnvironmentNeed(
        "HSA_NO_SCRATCH_RECLAIM",
        "1",
        _AMD,
        (*_MI350, *_MI350_VIRTUAL),
        "RCCL ends with a fatal error of scratch memory being reclaimed",
        "vCPU benchmark suite, AMD-specific notes",
    ),
    EnvironmentNeed(
        "NCCL_P2P_DISABLE",
        "1",
        _AMD,
        _MI350_VIRTUAL,
        "virtual functions that access each other's memory hang; RCCL goes by way of the host",
        "vCPU benchmark suite, AMD-specific notes",
    ),
    EnvironmentNeed(
        "NCCL_NVLS_ENABLE",
        "0",
        _NVIDIA,
        (),
        "multicast memory of a guest can put GPUs out of service that others of the host use",
        "docs/several-processes.md",
        only_in_guests=True,
    ),
)


def needed(root: Root, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that this machine needs and `environment` does not set."""
    return {
        need.variable: need.value for need in _applying(root) if need.variable not in environment
    }


def in_force(root: Root, address: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the variables that a device needs and that are set, as `NAME=VALUE`."""
    is_of = _identity(root, address)
    return tuple(
        f"{need.variable}={environment[need.variable]}"
        for need in _applying(root)
        if is_of is not None and need.vendor == is_of[0] and is_of[1] in (need.devices or is_of)
        if need.variable in environment
    )


def _applying(root: Root) -> Iterator[EnvironmentNeed]:
    present = set(_present(root))
    is_guest = hypervisor(root)[0] is not None
    for need in NEEDS:
        wanted = {device for vendor, device in present if vendor == need.vendor}
        if wanted & set(need.devices or wanted) and (is_guest or not need.only_in_guests):
            yield need


def _present(root: Root) -> Iterator[tuple[int, int]]:
    for name in root.names(PCI):
        if (found := _identity(root, name)) is not None:
            yield found


def _identity(root: Root, address: str) -> tuple[int, int] | None:
    vendor, device = (
        hexadecimal(root.text(f"{PCI}/{address}/{what}")) for what in ("vendor", "device")
    )
    return None if vendor is None or device is None else (vendor, device)
