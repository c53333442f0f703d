"""The parts of a machine, such as devices and links, that transfers use and findings name."""

from __future__ import annotations

from typing import Literal, Self

from linkgauge.model.memory import Memory

Kind = Literal[
    "machine", "device", "function", "node", "group", "link", "PCIe link", "PCIe link above",
    "switch", "host bridge",
]  # fmt: skip
"""The kinds of parts. A `function` is a PCI function, and a `node` is the memory of a NUMA node. A
`group` has the devices of one node or one rail of a cluster. A `link` belongs to a fabric, or joins
two nodes or two network interfaces. A `PCIe link` is a device's own link; a `PCIe link above` is
the link above a bridge."""


class Part:
    """A part of a machine, such as a link. `ends` has the names of the places that a link joins. If
    `both_ways` is true, the part is a link's use in both directions at once, which may carry less
    than twice one direction. Equal parts are the same object."""

    __slots__ = ("both_ways", "ends", "kind", "name")

    kind: Kind
    name: str
    ends: tuple[str, ...]
    both_ways: bool

    def __new__(
        cls, kind: Kind, name: str, ends: tuple[str, ...] = (), *, both_ways: bool = False
    ) -> Self:
        key = (kind, name, ends, both_ways)
        if key not in _known:
            part = super().__new__(cls)
            part.kind, part.name, part.ends, part.both_ways = key
            _known.setdefault(key, part)
        return _known[key]  # type: ignore[return-value]

    def __getnewargs_ex__(self) -> tuple[tuple[str, str, tuple[str, ...]], dict[str, bool]]:
        return (self.kind, self.name, self.ends), {"both_ways": self.both_ways}

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Part({self.kind!r}, {self.name!r})"

    @property
    def crossed_both_ways(self) -> Part:
        name = f"{self.name} (both directions at once)"
        return Part(self.kind, name, self.ends, both_ways=True)

    @staticmethod
    def of(memory: Memory) -> Part:
        name = str(memory.place)
        return Part("node" if memory.is_host else "device", name, (name,))

    @staticmethod
    def device(name: str, address: str | None = None) -> Part:
        """Returns the device `name`, or the PCI function if `name` equals `address`."""
        if name == address:
            return Part.function(address)
        if address is None:
            return Part("device", name, (name,))
        return Part("device", f"{name} ({address})", (name, address))

    @staticmethod
    def function(address: str) -> Part:
        return Part("function", address, (address,))

    @staticmethod
    def link(one: str, other: str) -> Part:
        places = sorted((one, other), key=_order)
        return Part("link", "-".join(places), tuple(filter(None, map(_end_of, places))))

    @staticmethod
    def way(one: str, other: str) -> Part:
        return Part("link", f"{one} -> {other}", (one, other))

    @staticmethod
    def pcie_link(lower: str, address: str | None = None) -> Part:
        """Returns the PCIe link above a device or, if `lower` equals `address`, above a bridge."""
        kind: Kind = "PCIe link above" if lower == address else "PCIe link"
        return Part(kind, f"PCIe link of {lower}", (lower,))

    @staticmethod
    def hidden_link(memory: str) -> Part:
        return Part("PCIe link", f"link of {memory}", (memory,))

    @staticmethod
    def pcie_switch(upstream: str) -> Part:
        return Part("switch", f"PCIe switch {upstream}", (upstream,))

    @staticmethod
    def fabric_switch(name: str) -> Part:
        return Part("switch", name, (_end_of(name) or name,))

    @staticmethod
    def host_bridge(root_port: str) -> Part:
        bus = root_port.rpartition(":")[0]
        return Part("host bridge", f"host bridge {bus}".rstrip(), (bus,))


_known: dict[tuple[Kind, str, tuple[str, ...], bool], Part] = {}

MACHINE = Part("machine", "host")
"""The machine as a whole."""


def is_node(place: str) -> bool:
    return place.startswith("host:")


def is_memory(place: str) -> bool:
    """Whether a link's end is a memory or a device (even an unknown one), and not a switch."""
    return ":" in place.partition(" ")[0] or place.startswith(("gpu", "cpu", "device"))


def _end_of(place: str) -> str | None:
    last = place.rpartition(" ")[2]
    return last if ":" in last else None


def _order(name: str) -> tuple[bool, str, int]:
    space, _, index = name.rpartition(":")
    is_place = bool(space) and index.isdecimal()
    return (not is_place or space == "host", space or name, int(index) if is_place else 0)
