"""Makes the facts that linkgauge would read about a simulated machine's host with idle CPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from linkgauge.model.by_name import by_name
from linkgauge.model.hardware.gaps import NO_GROUPS, NO_TABLE, AssumedFact, Assumption, Gap
from linkgauge.model.hardware.host_details import UNREACHABLE, CpuCache, HostDetails
from linkgauge.model.hardware.machine import Host, Node
from linkgauge.model.hardware.pcie import generation
from linkgauge.model.units import approximate_size

from .hardware import DeviceUnit, Hardware, NodeUnit, SimLink
from .topology import SimTopology

_ISA = {"x86_64": "x86-64", "aarch64": "armv8-a", "riscv64": "rv64imafdc"}
_HUGE_PAGE = 2 << 20
_HUGE_SHARE = 64
"""Huge pages take one part in this many of the memory."""
_HUGE_CHOICE = "madvise"
_TICKS = 10**6
"""The clock ticks of each CPU since boot."""


def host(hardware: Hardware) -> Host:
    about = hardware.description.host
    total = caches = cpus = 0
    found: list[Node] = []
    for node in hardware.nodes:
        size, cache, kind = int(node.group.memory), int(node.group.cache), node.group.kind
        total, caches, cpus = total + size, caches + cache, cpus + len(node.cpus)
        first = {cpu // about.threads_per_core: cpu for cpu in reversed(node.cpus)}
        cores = tuple(sorted(first.values()))
        found.append(Node(node.index, node.cpus, size, _free(size), cache, cores=cores, kind=kind))
    return by_name(
        Host,
        about,
        cpus=cpus,
        nodes=tuple(found),
        memory_total=total,
        memory_available=_free(total),
        memlock_limit=None,
        transparent_huge_pages=_HUGE_CHOICE,
        last_level_cache=caches,
    )


def details(hardware: Hardware, topology: SimTopology, *, in_groups: bool) -> HostDetails:
    """Returns facts as Linux would report them. `in_groups` says that IOMMU groups are visible."""
    about, nodes = hardware.description.host, hardware.nodes
    cpus: list[int] = []
    cores: set[tuple[int, int]] = set()
    kinds: set[tuple[int, int]] = set()
    node_cpus: dict[int, tuple[int, ...]] = dict(map(attrgetter("index", "cpus"), nodes))
    distances: dict[int, tuple[int, ...]] = {}
    for node in nodes:
        cpus += node.cpus
        socket = node.index * about.sockets // len(nodes)
        cores.update((socket, cpu // about.threads_per_core) for cpu in node.cpus)
        kinds.add((int(node.group.cache), len(node.cpus)))
        distances[node.index] = _distances(node, hardware, topology)
    unknown: list[Gap] = []
    if about.architecture not in _ISA:
        unknown.append(Gap("/proc/cpuinfo does not report it", "instruction set"))
    if about.hypervisor:
        sets = f"the hypervisor ({about.hypervisor}) hides the frequency: check on the host"
        unknown.append(Gap(sets, "frequency governor"))
    if not in_groups:
        unknown.append(Gap(NO_GROUPS, "IOMMU"))
    unknown.append(Gap(NO_TABLE, "DIMM rate"))
    passes = about.iommu == "passthrough" and not about.hypervisor
    huge = sum(node.group.memory for node in nodes) // _HUGE_SHARE // _HUGE_PAGE
    return by_name(
        HostDetails,
        about,
        sockets=len(dict(cores)),
        cores=len(cores),
        threads_per_core=min(about.threads_per_core, max(map(len, node_cpus.values()))),
        isa=_ISA.get(about.architecture),
        caches=tuple([CpuCache(3, "unified", size, cpus) for size, cpus in sorted(kinds)]),
        distances=distances,
        node_cpus=node_cpus,
        huge_pages={_HUGE_PAGE: (huge, huge)},
        transparent_huge_pages=_HUGE_CHOICE,
        governor=None if about.hypervisor else about.governor,
        frequency_driver=None if about.hypervisor else about.frequency_driver,
        command_line=f"BOOT_IMAGE=/boot/vmlinuz-{about.kernel} ro{' iommu=pt' if passes else ''}",
        iommu=about.iommu if in_groups else None,
        allowed_cpus=tuple(cpus),
        allowed_cores=len(cores),
        allowed_nodes=tuple(node_cpus),
        steal=0.0,
        gpudirect=("nvidia_peermem" if about.gpudirect else "none") if hardware.adapters else None,
        cpu_ticks=float(len(cpus) * _TICKS),
        unknown=tuple(unknown),
    )


def _free(total: int) -> int:
    return (total - total // 16) >> 10 << 10


def _distances(node: NodeUnit, hardware: Hardware, topology: SimTopology) -> tuple[int, ...]:
    described = hardware.description.host.distances
    if described is not None:
        return described[node.index]
    found: list[int] = []
    for other in hardware.nodes:
        joined = topology.route(node.name, other.name)
        reached = joined is not None and not topology.leaves(node.name, other.name)
        found.append(10 if other is node else 20 if reached else UNREACHABLE)
    return tuple(found)


# What a description assumes because nothing states it.

_Known = tuple[AssumedFact, str]


def assumptions(hardware: Hardware, topology: SimTopology) -> tuple[Assumption, ...]:
    found: defaultdict[_Known, dict[str, None]] = defaultdict(dict)
    for number, link in enumerate(hardware.links):
        for part in _ends(number, link, hardware, topology) if link.common.assumed else ():
            found[_of_link(link)][part] = None
    for adapter in hardware.adapters:
        if adapter.group.assumed:
            found["port", _rate(adapter.group.rate)][adapter.name] = None
    units: tuple[DeviceUnit | NodeUnit, ...] = (*hardware.devices, *hardware.nodes)
    for unit in units:
        for field in unit.group.assumed:
            fact, shown = _SHOWN[field]
            found[fact, shown(getattr(unit.group, field))][unit.name] = None
    return tuple([Assumption(*known, tuple(parts)) for known, parts in found.items()])


def _of_link(link: SimLink) -> _Known:
    kind = link.common
    if link.kind == "pcie" and kind.speed and kind.width:
        return "PCIe link", f"Gen {generation(kind.speed)} x{kind.width}"
    if link.kind == "socket":
        return "link between nodes", _rate(link.rate)
    count = kind.count
    return "link", f"{count} × {_rate(link.rate / count)}" if count > 1 else _rate(link.rate)


def _ends(number: int, link: SimLink, hardware: Hardware, topology: SimTopology) -> Iterator[str]:
    """Yields the devices (of a socket link: the nodes) at the link's ends. If there are none,
    yields the devices whose path to their node uses the link."""
    devices = [unit.name for unit in hardware.cards]
    nodes = [node.name for node in hardware.nodes]
    ends = [end for end in (link.a, link.b) if end in devices]
    if link.kind == "socket":
        ends = [end for end in (link.a, link.b) if end in nodes]
    if ends:
        yield from ends
        return
    for device in devices:
        route = topology.route(device, f"host:{topology.nearest_node(device)}")
        if route and any(crossing.number == number for crossing in route.crossings):
            yield device


def _rate(rate: float | None) -> str:
    return "no limit" if rate is None else f"{rate / 1e9:g} GB/s"


def _nanoseconds(seconds: float) -> str:
    return f"{seconds * 1e9:g} ns"


_SHOWN: Mapping[str, tuple[AssumedFact, Callable[[Any], str]]] = {
    "cpus": ("CPUs", str),
    "memory": ("memory size", approximate_size),
    "rate": ("memory rate", _rate),
    "memory_rate": ("memory rate", _rate),
    "latency": ("latency", _nanoseconds),
    "memory_latency": ("latency", _nanoseconds),
}
"""The assumed fact of each field of a group of devices or nodes, and how its value is shown."""
