"""Describes equal hosts with adapters: `2 x 8 x H100 SXM + 8 x 400G`, `4 x GB200 NVL72`. The nth
adapters of all hosts share leaf switches (a rail). Spines carry as much as leaf switches."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import yaml

from linkgauge.backends.sim.description import description_of, load
from linkgauge.backends.sim.hardware import build, expand
from linkgauge.model.errors import InputError

from .facts import Facts, ReportedGpu, ReportedNic
from .nics import GIGABIT
from .products import split_product

_HOSTS = re.compile(r"\s*(\d{1,4})\s*[x×*]\s*(\d.{0,80})")
_NICS = re.compile(
    r"\s*(?:(\d{1,2})\s*[x×*]\s*)?(?:([A-Za-z][\w -]{0,40}?)[ -])?\s*(\d{2,4})\s*G(?:b/s|bps|b)?\s*"
)
_RACKS = re.compile(r"\s*(?:(\d{1,2})\s*[x×*]\s*)?(?:NVIDIA )?G?B[23]00 NVL ?72\s*", re.IGNORECASE)
_RACK, _GPUS_OF_RACK, _GPUS_OF_TRAY = "gb200-nvl72", 72, 4
_MOST_HOSTS, _MOST_GPUS = 256, 1024
_HOSTS_OF_LEAF, _HOSTS_OF_SPINE = 32, 4
_SHORT = {"CX": "ConnectX-", "BF": "BlueField-"}
_OVERHEAD = 0.95
"""The share of a port's rate that payload has in large packets of RDMA
(docs/expect-formulas.md)."""

_SLOTS = ((200, 16.0), (400, 32.0), (math.inf, 64.0))
"""The GT/s of the slot of an adapter up to so many Gb/s: 200 Gb/s fill x16 of PCIe Gen 4, 400 Gb/s
that of Gen 5, and ConnectX-8 with 800 Gb/s is Gen 6 (its data sheet)."""


class Fleet(NamedTuple):
    """Equal hosts, or racks if `rack`. `facts` describe one of them."""

    hosts: int
    facts: Facts
    rack: bool = False


def fleet_of(text: str) -> Fleet | None:
    """Reads a fleet; None for other texts. Raises InputError if a number is impossible."""
    machines, plus, adapters = text.partition("+")
    nics = _NICS.fullmatch(adapters) if plus else None
    if plus and nics is None:
        return None
    gigabits = int(nics[3]) if nics else None
    if racks := _RACKS.fullmatch(machines):
        many = _checked(int(racks[1] or 1), _GPUS_OF_RACK, text)
        if many == 1 and nics is None:
            return None
        return Fleet(many, Facts(nics=_nics(_GPUS_OF_RACK, None, gigabits or 400, {})), rack=True)
    several = None if split_product(machines) else _HOSTS.fullmatch(machines)
    product = split_product(several[2] if several else machines)
    if product is None or (several is None and nics is None):
        return None
    model, count = product
    hosts = _checked(int(several[1]) if several else 1, count, text)
    gpus = {index: ReportedGpu(model) for index in range(count)}
    number = int(nics[1] or 1) if nics else count
    near = {place: place * number // count for place in gpus}
    name = (nics[2] if nics else None) or None
    return Fleet(hosts, Facts(gpus=gpus, nics=_nics(number, name, gigabits, near)))


def _checked(hosts: int, gpus: int, text: str) -> int:
    if not (1 <= hosts <= _MOST_HOSTS and 1 <= gpus <= 64 + 8 and hosts * gpus <= _MOST_GPUS):
        most = f"give 1 to {_MOST_HOSTS} hosts and at most {_MOST_GPUS} accelerators"
        raise InputError(f"{text.strip()}: {most}")
    return hosts


def _nics(
    count: int, model: str | None, gigabits: int | None, near: Mapping[int, int]
) -> dict[str, ReportedNic]:
    model = re.sub(r"^(CX|BF)-?(?=\d)", lambda short: _SHORT[short[1]], model or "") or None
    rate = None if gigabits is None else gigabits * GIGABIT
    speed = next(of for most, of in _SLOTS if (gigabits or 400) <= most)
    return {
        f"nic{n}": ReportedNic(
            model=model, rate=rate, speed=speed, width=16,
            near={place: "PIX" for place, nearest in near.items() if nearest == n},
        )
        for n in range(count)
    }  # fmt: skip


# Several hosts from one.


def rack_of(nics: Mapping[str, ReportedNic]) -> dict[str, Any]:
    tree: dict[str, Any] = yaml.safe_load(load(_RACK)[1])
    count, nodes = len(nics), tree["host"]["nodes"][0]["count"]
    rate = next(iter(nics.values())).rate or 0.0
    trays = [divmod(n, _GPUS_OF_TRAY) for n in range(count)]
    tree["devices"][0]["pci"] = [f"{tray:04x}:{1 + slot:02x}:00.0" for tray, slot in trays]
    pci = [f"{tray:04x}:{0x11 + slot:02x}:00.0" for tray, slot in trays]
    named = f"nic0..{count - 1}"
    adapter = {"name": named, "rate": f"{rate:.0f} B/s", "model": "Mellanox ConnectX-7", "pci": pci}
    tree["adapters"] = [adapter]
    tree["link_kinds"]["pcie5"] = {"kind": "pcie", "speed": 32, "width": 16,
                                   "efficiency": {"read": 0.86, "write": 0.86}}  # fmt: skip
    tree["links"].append({"kind": "pcie5", "each": named, "to": f"host:0..{nodes - 1}"})
    return tree


def joined(tree: Mapping[str, Any], hosts: int) -> dict[str, Any]:
    """Turns a description of one host into that of `hosts`: each part becomes a row of parts."""
    one = build(description_of(tree))
    named = (*(nic.name for nic in one.adapters), *one.switch_names)
    first = {name: f"{name}_0..{hosts - 1}" for name in named} | {
        f"{space}:{n}": f"{space}:{n * hosts}..{(n + 1) * hosts - 1}"
        for space, units in (("sim", one.devices), ("host", one.nodes))
        for n in range(len(units))
    }
    domains = 1 + max(int((card.pci or "0").partition(":")[0], 16) for card in one.cards)

    def addresses(pci: str) -> list[str]:
        domain, _, place = pci.partition(":")
        return [f"{int(domain, 16) + host * domains:04x}:{place}" for host in range(hosts)]

    about = tree["host"]
    rate = float(one.adapters[0].group.rate or 50e9)
    kinds, switches, links = _network([first[unit.name] for unit in one.adapters], hosts, rate)
    return {
        **{name: value for name, value in tree.items() if name != "collectives"},
        "routing": "destination",
        "host": {
            **{name: value for name, value in about.items() if name != "distances"},
            "nodes": [node | {"count": hosts} for node in _units(about["nodes"])],
            "sockets": about.get("sockets", 1) * hosts,
        },
        "devices": [
            card | {"count": hosts, "node": True, "pci": addresses(unit.pci or "")}
            for card, unit in zip(_units(tree["devices"]), one.devices, strict=True)
        ],
        "adapters": [
            nic | {"name": first[unit.name], "pci": addresses(unit.pci)}
            for nic, unit in zip(_units(tree["adapters"]), one.adapters, strict=True)
        ],
        "switches": [
            *(
                group | {"name": first[name]}
                for group in tree.get("switches", ())
                for name in expand(group["name"])
            ),
            *switches,
        ],
        "link_kinds": {**tree["link_kinds"], **kinds},
        "links": [
            *({"kind": o.kind_name, "each": first[o.a], "to": first[o.b]} for o in one.links),
            *links,
        ],
    }


def _units(groups: Any) -> Iterator[dict[str, Any]]:
    """Yields the fields of each unit in these groups, without those that differ between hosts."""
    for group in groups:
        count = group.get("count") or len(expand(group.get("name", "one")))
        own = {n: v for n, v in group.items() if n not in ("numa_node", "uuids")}
        yield from repeat(own, count)


def _network(
    rails: Sequence[str], hosts: int, rate: float
) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    leaves = next(n for n in range(-(-hosts // _HOSTS_OF_LEAF), hosts + 1) if hosts % n == 0)
    count = leaves * len(rails)
    spines = max(1, min(hosts // _HOSTS_OF_SPINE, 8)) if count > 1 else 0
    efficiency = {"read": _OVERHEAD, "write": _OVERHEAD}
    about = {"rate": f"{rate:.0f} B/s", "efficiency": efficiency, "latency": "1 us"}
    kinds: dict[str, Any] = {"cable": {"kind": "network", **about}}
    switches = [{"name": f"leaf0..{count - 1}", "kind": "network", "model": "leaf switch"}]
    links = [
        {"kind": "cable", "each": names, "to": f"leaf{n * leaves}..{(n + 1) * leaves - 1}"}
        for n, names in enumerate(rails)
    ]
    if spines:
        named = f"spine0..{spines - 1}"
        kinds["uplink"] = {"kind": "fabric", "count": -(-hosts // leaves // spines), **about}
        switches.append({"name": named, "kind": "network", "model": "spine switch"})
        links.append({"kind": "uplink", "every": f"leaf0..{count - 1}", "to": named})
    return kinds, switches, links
