"""What kind of memory a NUMA node has: DRAM, or what is faster, slower or keeps its content.

Devices that drivers turned into nodes say where they come from (DAX: Documentation/ABI/testing/
sysfs-bus-dax); the firmware's HMAT, as the kernel shows it, says how fast a node is
(Documentation/admin-guide/mm/numaperf.rst); SMBIOS lists the kinds of chips.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from linkgauge.model.machine import MemoryKind

from .dimms import is_all_stacked
from .tree import NODES, Root, names_in, number, read_bytes, read_text, resolve

DAX = "sys/bus/dax/devices"
_FASTER = 2
"""So many times the bandwidth of DRAM is that of stacked memory: HBM2e of Xeon Max has 3.3 times,
HBM3 of MI300A has no DRAM beside it."""


def memory_kinds(root: Root, nodes: Mapping[int, Sequence[int]]) -> dict[int, MemoryKind]:
    """The kinds that are known, by node, of nodes with their CPUs.

    Memory beside CPUs is DRAM, unless all chips are HBM, or a cache of memory lies before it: then
    nothing tells what is behind. A node of memory alone is what its DAX device is; what the
    firmware set aside for special purposes is HBM where it is much faster than the DRAM. What a
    device tree lists as memory is DRAM.
    """
    devices = _dax_nodes(root)
    listed = _in_device_tree(root)
    stacked = is_all_stacked(root)
    cached = {index for index in nodes if names_in(root, f"{NODES}/node{index}/memory_side_cache")}
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
    """Nodes of the memory that a device tree lists (Documentation/devicetree/bindings/numa.txt)."""
    tree = "proc/device-tree"
    names = (name for name in names_in(root, tree) if name.startswith("memory@"))
    ids = (read_bytes(root, f"{tree}/{name}/numa-node-id") for name in names)
    return {int.from_bytes(one, "big") for one in ids if one is not None and len(one) == 4}


def _dax_nodes(root: Root) -> dict[int, MemoryKind | None]:
    """Nodes made of DAX devices by the driver kmem, with their kind where their place tells."""
    found: dict[int, MemoryKind | None] = {}
    for name in names_in(root, "sys/bus/dax/drivers/kmem"):
        place = resolve(root, f"{DAX}/{name}") if re.fullmatch(r"dax[0-9.]+", name) else None
        node = number(read_text(root, f"{place}/target_node")) if place else None
        if place and node is not None:
            found[node] = _kind_of_device(place)
    return found


def _kind_of_device(place: str) -> MemoryKind | None:
    """Of the folder of a DAX device. Below a bus of NVDIMMs it is theirs; CXL has regions of its
    own; a range that the firmware set aside (hmem) may be anything."""
    if "/ndbus" in place:
        return "NVM"
    return "CXL" if "/dax_region" in place else None


def _bandwidth(root: Root, index: int) -> int | None:
    """MB/s of reads by the nearest initiators, as the firmware's HMAT has it."""
    access = f"{NODES}/node{index}"
    rates = (
        number(read_text(root, f"{access}/{kind}/initiators/read_bandwidth"))
        for kind in ("access1", "access0")
    )
    return next((rate for rate in rates if rate), None)
