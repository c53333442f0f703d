"""NUMA nodes: which CPUs and how much memory each has."""

from __future__ import annotations

import re
from collections.abc import Iterable

from linkgauge.model.machine import Node

from .cpu import one_a_core
from .cpu_caches import last_level_cache
from .tree import Root, least, names_in, number, parse_meminfo, read_cpus, read_text

NODES = "sys/devices/system/node"
_GPUS = "proc/driver/nvidia/gpus"


def read_nodes(
    root: Root, allowed: Iterable[int], memory_available: int | None
) -> tuple[Node, ...]:
    """Nodes that have memory, by number; `allowed` are the CPUs that may be used.

    A kernel without NUMA shows no nodes: then everything is node 0. A single node gets the figures
    of the whole machine. `memory_available` (bytes) limits what a node can offer. GPU memory that
    the kernel shows as nodes is not host memory.
    """
    usable = set(allowed)
    numbers = sorted(set(node_numbers(root)) - _gpu_nodes(root))
    nodes = [_read_node(root, index, usable, memory_available) for index in numbers]
    with_memory = tuple(node for node in nodes if node.memory_total != 0)
    if len(with_memory) > 1:
        return with_memory
    # The whole machine's figures are better: a VM may add memory to its node as it fills.
    index = with_memory[0].index if with_memory else 0
    total = parse_meminfo(read_text(root, "proc/meminfo") or "").get("MemTotal")
    cache = last_level_cache(root, usable)
    cpus, cores = tuple(sorted(usable)), one_a_core(root, usable)
    return (Node(index, cpus, total, memory_available, cache, cores),)


def node_numbers(root: Root) -> tuple[int, ...]:
    """All nodes, including those without memory; none if the kernel has no NUMA."""
    numbers = (re.fullmatch(r"node([0-9]{1,6})", name) for name in names_in(root, NODES))
    return tuple(sorted(int(match[1]) for match in numbers if match))


def _gpu_nodes(root: Root) -> set[int]:
    """Nodes that NVIDIA's driver made of its devices' memory (POWER9 with V100, GH200, GB200)."""
    texts = (read_text(root, f"{_GPUS}/{name}/numa_status") for name in names_in(root, _GPUS))
    found = (re.search(r"^Node:\s*([0-9]{1,6})$", text or "", re.MULTILINE) for text in texts)
    return {int(match[1]) for match in found if match}


def node_cpus(root: Root, index: int) -> tuple[int, ...]:
    """All CPUs of a node: from the list, or from the mask of old kernels."""
    return read_cpus(root, f"{NODES}/node{index}/cpulist", f"{NODES}/node{index}/cpumap")


def node_distances(root: Root, index: int) -> tuple[int, ...]:
    """A node's row of the firmware's distance table, in node order; empty if unreadable."""
    text = read_text(root, f"{NODES}/node{index}/distance") or ""
    row = [number(word) for word in text.split()]
    known = tuple(one for one in row if one is not None and one > 0)
    return known if len(known) == len(row) else ()


def _read_node(root: Root, index: int, usable: set[int], available: int | None) -> Node:
    cpus = tuple(cpu for cpu in node_cpus(root, index) if cpu in usable)
    meminfo = parse_meminfo(read_text(root, f"{NODES}/node{index}/meminfo") or "")
    if "MemFree" in meminfo:
        # The page cache is reclaimed on demand; the kernel has no MemAvailable per node.
        given = ("MemFree", "Active(file)", "Inactive(file)")
        available = least(available, sum(meminfo.get(name, 0) for name in given))
    cache, cores = last_level_cache(root, cpus), one_a_core(root, cpus)
    return Node(index, cpus, meminfo.get("MemTotal"), available, cache, cores)


def near_node(root: Root, address: str) -> int:
    """The node nearest to a PCI function; 0 if the platform does not say (-1, no file)."""
    return max(0, number(read_text(root, f"sys/bus/pci/devices/{address}/numa_node")) or 0)
