"""Merges what texts say about each network adapter, and returns the rates of adapters' ports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from linkgauge.machine.tree import ADDRESS

from .facts import Facts, ReportedNic

GIGABIT = 1e9 / 8
_RATES = (
    ("ConnectX-8|BlueField-4", 800), ("ConnectX-7|BlueField-3", 400),
    ("ConnectX-6 Dx|BlueField-2", 100), ("ConnectX-6 Lx", 25), ("ConnectX-6", 200),
    ("ConnectX-5", 100), ("ConnectX-4 Lx", 25), ("ConnectX-4", 100), ("ConnectX-3", 56),
    ("BCM5760|Thor2|Pollara", 400), ("BCM575", 200), ("E810", 100), ("Elastic Fabric", 100),
)  # fmt: skip
"""The Gb/s of a port at most, by the model (data sheets). Cables and switches may allow less."""
NAMELESS = "adapter"  # of which a text shows the link alone
_USUAL = 200
"""The Gb/s of a port of which nothing is known."""
_NAME = re.compile(r"[a-z][a-z0-9_.]*")


def joined_nics(facts: Facts) -> Mapping[str, ReportedNic]:
    """Returns each adapter once. Some texts give names, others PCI addresses: if there are as many
    names as addresses, they are the same adapters in the same order."""
    at = {name: nic for name, nic in facts.nics.items() if re.fullmatch(ADDRESS, name)}
    named = {name: nic for name, nic in facts.nics.items() if name not in at}
    bare = named.pop(NAMELESS, None)
    if bare is not None and not at and len(named) < 2:
        own = next(iter(named.values()), bare)
        link = {name: getattr(bare, name) for name in ("speed", "width", "max_speed", "max_width")}
        named = {next(iter(named), NAMELESS): own if own.speed else replace(own, **link)}
    if at and named and not any(nic.pci for nic in named.values()):
        if len(at) == len(named):
            at = {
                name: replace(nic, near=one.near, node=one.node if nic.node is None else nic.node)
                for (name, one), (_, nic) in zip(named.items(), sorted(at.items()), strict=True)
            }
        named = {}
    taken = {nic.pci for nic in named.values()}
    return _plain(named | {name: nic for name, nic in at.items() if name not in taken})


def _plain(nics: Mapping[str, ReportedNic]) -> dict[str, ReportedNic]:
    found: dict[str, ReportedNic] = {}
    for number, (name, nic) in enumerate(nics.items()):
        plain = name.lower()
        is_free = _NAME.fullmatch(plain) and plain not in found
        found[plain if is_free else f"nic{number}"] = nic
    return found


def rate_of_nic(nic: ReportedNic, facts: Facts) -> tuple[float, bool]:
    """Returns the rate of a port in bytes/s, and whether the rate is assumed."""
    reported = facts.settings.get("adapter Gb/s", "")
    if nic.rate or reported.isdecimal():
        return nic.rate or int(reported) * GIGABIT, False
    rates = (gigabits for name, gigabits in _RATES if re.search(name, nic.model or ""))
    return next(rates, _USUAL) * GIGABIT, True


def kind_of_nic(name: str, nic: ReportedNic, rate: float, *, is_assumed: bool) -> dict[str, Any]:
    maker = "Mellanox " if "ConnectX" in (nic.model or "") else ""
    return known(
        name=name,
        rate=f"{rate:.0f} B/s",
        model=maker + nic.model if nic.model else None,
        ports=nic.ports if nic.ports > 1 else None,
        link_layer="Ethernet" if nic.ethernet else None,
        pci=[nic.pci] if re.fullmatch(ADDRESS, nic.pci or "") else None,
        numa_node=nic.node,
        assumed=is_assumed or None,
    )


def known(**about: Any) -> dict[str, Any]:
    return {name: value for name, value in about.items() if value is not None}
