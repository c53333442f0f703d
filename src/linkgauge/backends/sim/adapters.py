"""The network adapters of a simulated machine: how they are described, and what is read of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from linkgauge.model.hardware.inventory import Adapter, Interface

from .quantities import Rate

_DRIVERS = {0x15B3: "mlx5_core"}


class AdapterGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Identical network adapters, named by a range: `mlx5_0..7`. Each has `ports` of this `rate`. A
    `network` link from an adapter to a switch or to another adapter connects its first port that
    has none yet. `mtu` is the largest packet in bytes. `assumed` says that nobody states the rate.

    `pci` has the address of each adapter (null: made up), and `numa_node` is the value in sysfs
    (null: the nearest node)."""

    name: str
    model: str = ""
    rate: Rate | None = None
    ports: Annotated[int, msgspec.Meta(ge=1, le=8)] = 1
    link_layer: Literal["InfiniBand", "Ethernet"] = "InfiniBand"
    mtu: int | None = None
    vendor_id: int = 0x15B3
    device_id: int = 0x1021
    revision: int = 0
    pci: tuple[str, ...] | None = None
    numa_node: int | None = None
    assumed: bool = False

    @property
    def class_code(self) -> int:
        return 0x020000 if self.link_layer == "Ethernet" else 0x020700


class AdapterUnit(msgspec.Struct, frozen=True):
    """A network adapter. `pci` is its address in the form of sysfs."""

    name: str
    pci: str
    group: AdapterGroup

    @property
    def told_rate(self) -> float | None:
        """The rate of a port as it is read, or None if it is only assumed."""
        rate = self.group.rate
        return None if rate is None or self.group.assumed else float(rate)


def ports_of(unit: AdapterUnit) -> tuple[str, ...]:
    """Returns the names of an adapter's ports. A single port has the adapter's name."""
    several = unit.group.ports > 1
    return tuple(
        f"{unit.name}:{number + 1}" if several else unit.name for number in range(unit.group.ports)
    )


def rdma(units: Sequence[AdapterUnit], leads_to: Mapping[str, Sequence[str]]) -> Iterator[Adapter]:
    """Yields the ports, as sysfs and the switches report them. `leads_to` has the other ends of
    each adapter's network links."""
    for unit in units:
        ends = leads_to.get(unit.name, ())
        for number, name in enumerate(ports_of(unit)):
            yield Adapter(
                name=name,
                pci=unit.pci,
                state="active",
                rate=unit.told_rate,
                link_layer=unit.group.link_layer,
                leads_to=ends[number] if number < len(ends) else None,
            )


def interfaces(
    units: Sequence[AdapterUnit], node_of: Callable[[AdapterUnit], int]
) -> Iterator[Interface]:
    """Returns the ports as interfaces of the host."""
    return (
        Interface(
            name=name,
            up=True,
            kind=unit.group.link_layer,
            driver=_DRIVERS.get(unit.group.vendor_id),
            speed=unit.told_rate,
            mtu=unit.group.mtu,
            node=node_of(unit),
            pci=unit.pci,
            rdma=unit.name,
        )
        for unit in units
        for name in ports_of(unit)
    )
