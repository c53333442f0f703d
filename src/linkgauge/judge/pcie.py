"""Paths over PCIe: the link of a device, and of every bridge above it.

Payload goes in packets. A write carries up to MaxPayload. A read goes out as requests of up to
MaxReadReq and comes back as completions, which the root complex may cut at any read completion
boundary: 64 or 128 bytes. Nothing tells how long they really are, so 128 are taken (x86 servers
send up to MaxPayload and do somewhat better). A kernel asks for the lines of its cache, 128 bytes,
and writes them. Flow control (acknowledgements, credits) takes some percent more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property

from linkgauge.model.inventory import Accelerator, Inventory, PciFunction, PciLink
from linkgauge.model.pci_tree import PciTree
from linkgauge.model.pcie import encoding, link_rate, packet_overhead
from linkgauge.model.transfer import Access

from .path import Meeting, Path, Segment, Unknown, Use

COMPLETION = 128
"""Bytes that an answer to a read carries."""
LINE = 128
"""Bytes that a kernel reads or writes at once: a cache line of NVIDIA's GPUs. On two H200s kernels
reach 0.95 of what packets of this size leave (52 of 54.5 GB/s reading, 52.6 of 53.1 writing)."""
MAX_PAYLOAD, MAX_READ_REQUEST = 256, 512
"""What is assumed where the registers cannot be read: what servers mostly have."""

Trained = Mapping[str, tuple[float, int]]
"""GT/s and lanes of links as sampled under load, by the device's memory."""


class PciPaths:
    """Paths over PCIe of one machine. `addresses` are the devices' by their memories."""

    def __init__(self, inventory: Inventory, addresses: Mapping[str, str]) -> None:
        self._tree = PciTree(inventory.pci)
        self._addresses = addresses
        self._accelerators = {each.memory: each for each in inventory.accelerators}
        self._hypervisor = inventory.host.hypervisor
        self._line = cache(self._find_line)

    def to_host(
        self, device: str, node: int, access: Access, part: float, kernel: bool, trained: Trained
    ) -> Path:
        """`device` reads or writes memory of a host node. Raises Unknown."""
        line = self._line(device, trained.get(device))
        out, back = ("down", "up") if access == "read" else ("up", "down")
        packets = self._packets(access, kernel, line)
        uses = [use for link in line for use in packets.uses(link, out, back, part)]
        own = self._tree.functions.get(self._addresses.get(device, ""))
        doubts: tuple[str, ...] = ()
        if own is not None and own.numa_node is not None and own.numa_node != node:
            doubts = ("nothing tells what joins the device's node and this one",)
        loose = (_IN_FLIGHT,) if kernel and access == "read" else ()
        return Path(tuple(uses), doubts, loose, (Meeting(node, "PCIe"),))

    def between(
        self, begin: str, end: str, access: Access, part: float, kernel: bool, trained: Trained
    ) -> Path:
        """Payload goes from one device straight to another. Raises Unknown."""
        lines = self._line(begin, trained.get(begin)), self._line(end, trained.get(end))
        doubts: tuple[str, ...] = ()
        meeting = {link.name for link in lines[0]} & {link.name for link in lines[1]}
        if not meeting:
            doubts = (self._hidden("between them") or "their way leads over the host bridge",)
        packets = self._packets(access, kernel, [*lines[0], *lines[1]])
        uses: list[Use] = []
        for line, out, back in ((lines[0], "up", "down"), (lines[1], "down", "up")):
            for link in line:
                if link.name in meeting:
                    break
                uses += packets.uses(link, out, back, part)
        loose = (_IN_FLIGHT,) if kernel and access == "read" else ()
        return Path(tuple(uses), doubts, loose)

    def _find_line(self, device: str, sampled: tuple[float, int] | None) -> list[_Link]:
        """The device's link (as `sampled`, else as read), then that of each bridge above it.
        Raises Unknown."""
        address = self._addresses.get(device)
        if address is None:
            raise Unknown(f"the PCI address of {device} is unknown")
        own = self._tree.functions.get(address)
        first = sampled or _trained(own) or _trained(self._accelerators.get(device))
        if first is None:
            raise Unknown(f"speed or width of the link of {device} is unknown")
        line = [_Link(address, *first, own)]
        if self._hypervisor is None:
            for bridge in self._tree.above(address):
                # The port above a device is the other end of its link, idle when it was read.
                at = sampled if sampled and len(line) == 1 else _trained(bridge)
                line.append(_Link(bridge.address, *(at or (0.0, 0)), bridge))
        return line

    def _packets(self, access: Access, kernel: bool, line: list[_Link]) -> _Packets:
        known = [f.max_payload for f in (link.function for link in line) if f and f.max_payload]
        payload = min(known, default=MAX_PAYLOAD)
        own = line[0].function
        request = (own.max_read_request if own else None) or MAX_READ_REQUEST
        assumed = "" if known else " (assumed)"
        if access == "write":
            size = min(payload, LINE) if kernel else payload
            return _Packets("write", size, None, "" if kernel else assumed)
        size = min(payload, COMPLETION)
        return _Packets("completion", size, min(request, LINE) if kernel else request, "")

    def _hidden(self, what: str) -> str | None:
        if self._hypervisor is None:
            return None
        return f"the virtual machine hides what lies {what}"


_IN_FLIGHT = "how many reads a kernel keeps in flight is its device's own"


class _Link:
    """A link of a device or a bridge; of a bridge without one, speed and width are 0."""

    def __init__(self, name: str, speed: float, width: int, function: PciFunction | None) -> None:
        self.name = name
        self.speed = speed
        self.width = width
        self.function = function

    @cached_property
    def segments(self) -> dict[str, Segment]:
        """By direction."""
        best = self.function.link if self.function else PciLink()
        most = f"{best.max_speed or self.speed:g} GT/s x{best.max_width or self.width}"
        shown = f"{self.speed:g} GT/s x{self.width}"
        if most != shown:
            shown += f" (of {most})"
        shown = f"PCIe {shown} × {encoding(self.speed).name}"
        rate = link_rate(self.speed, self.width)
        return {way: Segment(self.name, rate, shown, way) for way in ("up", "down")}


class _Packets:
    """How payload travels: packets of `size` bytes; reads ask for `request` bytes at a time."""

    def __init__(self, kind: str, size: int, request: int | None, assumed: str) -> None:
        self._kind = kind
        self._size = size
        self._request = request
        self._assumed = assumed

    def uses(self, link: _Link, out: str, back: str, part: float) -> Iterator[Use]:
        if not link.speed:
            return
        added = packet_overhead(self._kind, link.speed)
        why = f"TLP {self._size} B{self._assumed} + {added} B of a {self._kind}"
        yield Use(link.segments[out], part, part * (1 + added / self._size), why)
        if self._request:
            asking = packet_overhead("request", link.speed)
            why = f"with requests of {self._request} B the other way"
            yield Use(link.segments[back], 0.0, part * asking / self._request, why, payload=False)


def _trained(end: PciFunction | Accelerator | None) -> tuple[float, int] | None:
    link = PciLink() if end is None else end.link
    return (link.speed, link.width) if link.speed and link.width else None
