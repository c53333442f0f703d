"""What the readers of a machine find on a simulated one: files as Linux shows them.

`host_files` holds what machine/ reads, `render` all of it: also PCI functions with their links,
registers and error counters, and `linkgauge/accelerators.json` with what a vendor's library would
tell. Whoever judges a simulated machine reads these and never its description. Of the caches only
the last level is shown. What shows of a fault is symptoms.py's matter. All hosts alike have huge
pages and no limits; the CPUs of those that are no virtual machine have the governor performance.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from linkgauge.machine.accelerators import ACCELERATORS, accelerators_file
from linkgauge.machine.pci_names import PLACES

from .description import Description
from .hardware import Hardware, NodeUnit
from .pci import Function, functions
from .registers import config_space
from .sensors import Sensors
from .symptoms import Symptoms
from .topology import Topology

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
_OF_A_BAD_LINK = ("BadTLP", "TOTAL_ERR_COR")
"""What counts a packet that comes garbled and is sent again."""

# What /proc/cpuinfo tells of the instruction set.
_FEATURES = {
    "x86_64": "flags\t\t: lm",
    "aarch64": "CPU architecture: 8",
    "riscv64": "isa\t\t: rv64imafdc",
}


class Rendered(msgspec.Struct, frozen=True):
    """Contents of files and targets of symbolic links, by paths without the first slash."""

    files: dict[str, bytes]
    links: dict[str, str]


def render(
    description: Description,
    hardware: Hardware,
    topology: Topology,
    symptoms: Symptoms | None = None,
) -> Rendered:
    """The whole tree. Raises InputError where PCI buses run out."""
    symptoms = symptoms or Symptoms(hardware)
    files = host_files(description, hardware)
    links: dict[str, str] = {}
    groups = description.host.hypervisor is None
    domain = b"identity\n" if description.host.iommu == "passthrough" else b"DMA-FQ\n"
    for number, function in enumerate(functions(hardware, topology, symptoms)):
        folder = f"sys/devices/{function.folder}"
        files |= {f"{folder}/{name}": content for name, content in _function_files(function)}
        links[f"sys/bus/pci/devices/{function.address}"] = f"../../../devices/{function.folder}"
        if groups:
            up = "../" * (folder.count("/"))
            links[f"{folder}/iommu_group"] = f"{up}kernel/iommu_groups/{number}"
            files[f"sys/kernel/iommu_groups/{number}/type"] = domain
            links[f"sys/kernel/iommu_groups/{number}/devices/{function.address}"] = (
                f"../../../../devices/{function.folder}"
            )
    files[PLACES[0]] = _pci_ids(hardware).encode()
    files[ACCELERATORS] = accelerators_file(Sensors(hardware).accelerators(symptoms))
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
    iommu = " iommu=pt" if host.iommu == "passthrough" and not host.hypervisor else ""
    # A sixty-fourth of the memory.
    huge = total >> 27
    texts = {
        "etc/os-release": f'PRETTY_NAME="{host.system}"',
        "proc/sys/kernel/hostname": host.hostname,
        "proc/sys/kernel/ostype": "Linux",
        "proc/sys/kernel/osrelease": host.kernel,
        "proc/sys/kernel/arch": host.architecture,
        "proc/meminfo": _meminfo(total, "", available=True),
        "proc/cpuinfo": _cpuinfo(description, hardware),
        "proc/cmdline": f"BOOT_IMAGE=/boot/vmlinuz-{host.kernel} ro{iommu}",
        # As long as it runs, all of it was idle.
        "proc/stat": f"cpu  0 0 0 {cpus * 10**6} 0 0 0 0 0 0",
        "proc/self/cgroup": "0::/",
        "proc/self/limits": f"{'Max locked memory':<26}{'unlimited':<21}{'unlimited':<21}bytes",
        "proc/self/status": (
            f"Cpus_allowed_list:\t{everyone}\n"
            f"Mems_allowed_list:\t{_cpu_list(range(len(hardware.nodes)))}"
        ),
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": str(huge),
        "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": str(huge),
        "sys/class/dmi/id/sys_vendor": host.hypervisor or "Simulated",
        "sys/devices/system/cpu/online": everyone,
        "sys/devices/system/cpu/possible": everyone,
        "sys/devices/system/cpu/present": everyone,
        "sys/devices/system/node/online": _cpu_list(range(len(hardware.nodes))),
    }
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
        # A hypervisor sets the frequency, not its guest.
        if not host.hypervisor:
            yield f"{folder}/cpufreq/scaling_governor", "performance"
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
    """A paragraph a CPU. RISC-V names the processor `uarch`, the others `model name`; x86 has a
    flag for a hypervisor."""
    host = description.host
    name = "uarch" if host.architecture.startswith("riscv") else "model name"
    features = _FEATURES.get(host.architecture, "flags\t\t:")
    features += " hypervisor\n" if host.hypervisor and "flags" in features else "\n"
    vendor = f"vendor_id\t: {host.cpu_vendor}\n" if host.cpu_vendor else ""
    return "\n".join(
        f"processor\t: {cpu}\n{vendor}{name}\t: {host.cpu_model}\n{features}"
        for node in hardware.nodes
        for cpu in node.cpus
    )


def _pci_ids(hardware: Hardware) -> str:
    """The PCI ID database, as far as switches need it: a model's first word is its maker's name."""
    models = {
        (switch.group.vendor_id, switch.group.device_id): switch.group.model.partition(" ")
        for switch in hardware.switches
        if " " in switch.group.model
    }
    return "".join(
        f"{vendor:04x}  {maker}\n\t{device:04x}  {name}\n"
        for (vendor, device), (maker, _, name) in models.items()
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
    if function.errors:
        yield "aer_dev_correctable", _counted(function.errors).encode()
    yield (
        "config",
        config_space(
            function.port,
            function.vendor,
            function.device,
            function.class_code,
            link,
            function.buses,
            function.revision,
            function.acs_redirect,
        ),
    )


def _speed(speed: float | None) -> str:
    return f"{speed:.1f} GT/s PCIe" if speed else "Unknown"


def _counted(errors: int) -> str:
    names = (*_CORRECTABLE, "TOTAL_ERR_COR")
    return "".join(f"{name} {errors if name in _OF_A_BAD_LINK else 0}\n" for name in names)


def _cpu_list(numbers: range | tuple[int, ...]) -> str:
    """The kernel's list format of consecutive numbers."""
    if len(numbers) < 2:
        return "".join(map(str, numbers))
    return f"{numbers[0]}-{numbers[-1]}"
