"""What the readers of a machine find on a simulated one: files as Linux shows them.

`host_files` holds what machine/ reads, `render` all of it: also PCI functions with their links,
registers and error counters, and `linkgauge/accelerators.json` with what a vendor's library would
tell. Whoever judges a simulated machine reads these and never its description. Of the caches only
the last level is shown; counters stand at 0; nothing shows a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from .description import Description
from .hardware import DeviceUnit, Hardware, NodeUnit
from .pci import Function, functions
from .registers import config_space
from .topology import Topology

ACCELERATORS = "linkgauge/accelerators.json"

_CORRECTABLE = (
    "RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF",
)  # fmt: skip
_UNCORRECTABLE = (
    "Undefined", "DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF",
    "MalfTLP", "ECRC", "UnsupReq", "ACSViol", "UncorrIntErr", "BlockedTLP", "AtomicOpBlocked",
    "TLPBlockedErr", "PoisonTLPBlocked",
)  # fmt: skip
_NO_ERRORS = {
    f"aer_dev_{kind}": "".join(f"{name} 0\n" for name in (*names, f"TOTAL_ERR_{total}"))
    for kind, names, total in (
        ("correctable", _CORRECTABLE, "COR"),
        ("fatal", _UNCORRECTABLE, "FATAL"),
        ("nonfatal", _UNCORRECTABLE, "NONFATAL"),
    )
}


class Rendered(msgspec.Struct, frozen=True):
    """Contents of files and targets of symbolic links, by paths without the first slash."""

    files: dict[str, bytes]
    links: dict[str, str]


def render(description: Description, hardware: Hardware, topology: Topology) -> Rendered:
    """The whole tree. Raises InputError where PCI buses run out."""
    files = host_files(description, hardware)
    links: dict[str, str] = {}
    groups = description.host.hypervisor is None
    for number, function in enumerate(functions(hardware, topology)):
        folder = f"sys/devices/{function.folder}"
        files |= {f"{folder}/{name}": content for name, content in _function_files(function)}
        links[f"sys/bus/pci/devices/{function.address}"] = f"../../../devices/{function.folder}"
        if groups:
            up = "../" * (folder.count("/"))
            links[f"{folder}/iommu_group"] = f"{up}kernel/iommu_groups/{number}"
            links[f"sys/kernel/iommu_groups/{number}/devices/{function.address}"] = (
                f"../../../../devices/{function.folder}"
            )
    files[ACCELERATORS] = msgspec.json.format(
        msgspec.json.encode([_accelerator(device, hardware) for device in hardware.devices])
    )
    return Rendered(files, links)


def write(rendered: Rendered, folder: Path) -> None:
    """Writes the tree below `folder`. Raises OSError."""
    for path, content in rendered.files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    for path, target in rendered.links.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)


def host_files(description: Description, hardware: Hardware) -> dict[str, bytes]:
    """The files of the host alone."""
    host = description.host
    total = sum(node.group.memory for node in hardware.nodes)
    cpus = sum(node.group.cpus for node in hardware.nodes)
    everyone = _cpu_list(range(cpus))
    texts = {
        "etc/os-release": f'PRETTY_NAME="{host.system}"',
        "proc/sys/kernel/hostname": host.hostname,
        "proc/sys/kernel/ostype": "Linux",
        "proc/sys/kernel/osrelease": host.kernel,
        "proc/sys/kernel/arch": host.architecture,
        "proc/meminfo": _meminfo(total, "", available=True),
        "proc/cpuinfo": _cpuinfo(description, hardware),
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "sys/devices/system/cpu/online": everyone,
        "sys/devices/system/cpu/possible": everyone,
        "sys/devices/system/cpu/present": everyone,
        "sys/devices/system/node/online": _cpu_list(range(len(hardware.nodes))),
    }
    if host.hypervisor:
        texts["sys/class/dmi/id/sys_vendor"] = host.hypervisor
    for node in hardware.nodes:
        texts |= _node_files(description, hardware, node)
    return {path: f"{text}\n".encode() for path, text in texts.items()}


def _node_files(
    description: Description, hardware: Hardware, node: NodeUnit
) -> Iterator[tuple[str, str]]:
    folder = f"sys/devices/system/node/node{node.index}"
    cpus = _cpu_list(node.cpus)
    yield f"{folder}/cpulist", cpus
    yield f"{folder}/meminfo", _meminfo(node.group.memory, f"Node {node.index} ")
    yield f"{folder}/distance", " ".join(map(str, _distances(description, hardware, node.index)))
    host = description.host
    socket = node.index * host.sockets // len(hardware.nodes)
    cache = f"{node.group.cache >> 10}K"
    for cpu in node.cpus:
        folder = f"sys/devices/system/cpu/cpu{cpu}"
        core = cpu // host.threads_per_core
        yield f"{folder}/topology/physical_package_id", str(socket)
        yield f"{folder}/topology/core_id", str(core)
        yield f"{folder}/cache/index3/level", "3"
        yield f"{folder}/cache/index3/type", "Unified"
        yield f"{folder}/cache/index3/size", cache
        yield f"{folder}/cache/index3/shared_cpu_list", cpus


def _distances(description: Description, hardware: Hardware, index: int) -> tuple[int, ...]:
    """A row of the NUMA distance table: what the firmware says, else the kernel's defaults."""
    if description.host.distances is not None:
        return description.host.distances[index]
    return tuple(10 if node.index == index else 20 for node in hardware.nodes)


def _meminfo(total: int, prefix: str, *, available: bool = False) -> str:
    """Fifteen sixteenths are free: the kernel and what runs take the rest."""
    free = total - total // 16
    lines = {"MemTotal": total, "MemFree": free} | ({"MemAvailable": free} if available else {})
    return "\n".join(f"{prefix}{name}: {size >> 10} kB" for name, size in lines.items())


def _cpuinfo(description: Description, hardware: Hardware) -> str:
    """A paragraph a CPU. RISC-V names the processor `uarch`, the others `model name`."""
    host = description.host
    name = "uarch" if host.architecture.startswith("riscv") else "model name"
    flags = "flags\t\t: hypervisor\n" if host.hypervisor else ""
    return "\n".join(
        f"processor\t: {cpu}\n{name}\t: {host.cpu_model}\n{flags}"
        for node in hardware.nodes
        for cpu in node.cpus
    )


def _function_files(function: Function) -> Iterator[tuple[str, bytes]]:
    link = function.link
    texts = {
        "vendor": f"0x{function.vendor:04x}",
        "device": f"0x{function.device:04x}",
        "class": f"0x{function.class_code:06x}",
        "numa_node": str(function.node),
        "current_link_speed": _speed(link.speed if link else None),
        "max_link_speed": _speed(link.max_speed if link else None),
        "current_link_width": str(link.width if link else 0),
        "max_link_width": str(link.max_width if link else 0),
    }
    if function.buses is not None:
        texts["secondary_bus_number"] = str(function.buses.secondary)
        texts["subordinate_bus_number"] = str(function.buses.subordinate)
    for name, text in texts.items():
        yield name, f"{text}\n".encode()
    for name, text in _NO_ERRORS.items():
        yield name, text.encode()
    yield (
        "config",
        config_space(
            function.port,
            function.vendor,
            function.device,
            function.class_code,
            link,
            function.buses,
        ),
    )


def _speed(speed: float | None) -> str:
    return f"{speed:.1f} GT/s PCIe" if speed else "Unknown"


def _accelerator(device: DeviceUnit, hardware: Hardware) -> dict[str, object]:
    """What a vendor's library tells of a device: rates in bytes a second of one direction."""
    group = device.group
    ports = [
        {
            "remote": link.b if link.a == device.name else link.a,
            "kind": link.kind_name,
            "count": link.kind.count,
            "rate": float(link.rate),
            "state": "active",
        }
        for link in hardware.links
        if device.name in (link.a, link.b) and link.kind.kind != "pcie"
    ]
    return {
        "memory": device.name,
        "model": group.model,
        "uuid": device.uuid,
        "pci": device.pci,
        "driver": group.driver,
        "memory_bytes": int(group.memory),
        "links": ports,
        **group.properties,
    }


def _cpu_list(numbers: range | tuple[int, ...]) -> str:
    """The kernel's list format of consecutive numbers."""
    if len(numbers) < 2:
        return "".join(map(str, numbers))
    return f"{numbers[0]}-{numbers[-1]}"
