"""What a vendor's library would report about the devices of a simulated machine."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from itertools import product
from operator import attrgetter
from typing import Any, TypeVar

from msgspec.structs import replace

from linkgauge.model.by_name import by_name
from linkgauge.model.hardware.gaps import Gap
from linkgauge.model.hardware.inventory import (
    Accelerator,
    Adapter,
    FabricLink,
    Interface,
    PciLink,
    SwitchLink,
    Telemetry,
)
from linkgauge.model.hardware.network import NetworkCounters
from linkgauge.model.hardware.pcie import SPEEDS, link_rate
from linkgauge.model.memory import Memory

from .faults import Busy, Drift, Fault, Hot, Slow, rate_left
from .hardware import AdapterUnit, DeviceUnit, Hardware, SimLink, SwitchUnit
from .resources import names_of
from .topology import SimTopology

_LIBRARY = "simulated"
_DRIVERS = {0x15B3: "mlx5_core"}
_NOT_SIMULATED = Gap(
    "a simulated machine has none",
    "temperature", "power", "ECC errors", "row remapping", "modes", "processes",
)  # fmt: skip

_STATED: dict[str, type] = {
    "board": str,
    "form_factor": str,
    "fabric_state": str,
    "fabric_clique": int,
    "fabric_cluster": str,
}
"""The fields of an accelerator that `properties` can set, with their types."""


def switch_links(hardware: Hardware) -> tuple[SwitchLink, ...]:
    return tuple(
        SwitchLink(link.a, link.b, _kind(link.kind_name)[0], link.common.count, link.rate)
        for link in hardware.links
        if link.kind in ("fabric", "network") and {link.a, link.b} <= hardware.switch_names
    )


def ports_of(unit: AdapterUnit) -> tuple[str, ...]:
    """Returns the names of an adapter's ports. A single port has the adapter's name."""
    several = unit.group.ports > 1
    return tuple(
        f"{unit.name}:{number + 1}" if several else unit.name for number in range(unit.group.ports)
    )


def adapters(hardware: Hardware, topology: SimTopology) -> Iterator[tuple[Adapter, Interface]]:
    for unit in hardware.adapters:
        ends = (
            link.b if link.a == unit.name else link.a
            for link in hardware.links
            if link.kind == "network" and unit.name in (link.a, link.b)
            for _ in range(link.common.count)
        )
        for name in ports_of(unit):
            adapter = Adapter(
                name=name,
                pci=unit.pci,
                state="active",
                rate=unit.reported_rate,
                link_layer=unit.group.link_layer,
                leads_to=next(ends, None),
            )
            interface = Interface(
                name=name,
                up=True,
                kind=unit.group.link_layer,
                driver=_DRIVERS.get(unit.group.vendor_id),
                speed=unit.reported_rate,
                mtu=unit.group.mtu,
                node=topology.node_of(unit),
                pci=unit.pci,
                rdma=unit.name,
            )
            yield adapter, interface


def network_counters(hardware: Hardware, symptoms: Symptoms) -> tuple[NetworkCounters, ...]:
    units = {unit.name: unit for unit in hardware.adapters}
    return tuple(
        NetworkCounters("rdma", ports_of(units[end])[0], {"symbol_error": symptoms.errors(link)})
        for link in hardware.links
        if link.kind == "network"
        for end in (link.a, link.b)
        if end in units
    )


class SimTelemetry:
    def __init__(self, hardware: Hardware) -> None:
        self._devices = hardware.devices
        self._fabric: defaultdict[str, list[SimLink]] = defaultdict(list)
        self._pcie: dict[str, SimLink] = {}
        names = set(map(attrgetter("name"), self._devices))
        units: tuple[SwitchUnit | DeviceUnit, ...] = (*hardware.switches, *self._devices)
        vendors: dict[str, int] = dict(map(attrgetter("name", "group.vendor_id"), units))
        joined = Counter[str]()
        for link in hardware.links:
            joined.update((link.a, link.b))
            for end in {link.a, link.b} & names:
                if link.kind == "pcie":
                    self._pcie.setdefault(end, link)
                else:
                    self._fabric[end].append(link)
        # Of a card with a switch of its own, libraries read the slot's link: it is not simulated.
        for name, link in tuple(self._pcie.items()):
            (switch,) = {link.a, link.b} - {name}
            if vendors[name] == vendors.get(switch) and joined[switch] == 2:
                del self._pcie[name]
        self._healthy: list[Telemetry] = []
        self.nameless: list[Telemetry] = []
        for device in hardware.devices:
            self._healthy.append(self._sense(device, Symptoms()))
            self.nameless.append(replace(self._healthy[-1], memory=""))

    def sense(self, devices: Sequence[Memory], symptoms: Symptoms | None) -> tuple[Telemetry, ...]:
        """Returns devices' telemetry. `symptoms` is None if the machine has no faults."""
        found: list[Telemetry] = []
        for device in devices:
            index = device.index or 0
            healthy = self._healthy[index]
            found.append(self._sense(self._devices[index], symptoms) if symptoms else healthy)
        return tuple(found)

    def accelerators(self, symptoms: Symptoms) -> Iterator[Accelerator]:
        for device in self._devices:
            group, now = device.group, self._sense(device, symptoms)
            stated: dict[str, Any] = {}
            for name, kind in _STATED.items():
                if isinstance(group.properties.get(name), kind):
                    stated[name] = group.properties[name]
            rate = group.memory_rate_reported or group.memory_rate
            power, ecc = group.properties.get("power_limit_w"), group.properties.get("ecc")
            yield by_name(
                Accelerator,
                now,
                device,
                group,
                library=_LIBRARY,
                link=self._link(device, symptoms, idle=True),
                links=tuple(self._links(device, symptoms)),
                memory_clock=_clock(device, "memory"),
                memory_rate=None if rate is None or "memory_rate" in group.assumed else float(rate),
                max_clock=_clock(device, "sm"),
                utilization=1.0 if symptoms.now(Busy, device.name) else 0.0,
                power_limit=float(power) if isinstance(power, int | float) else None,
                ecc=ecc if isinstance(ecc, bool) else None,
                unknown=(_NOT_SIMULATED,),
                **stated,
            )

    def _sense(self, device: DeviceUnit, symptoms: Symptoms) -> Telemetry:
        link = self._link(device, symptoms, idle=False)
        held = min(1.0, symptoms.rate({device.name}))
        full, hot = _clock(device, "sm"), symptoms.now(Hot, device.name)
        pcie = self._pcie.get(device.name)
        return Telemetry(
            memory=device.name,
            link_speed=link.speed,
            link_width=link.width,
            clock=None if full is None else full * held,
            temperature=max(map(attrgetter("celsius"), hot), default=None),
            throttled=(SLOWDOWN,) if held < 1 else (),
            pcie_replays=None if pcie is None else symptoms.errors(pcie),
        )

    def _link(self, device: DeviceUnit, symptoms: Symptoms, *, idle: bool) -> PciLink:
        link = self._pcie.get(device.name)
        return (link and symptoms.pcie(link, idle=idle)) or PciLink()

    def _links(self, device: DeviceUnit, symptoms: Symptoms) -> Iterator[FabricLink]:
        first = 0
        for link in self._fabric[device.name]:
            kind, version = _kind(link.kind_name)
            count = link.common.count
            active = _active(count, symptoms.rate(names_of(link)))
            errors = symptoms.errors(link) // count
            remote = link.b if link.a == device.name else link.a
            reported = link.common.state_reported
            is_known = link.common.rate_reported and not link.common.assumed
            rate = link.rate / count if is_known else None
            for number in range(count):
                yield FabricLink(
                    first + number,
                    kind,
                    active=number < active if reported else None,
                    version=version,
                    rate=rate,
                    remote=remote,
                    errors=errors if reported else None,
                )
            first += count
        unused = device.group.properties.get("unused_links")
        if isinstance(unused, int):
            used = [link for link in self._fabric[device.name] if link.kind == "fabric"]
            kind, version = _kind(used[0].kind_name) if used else ("nvlink", None)
            first = sum(link.common.count for link in used)
            for number in range(unused):
                yield FabricLink(first + number, kind, active=False, version=version)


def _kind(name: str) -> tuple[str, str | None]:
    """Splits the kind of a link into name and version: nvlink4 is NVLink 4.0."""
    match = re.fullmatch(r"(.*?[^0-9])([0-9]+)", name)
    return (match[1], f"{match[2]}.0") if match else (name, None)


def _clock(device: DeviceUnit, name: str) -> float | None:
    clocks = device.group.properties.get("clocks_mhz")
    megahertz = clocks.get(name) if isinstance(clocks, dict) else None
    return megahertz * 1e6 if isinstance(megahertz, int | float) else None


# Faults in the facts that are read from a simulated machine. A slow PCIe link has fewer lanes or a
# lower speed, a slow fabric link fewer active links, a slow device a lower clock. If this does not
# explain the whole slowdown, error counters rise. Other faults show only in results.

SLOWDOWN = "hardware slowdown"
ERRORS = 1000
"""The number of errors that a bad link counts in each cell."""
_WIDTHS = (1, 2, 4, 8, 16, 32)
_Kind = TypeVar("_Kind", bound=Fault)
_EQUIVALENT = 0.01
"""Rates count as equal if their relative difference is smaller than this."""


class Symptoms:
    """The effects of faults on a machine's facts after `cells` cells have been measured."""

    def __init__(self, faults: Sequence[Fault] = (), cells: int = 0) -> None:
        self._faults, self._cells, self._at = faults, cells, max(0, cells - 1)

    def now(self, kind: type[_Kind], device: str) -> list[_Kind]:
        here = [one for one in self._faults if isinstance(one, kind) and self._at in one.cells]
        return [one for one in here if one.aims_at({device})]

    def pcie(self, link: SimLink, *, idle: bool) -> PciLink | None:
        """Returns a PCIe link's state; None if speed or width are assumed or not described."""
        kind = link.common
        if kind.speed is None or kind.width is None or kind.assumed:
            return None
        speed, width = _trained(kind.speed, kind.width, self.rate(names_of(link)))
        highest = kind.max_speed or kind.speed, kind.max_width or kind.width
        if idle and kind.idle_speed is not None:
            speed = min(speed, kind.idle_speed)
        # What carries more than it shows only rests: it may train to all that it can.
        rests = link.rate > link_rate(kind.speed, kind.width) * kind.count
        return PciLink(speed, width, *highest, target=highest[0] if rests else kind.speed)

    def errors(self, link: SimLink) -> int:
        cells, names = 0, names_of(link)
        for fault in self._faults:
            if isinstance(fault, Slow | Drift) and fault.aims_at(names):
                cells += 0 if _is_explained(link, fault) else fault.cells.before(self._cells)
        return ERRORS * cells

    def rate(self, names: Set[str]) -> float:
        return rate_left([fault for fault in self._faults if fault.aims_at(names)], self._at)


def _is_explained(link: SimLink, fault: Fault) -> bool:
    if not isinstance(fault, Slow):
        return False
    kind = link.common
    if kind.kind != "pcie":
        left = _active(kind.count, fault.rate) / kind.count
    elif kind.speed is None or kind.width is None:
        return False
    else:
        speed, width = _trained(kind.speed, kind.width, fault.rate)
        left = link_rate(speed, width) / link_rate(kind.speed, kind.width)
    return math.isclose(left, fault.rate, rel_tol=_EQUIVALENT)


@lru_cache(maxsize=1024)
def _trained(speed: float, width: int, rate: float) -> tuple[float, int]:
    """Returns speed and width of the slowest state in which a PCIe link of this speed and width
    keeps the fraction `rate` of its rate."""
    least = rate * link_rate(speed, width) * (1 - _EQUIVALENT)
    found, lowest = (speed, width), (math.inf, 0)
    for state in product((*SPEEDS, speed), (*_WIDTHS, width)):
        # Of two with equal rates, the wider one: links reduce their speed first.
        cost = link_rate(*state), -state[1]
        if state[0] <= speed and state[1] <= width and least <= cost[0] and cost < lowest:
            found, lowest = state, cost
    return found


def _active(count: int, rate: float) -> int:
    return min(count, max(1, math.ceil(count * rate * (1 - _EQUIVALENT))))
