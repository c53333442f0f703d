"""Reads the facts of a host that are compared with a virtual machine's definition."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import asdict

from linkgauge.model.hardware.inventory import Inventory
from linkgauge.model.hardware.pcie import PciTree
from linkgauge.model.hardware.virtual import BusFunction, RunningDomain, Virtual

from .cpu import shown_cpus, threads_of
from .dimms import pages_below
from .numa import host_nodes
from .pci import lineage
from .tree import ADDRESS, NODES, PCI, Root, hexadecimal, labelled, number

DEFINITIONS = "etc/libvirt/qemu"
_SLICES = (
    "sys/fs/cgroup/machine.slice",
    "sys/fs/cgroup/cpuset/machine.slice",
    "sys/fs/cgroup/machine",
    "sys/fs/cgroup/cpuset/machine",
)
"""Folders of control groups in which systemd or libvirt puts virtual machines."""
_SCOPE = re.compile(r"(?:machine-)?qemu-[0-9]+-(.*?)(?:\.scope|\.libvirt-qemu)?")
_KVM = ("kvm_amd", "kvm_intel", "kvm_hv")
_WINDOWS = 6
"""The number of memory regions of a PCI function."""
_UUID = "sys/class/dmi/id/product_uuid"


def read_virtual(root: Root) -> Virtual:
    return Virtual(
        siblings={cpu: threads_of(root, cpu) for cpu in shown_cpus(root)},
        node_pages={
            node: pages
            for node in host_nodes(root)
            if (pages := pages_below(root, f"{NODES}/node{node}/hugepages"))
        },
        functions=_functions(root),
        crash_kernel=max(0, root.number("sys/kernel/kexec_crash_size") or 0),
        signs=tuple(_signs(root)),
        kvm=next((name for name in _KVM if root.names(f"sys/module/{name}")), None),
    )


def virtual_of(inventory: Inventory) -> Virtual:
    """Returns facts about virtualization from the inventory of a simulated machine."""
    tree = PciTree(inventory.pci)
    functions = tuple(
        BusFunction(
            **asdict(one),
            route=(*(bridge.address for bridge in tree.above(one.address)[::-1]), one.address),
        )
        for one in inventory.pci
    )
    name = inventory.host.hypervisor
    return Virtual(functions=functions, signs=(f"described as under {name}",) if name else ())


def _functions(root: Root) -> tuple[BusFunction, ...] | None:
    names = (name for name in root.names(PCI) if re.fullmatch(ADDRESS, name))
    found = ((name, root.resolve(f"{PCI}/{name}")) for name in sorted(names))
    return (
        tuple(
            _function(root, name, folder) if folder else BusFunction(address=name)
            for name, folder in found
        )
        or None
    )


def _function(root: Root, address: str, folder: str) -> BusFunction:
    return BusFunction(
        address=address,
        route=lineage(address, folder),
        class_code=hexadecimal(root.text(f"{folder}/class")),
        vendor=hexadecimal(root.text(f"{folder}/vendor")),
        device=hexadecimal(root.text(f"{folder}/device")),
        subsystem=hexadecimal(root.text(f"{folder}/subsystem_vendor")),
        numa_node=root.node(folder),
        driver=root.link_name(f"{folder}/driver"),
        iommu_group=number(root.link_name(f"{folder}/iommu_group")),
        windows=tuple(_windows(root, folder)),
    )


def _windows(root: Root, folder: str) -> Iterator[tuple[int, int, int]]:
    """Yields the number, size and largest possible size in bytes of each resizable PCI region."""
    lines = (root.text(f"{folder}/resource") or "").splitlines()
    for place, line in enumerate(lines[:_WINDOWS]):
        sizes = root.line(f"{folder}/resource{place}_resize")
        possible = hexadecimal(f"0x{sizes}", 16) if sizes else None
        ends = [end for word in line.split()[:2] if (end := hexadecimal(word, 16))]
        if possible and len(ends) == 2:
            # The highest bit n means 2^n MiB (Documentation/ABI/testing/sysfs-bus-pci).
            yield place, ends[1] - ends[0] + 1, 1 << possible.bit_length() - 1 + 20


def _signs(root: Root) -> Iterator[str]:
    """Yields sentences on what systemd-detect-virt checks to detect a hypervisor."""
    flags = labelled(root.text("proc/cpuinfo") or "", "flags")
    if flags:
        has = "has" if "hypervisor" in flags.split() else "has no"
        yield f"the CPU {has} flag `hypervisor`"
    vendor = [
        text
        for name in ("sys_vendor", "product_name")
        if (text := root.text(f"sys/class/dmi/id/{name}"))
    ]
    if vendor:
        yield f"the firmware names {' '.join(vendor)[:60]}"
    for what, place in (
        ("the hypervisor's type is", "sys/hypervisor/type"),
        ("the device tree names", "proc/device-tree/hypervisor/compatible"),
    ):
        if text := root.text(place):
            yield f"{what} {text[:40]}"
    if root.names("sys/firmware/qemu_fw_cfg"):
        yield "QEMU's firmware interface (fw_cfg) is there"


def machine_uuid(root: Root) -> str | None:
    """Returns the UUID that the firmware reports, or None if it is unreadable."""
    text = (root.line(_UUID) or "").lower()
    return text if re.fullmatch(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text) else None


def definitions(root: Root) -> tuple[str, ...]:
    names = sorted(name for name in root.names(DEFINITIONS) if name.endswith(".xml"))
    return tuple(f"{DEFINITIONS}/{name}" for name in names)


def running_domains(root: Root) -> tuple[RunningDomain, ...]:
    """Returns libvirt's running virtual machines, found by their control groups."""
    found: dict[str, RunningDomain] = {}
    for folder in _SLICES:
        for scope in root.names(folder):
            plain = re.sub(r"\\x([0-9a-f]{2})", lambda code: chr(int(code[1], 16)), scope)
            match = _SCOPE.fullmatch(plain)
            if match and match[1] not in found:
                found[match[1]] = _running(root, f"{folder}/{scope}", match[1])
    return tuple(found[name] for name in sorted(found))


def _running(root: Root, scope: str, name: str) -> RunningDomain:
    inner = f"{scope}/libvirt" if root.names(f"{scope}/libvirt") else scope
    pins: dict[str, dict[int, tuple[int, ...]]] = {"vcpu": {}, "iothread": {}}
    for group in root.names(inner):
        match = re.fullmatch(r"(vcpu|iothread)([0-9]{1,5})", group)
        cpus = _set(root, f"{inner}/{group}", "cpus") if match else None
        if match and cpus:
            pins[match[1]][int(match[2])] = cpus
    return RunningDomain(
        name=name,
        vcpus=dict(sorted(pins["vcpu"].items())),
        emulator=_set(root, f"{inner}/emulator", "cpus"),
        iothreads=dict(sorted(pins["iothread"].items())),
        nodes=_set(root, f"{inner}/emulator", "mems"),
    )


def _set(root: Root, group: str, what: str) -> tuple[int, ...] | None:
    """Returns a control group's own or inherited CPUs (`cpus`) or nodes (`mems`), or None."""
    places = (f"{group}/cpuset.{what}{end}" for end in (".effective", ""))
    return root.cpu_list(*places) or None
