"""How PCI Express rates are computed, and the tree of PCI functions (PCI Express Base Specification
6.0: 4.2.1 to 4.2.3 encodings, 2.2 headers, 3.6 sequence number and CRC)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from operator import attrgetter
from typing import Literal

import msgspec

from linkgauge.model.grouped import grouped

from .inventory import PciFunction

SPEEDS = (2.5, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""GT/s per lane, indexed by generation minus 1, which is also the registers' speed code minus 1."""
WIDTHS = (1, 2, 4, 8, 12, 16, 32)
"""Link widths in lanes."""


class Encoding(msgspec.Struct, frozen=True):
    name: str
    share: float


_EIGHT_TEN = Encoding("8b/10b", 8 / 10)
_BLOCKS = Encoding("128b/130b", 128 / 130)
# 236 of a FLIT's 256 bytes are transaction layer packets; the rest is DLP, CRC and FEC.
_FLIT = Encoding("FLIT 236/256", 236 / 256)


def generation(speed: float) -> int | None:
    return SPEEDS.index(speed) + 1 if speed in SPEEDS else None


def encoding(speed: float) -> Encoding:
    if speed < 8:
        return _EIGHT_TEN
    return _BLOCKS if speed < 64 else _FLIT


def link_rate(speed: float, width: int) -> float:
    """Returns the bytes/s of one direction. For 32 GT/s × 16 lanes: × 128/130 ÷ 8 = 63.0 GB/s."""
    return speed * 1e9 * width * encoding(speed).share / 8


HEADER = {"write": 16, "request": 16, "completion": 12}
"""Header bytes of a packet: writes and read requests with a 64-bit address, and completions of a
read."""
_WRAPPING = 8
"""Bytes around a packet before FLIT mode: framing, sequence number and CRC. With them, a write with
a 64-bit address adds 24 bytes and a completion 20, as in R. Neugebauer et al., Understanding PCIe
performance for end host networking, SIGCOMM 2018, section 3."""


def packet_overhead(packet: str, speed: float) -> int:
    """Returns how many bytes a packet adds to its payload. `packet` is a key of HEADER."""
    return HEADER[packet] + (_WRAPPING if speed < 64 else 0)


_ACCELERATORS = (0x03, 0x0B, 0x12)
"""PCI base classes: display (GPUs), processors, processing accelerators."""


def is_accelerator(function: PciFunction) -> bool:
    computes = function.class_code is not None and function.class_code >> 16 in _ACCELERATORS
    return computes and not function.display


# The tree of PCI functions: what lies above a function, and how far apart two are.

TopologyClass = Literal["PIX", "PXB", "PHB", "NODE", "SYS"]
"""What lies between two functions, named as by `nvidia-smi topo -m`. `PIX`: at most one switch.
`PXB`: several switches. `PHB`: a host bridge. `NODE`: several host bridges of a NUMA node. `SYS`:
the link between NUMA nodes."""

_SWITCH = ("upstream port", "downstream port")


class PciTree:
    """The tree of PCI functions. Garbled data, in which parents form a loop, does no harm."""

    def __init__(self, functions: Iterable[PciFunction]) -> None:
        self.functions = {function.address: function for function in functions}
        self._below = grouped(map(attrgetter("parent", "address"), self.functions.values()))
        self._line = cache(self._find_line)

    def above(self, address: str) -> tuple[PciFunction, ...]:
        found: dict[str, PciFunction] = {}
        function = self.functions.get(address)
        while function and function.parent and function.parent not in (address, *found):
            function = self.functions.get(function.parent)
            if function:
                found[function.address] = function
        return tuple(found.values())

    def slot(self, address: str) -> str:
        """Returns the upstream port of the topmost switch on the device's card, else `address`."""
        card, slot, below = self.functions.get(address), address, address
        for port in self.above(address):
            is_own = card is not None and port.vendor == card.vendor is not None
            if not is_own or port.port not in _SWITCH or self._below[port.address] != [below]:
                break
            slot, below = port.address if port.port == "upstream port" else slot, port.address
        return slot

    def distance(self, one: str, other: str) -> int | None:
        """Returns the number of hops between two functions as Linux counts them, or None if the
        path is unknown (`calc_map_type_and_dist` in drivers/pci/p2pdma.c)."""
        branches = self._branches(one, other)
        return None if branches is None else sum(map(len, branches))

    def topo_class(self, one: str, other: str) -> TopologyClass | None:
        """Returns the class of the path between two functions; None if unknown or the same one."""
        branches = self._branches(one, other)
        if branches is None or not any(branches):
            return None
        up, down = branches
        if not (up and self.functions[up[-1]].parent is None):
            # Two steps lead from a device through a switch's downstream to its upstream port.
            return "PIX" if max(map(len, branches)) <= 2 else "PXB"
        # A root bus, identified by domain and bus number, belongs to a host bridge.
        if up[-1].rpartition(":")[0] == down[-1].rpartition(":")[0]:
            return "PHB"
        nodes = [self.functions[address].numa_node for address in (one, other)]
        if None in nodes:
            return None
        return "NODE" if nodes[0] == nodes[1] else "SYS"

    def _branches(self, one: str, other: str) -> tuple[list[str], list[str]] | None:
        up, down = self._line(one), self._line(other)
        if up is None or down is None:
            return None
        return [at for at in up if at not in down], [at for at in down if at not in up]

    def _find_line(self, address: str) -> dict[str, None] | None:
        found: dict[str, None] = {}
        above: str | None = address
        while above is not None:
            function = self.functions.get(above)
            if above in found or function is None:
                return None
            if any("parent" in gap.fields for gap in function.unknown):
                return None
            found[above] = None
            above = function.parent
        return found
