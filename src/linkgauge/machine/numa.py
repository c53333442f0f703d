"""Reads the NUMA nodes of the host, with their CPUs and memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from linkgauge.model.hardware.machine import MemoryKind, Node

from .cpu import last_level_cache, one_a_core
from .dimms import is_all_stacked
from .tree import NODES, PCI, Root, least, number, parse_meminfo

# What kind of memory a NUMA node has: DRAM, or what is faster, slower or keeps its content.
#
# Devices that drivers turned into nodes say where they come from (DAX: Documentation/ABI/testing/
# sysfs-bus-dax); the firmware's HMAT, as the kernel shows it, says how fast a node is
# (Documentation/admin-guide/mm/numaperf.rst); SMBIOS lists the kinds of chips.

DAX = "sys/bus/dax/devices"
_FASTER = 2
"""HBM has at least this many times the bandwidth of DRAM. On Xeon Max, it has 3.3 times as much."""


def memory_kinds(root: Root, nodes: Mapping[int, Sequence[int]]) -> dict[int, MemoryKind]:
    """Returns the kind of each node's memory, where it is known. For nodes behind a memory-side
    cache, it is known only from a DAX device."""
    devices = _dax_nodes(root)
    listed = _in_device_tree(root)
    stacked = is_all_stacked(root)
    cached = {index for index in nodes if root.names(f"{NODES}/node{index}/memory_side_cache")}
    beside = {i for i, cpus in nodes.items() if cpus and i not in devices and i not in cached}
    rates = {index: _bandwidth(root, index) for index in nodes}
    dram = max((rate for index in beside if (rate := rates[index])), default=None)
    kinds: dict[int, MemoryKind] = {}
    for index in nodes:
        rate = rates[index]
        known = devices.get(index)
        if known is not None:
            kinds[index] = known
        elif rate and dram and rate >= _FASTER * dram and index not in cached:
            kinds[index] = "HBM"
        elif index in beside or (index in listed and index not in {*devices, *cached}):
            kinds[index] = "HBM" if stacked else "DRAM"
    return kinds


def _in_device_tree(root: Root) -> set[int]:
    """Returns nodes with memory in the device tree (Documentation/devicetree/bindings/numa.txt)."""
    tree = "proc/device-tree"
    names = (name for name in root.names(tree) if name.startswith("memory@"))
    ids = (root.content(f"{tree}/{name}/numa-node-id") for name in names)
    return {int.from_bytes(one, "big") for one in ids if one is not None and len(one) == 4}


def _dax_nodes(root: Root) -> dict[int, MemoryKind | None]:
    found: dict[int, MemoryKind | None] = {}
    for name in root.names("sys/bus/dax/drivers/kmem"):
        place = root.resolve(f"{DAX}/{name}") if re.fullmatch(r"dax[0-9.]+", name) else None
        node = root.number(f"{place}/target_node") if place else None
        if place and node is not None:
            found[node] = _kind_of_device(place)
    return found


def _kind_of_device(place: str) -> MemoryKind | None:
    if "/ndbus" in place:
        return "NVM"
    return "CXL" if "/dax_region" in place else None


def _bandwidth(root: Root, index: int) -> int | None:
    """Returns the MB/s at which the nearest CPUs or devices read the node's memory (HMAT)."""
    access = f"{NODES}/node{index}"
    rates = (
        root.number(f"{access}/{kind}/initiators/read_bandwidth") for kind in ("access1", "access0")
    )
    return next((rate for rate in rates if rate), None)


_GPUS = "proc/driver/nvidia/gpus"


def read_nodes(
    root: Root, allowed: Iterable[int], memory_available: int | None
) -> tuple[Node, ...]:
    """Returns the host's nodes with memory, without GPUs' nodes. A node has only CPUs in `allowed`,
    and at most `memory_available` available bytes."""
    usable = set(allowed)
    numbers = host_nodes(root)
    kinds = memory_kinds(root, {index: node_cpus(root, index) for index in numbers})
    nodes = [_read_node(root, index, usable, memory_available, kinds) for index in numbers]
    with_memory = tuple(node for node in nodes if node.memory_total != 0)
    if len(with_memory) > 1:
        return with_memory
    lone = with_memory[0] if with_memory else Node(0, ())
    # A lone node gets all CPUs and memory, unless other nodes are GPUs' or have only CPUs.
    if lone.cpus and (_gpu_nodes(root) or not usable.issubset(lone.cpus)):
        return (lone,)
    # The whole machine's figures are the better ones: a VM may lend its node memory as it fills.
    total = parse_meminfo(root.text("proc/meminfo") or "").get("MemTotal")
    if total is None:
        total, memory_available = lone.memory_total, lone.memory_available
    cache = last_level_cache(root, usable)
    cpus, cores = tuple(sorted(usable)), one_a_core(root, usable)
    return (Node(lone.index, cpus, total, memory_available, cache, cores, lone.kind),)


def host_nodes(root: Root) -> tuple[int, ...]:
    return tuple(sorted(set(node_numbers(root)) - _gpu_nodes(root)))


def node_numbers(root: Root) -> tuple[int, ...]:
    return root.numbered(NODES, "node")


def _gpu_nodes(root: Root) -> set[int]:
    texts = (root.text(f"{_GPUS}/{name}/numa_status") for name in root.names(_GPUS))
    found = (re.search(r"^Node:\s*([0-9]{1,6})$", text or "", re.MULTILINE) for text in texts)
    return {int(match[1]) for match in found if match}


def node_cpus(root: Root, index: int) -> tuple[int, ...]:
    return root.cpus(f"{NODES}/node{index}/cpulist", f"{NODES}/node{index}/cpumap")


def distances(root: Root, listed: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Returns each node's distances to the nodes in `listed`, in order; empty if unreadable."""
    shown = node_numbers(root)
    listed = [index for index in listed if index in shown]
    found = {}
    for index in listed:
        text = root.text(f"{NODES}/node{index}/distance") or ""
        row = [one for word in text.split() if (one := number(word)) is not None and one > 0]
        if len(row) == len(text.split()) == len(shown):
            known = dict(zip(shown, row, strict=True))
            found[index] = tuple(known[other] for other in listed)
    return found if len(found) == len(listed) else {}


def _read_node(
    root: Root,
    index: int,
    usable: set[int],
    available: int | None,
    kinds: Mapping[int, MemoryKind],
) -> Node:
    cpus = tuple(cpu for cpu in node_cpus(root, index) if cpu in usable)
    meminfo = parse_meminfo(root.text(f"{NODES}/node{index}/meminfo") or "")
    if "MemFree" in meminfo:
        # The page cache is reclaimed on demand; the kernel has no MemAvailable per node.
        given = ("MemFree", "Active(file)", "Inactive(file)")
        available = least(available, sum(meminfo.get(name, 0) for name in given))
    cache, cores = last_level_cache(root, cpus), one_a_core(root, cpus)
    total = meminfo.get("MemTotal")
    return Node(index, cpus, total, available, cache, cores, kinds.get(index))


def near_node(root: Root, address: str) -> int:
    """Returns a PCI device's NUMA node, or 0 if the kernel does not know it."""
    return root.node(f"{PCI}/{address}") or 0
