"""The files of a host: /proc, NUMA nodes, CPUs, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.model.hardware.inventory import HostDetails
from linkgauge.model.hardware.machine import Host, Node

# What /proc/cpuinfo tells of the instruction set.
_FEATURES = {
    "x86_64": "flags\t\t: lm",
    "aarch64": "CPU architecture: 8",
    "riscv64": "isa\t\t: rv64imafdc",
}


def host_files(host: Host, details: HostDetails) -> dict[str, bytes]:
    """The files of the host alone."""
    everyone, nodes = cpu_list(details.allowed_cpus or ()), [node.index for node in host.nodes]
    texts = {
        "etc/os-release": f'PRETTY_NAME="{host.system}"',
        "proc/sys/kernel/hostname": host.hostname,
        "proc/sys/kernel/ostype": "Linux",
        "proc/sys/kernel/osrelease": host.kernel,
        "proc/sys/kernel/arch": host.architecture,
        "proc/meminfo": _meminfo(host, "", available=True),
        "proc/cpuinfo": _cpuinfo(host, details),
        "proc/cmdline": details.command_line or "",
        # As long as it runs, all of it was idle.
        "proc/stat": f"cpu  0 0 0 {round(details.cpu_ticks or 0)} 0 0 0 0 0 0",
        "proc/self/cgroup": "0::/",
        "proc/self/limits": f"{'Max locked memory':<26}{'unlimited':<21}{'unlimited':<21}bytes",
        "proc/self/status": (
            f"Cpus_allowed_list:\t{everyone}\nMems_allowed_list:\t{cpu_list(nodes)}"
        ),
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "sys/class/dmi/id/sys_vendor": details.hypervisor or "Simulated",
        "sys/devices/system/cpu/online": everyone,
        "sys/devices/system/cpu/possible": everyone,
        "sys/devices/system/cpu/present": everyone,
        "sys/devices/system/node/online": cpu_list(nodes),
    }
    for size, (total, free) in details.huge_pages.items():
        folder = f"sys/kernel/mm/hugepages/hugepages-{size >> 10}kB"
        texts |= {f"{folder}/nr_hugepages": str(total), f"{folder}/free_hugepages": str(free)}
    for node in host.nodes:
        texts |= _node_files(host, details, node)
    return {path: f"{text}\n".encode() for path, text in texts.items()}


def _node_files(host: Host, details: HostDetails, node: Node) -> Iterator[tuple[str, str]]:
    folder = f"sys/devices/system/node/node{node.index}"
    cpus = cpu_list(node.cpus)
    yield f"{folder}/cpulist", cpus
    yield f"{folder}/meminfo", _meminfo(node, f"Node {node.index} ")
    yield f"{folder}/distance", " ".join(map(str, details.distances[node.index]))
    socket = node.index * (details.sockets or 1) // len(host.nodes)
    every = {cpu for one in host.nodes for cpu in one.cpus}
    for cpu in node.cpus:
        folder = f"sys/devices/system/cpu/cpu{cpu}"
        yield f"{folder}/topology/physical_package_id", str(socket)
        threads = details.threads_per_core or 1
        siblings = range(cpu // threads * threads, (cpu // threads + 1) * threads)
        equivalent = tuple(one for one in siblings if one in every)
        yield f"{folder}/topology/core_id", str(cpu // threads)
        yield f"{folder}/topology/core_cpus_list", cpu_list(equivalent)
        # A hypervisor sets the frequency, not its guest.
        if details.governor is not None:
            yield f"{folder}/cpufreq/scaling_governor", details.governor
        if details.frequency_driver is not None:
            yield f"{folder}/cpufreq/scaling_driver", details.frequency_driver
        yield f"{folder}/cache/index3/level", "3"
        yield f"{folder}/cache/index3/type", "Unified"
        yield f"{folder}/cache/index3/size", f"{(node.last_level_cache or 0) >> 10}K"
        yield f"{folder}/cache/index3/shared_cpu_list", cpus


def _meminfo(of: Host | Node, prefix: str, *, available: bool = False) -> str:
    free = of.memory_available or 0
    lines = {"MemTotal": of.memory_total or 0, "MemFree": free}
    lines |= {"MemAvailable": free} if available else {}
    return "\n".join(f"{prefix}{name}: {size >> 10} kB" for name, size in lines.items())


def _cpuinfo(host: Host, details: HostDetails) -> str:
    """A paragraph a CPU. RISC-V names the processor `uarch`, the others `model name`; x86 has a
    flag for a hypervisor."""
    name = "uarch" if host.architecture.startswith("riscv") else "model name"
    features = _FEATURES.get(host.architecture, "flags\t\t:")
    features += " hypervisor\n" if details.hypervisor and "flags" in features else "\n"
    vendor = f"vendor_id\t: {details.cpu_vendor}\n" if details.cpu_vendor else ""
    return "\n".join(
        f"processor\t: {cpu}\n{vendor}{name}\t: {host.cpu_model}\n{features}"
        for cpu in details.allowed_cpus or ()
    )


def cpu_list(numbers: Sequence[int]) -> str:
    """The kernel's list format of consecutive numbers."""
    if len(numbers) < 2:
        return "".join(map(str, numbers))
    return f"{numbers[0]}-{numbers[-1]}"
