"""Links between AMD's GPUs (XGMI), and the width of their memories, as the compute driver's
topology lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from linkgauge.model.inventory import FabricLink

from .tree import Root, names_in, number, read_text

NODES = "sys/class/kfd/kfd/topology/nodes"
_XGMI = 11
"""KFD_IOLINK_TYPE_XGMI: HSA_IOLINKTYPE of the HSA runtime."""
_MEGA = 1e6


class ComputeNode(msgspec.Struct, frozen=True):
    """A GPU of the topology: its node's number, its PCI address, its instruction set (`gfx950`),
    and the bits and the highest clock of its memory, Hz."""

    number: int
    address: str
    isa: str | None = None
    memory_bus: int | None = None
    memory_clock: float | None = None


def compute_nodes(root: Root) -> dict[str, ComputeNode]:
    """The GPUs of the topology by their PCI addresses. Never raises: without the driver none."""
    found = (_node(root, name) for name in sorted(names_in(root, NODES)) if name.isdecimal())
    return {node.address: node for node in found if node is not None}


def read_links(
    root: Root, address: str, nodes: Mapping[str, ComputeNode], peers: Mapping[str, str]
) -> tuple[FabricLink, ...]:
    """The XGMI links of the GPU at this address, one for each peer: the driver adds up those that
    lead to the same one, and its rate is what all of them signal in one direction. `peers` are the
    memories of devices by PCI address; a link to another one names that."""
    node = nodes.get(address)
    if node is None:
        return ()
    by_number = {one.number: one.address for one in nodes.values()}
    return tuple(_links(root, node.number, by_number, peers))


def _links(
    root: Root, node: int, addresses: Mapping[int, str], peers: Mapping[str, str]
) -> Iterator[FabricLink]:
    count = 0
    for name in sorted(names_in(root, f"{NODES}/{node}/io_links"), key=lambda n: (len(n), n)):
        link = _properties(root, f"{NODES}/{node}/io_links/{name}/properties")
        address = addresses.get(link.get("node_to", -1))
        if link.get("type") != _XGMI or address is None:
            continue  # to the host, by PCIe
        rate = link.get("max_bandwidth") or None
        yield FabricLink(
            index=count,
            kind="XGMI",
            active=True,
            remote=peers.get(address, address),
            rate=None if rate is None else rate * _MEGA,
        )
        count += 1


def _node(root: Root, name: str) -> ComputeNode | None:
    """A node of the topology; None for a CPU's."""
    found = _properties(root, f"{NODES}/{name}/properties")
    place = found.get("location_id")
    if not found.get("simd_count") or place is None:
        return None
    memory = _properties(root, f"{NODES}/{name}/mem_banks/0/properties")
    version = found.get("gfx_target_version", 0)
    clock = memory.get("mem_clk_max") or None
    return ComputeNode(
        number=int(name),
        address=f"{found.get('domain', 0):04x}:{place >> 8 & 255:02x}:{place >> 3 & 31:02x}"
        f".{place & 7:x}",
        isa=_isa(version) if version else None,
        memory_bus=memory.get("width") or None,
        memory_clock=None if clock is None else clock * _MEGA,
    )


def _isa(version: int) -> str:
    """`gfx950` of 90500: two decimal digits each for minor version and stepping, the latter shown
    as a hexadecimal digit."""
    return f"gfx{version // 10000}{version // 100 % 100}{version % 100:x}"


def _properties(root: Root, path: str) -> dict[str, int]:
    """Lines of a name and a number; empty if unreadable."""
    words = (line.split() for line in (read_text(root, path) or "").splitlines())
    pairs = ((word[0], number(word[1])) for word in words if len(word) == 2)
    return {name: value for name, value in pairs if value is not None}
