"""NUMA nodes: which CPUs and how much memory each has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from linkgauge.model.machine import MemoryKind, Node

from .cpu import one_a_core
from .cpu_caches import last_level_cache
from .memory_kinds import memory_kinds
from .tree import NODES, Root, least, names_in, number, parse_meminfo, read_cpus, read_text

_GPUS = "proc/driver/nvidia/gpus"


def read_nodes(
    root: Root, allowed: Iterable[int], memory_available: int | None
) -> tuple[Node, ...]:
    """Nodes that have memory, by number; `allowed` are the CPUs that may be used.

    A kernel without NUMA shows no nodes: then everything is node 0. A node that is the only one
    has all of the machine, unless some of the CPUs are another's, which is absent.
    `memory_available` (bytes) bounds what a node can offer. Memory of GPUs that the kernel shows as
    nodes is not the host's.
    """
    usable = set(allowed)
    numbers = host_nodes(root)
    kinds = memory_kinds(root, {index: node_cpus(root, index) for index in numbers})
    nodes = [_read_node(root, index, usable, memory_available, kinds) for index in numbers]
    with_memory = tuple(node for node in nodes if node.memory_total != 0)
    if len(with_memory) > 1:
        return with_memory
    lone = with_memory[0] if with_memory else Node(0, ())
    if lone.cpus and not usable.issubset(lone.cpus):
        return (lone,)
    # The whole machine's figures are the better ones: a VM may lend its node memory as it fills.
    total = parse_meminfo(read_text(root, "proc/meminfo") or "").get("MemTotal")
    if total is None:
        total, memory_available = lone.memory_total, lone.memory_available
    cache = last_level_cache(root, usable)
    cpus, cores = tuple(sorted(usable)), one_a_core(root, usable)
    return (Node(lone.index, cpus, total, memory_available, cache, cores, lone.kind),)


def host_nodes(root: Root) -> tuple[int, ...]:
    """All nodes but those of GPUs' memory."""
    return tuple(sorted(set(node_numbers(root)) - _gpu_nodes(root)))


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


def distances(root: Root, listed: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """The firmware's table by node: a column for each node that is `listed`, in that order, as
    there is a row. Rows that are garbled or of another length than there are nodes are left out."""
    shown = node_numbers(root)
    listed = [index for index in listed if index in shown]
    found = {}
    for index in listed:
        text = read_text(root, f"{NODES}/node{index}/distance") or ""
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
    meminfo = parse_meminfo(read_text(root, f"{NODES}/node{index}/meminfo") or "")
    if "MemFree" in meminfo:
        # The page cache is reclaimed on demand; the kernel has no MemAvailable per node.
        given = ("MemFree", "Active(file)", "Inactive(file)")
        available = least(available, sum(meminfo.get(name, 0) for name in given))
    cache, cores = last_level_cache(root, cpus), one_a_core(root, cpus)
    total = meminfo.get("MemTotal")
    return Node(index, cpus, total, available, cache, cores, kinds.get(index))


def near_node(root: Root, address: str) -> int:
    """The node nearest to a PCI function; 0 if the platform does not say (-1, no file)."""
    return max(0, number(read_text(root, f"sys/bus/pci/devices/{address}/numa_node")) or 0)
