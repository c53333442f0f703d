"""Reads network adapters with RDMA (InfiniBand, RoCE and iWARP) from sysfs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from linkgauge.model.hardware.gaps import Gap
from linkgauge.model.hardware.inventory import Adapter, PciFunction

from .tree import ADDRESS, ROOT, Root

ADAPTERS = "sys/class/infiniband"
_INFINIBAND = {0x0207, 0x0C06}
"""The PCI classes of InfiniBand controllers. The second one was used before PCI 3.0."""
_ETHERNET, _MELLANOX = 0x0200, 0x15B3
"""The PCI class of Ethernet controllers, and the number of the vendor Mellanox. All its server
controllers support RoCE; for other vendors this is not certain."""


def read_adapters(root: Root = ROOT) -> tuple[Adapter, ...]:
    """Returns an adapter for each port (named like `mlx5_0:1` if its device has several)."""
    return tuple(
        adapter for name in sorted(root.names(ADAPTERS)) for adapter in read_adapter(root, name)
    )


def is_rdma(class_code: int | None, vendor: int | None) -> bool:
    """Whether a PCI function with this class and vendor is an InfiniBand or RoCE adapter."""
    kind = None if class_code is None else class_code >> 8
    return kind in _INFINIBAND or (kind == _ETHERNET and vendor == _MELLANOX)


def has_class(root: Root) -> bool:
    """Whether the kernel lists RDMA adapters in sysfs. If not, use `adapters_by_class`."""
    return root.listed(ADAPTERS) is not None


def adapters_by_class(functions: Iterable[PciFunction]) -> tuple[Adapter, ...]:
    """Returns the RDMA adapters among the PCI functions. Their names are their PCI addresses."""
    why = f"no /{ADAPTERS}: load the driver (mlx5_ib) to see its ports"
    return tuple(
        Adapter(
            name=function.address,
            pci=function.address,
            link_layer="Ethernet" if (function.class_code or 0) >> 8 == _ETHERNET else "InfiniBand",
            unknown=(Gap(why, "state", "rate"),),
        )
        for function in functions
        if is_rdma(function.class_code, function.vendor)
    )


def read_adapter(root: Root, name: str) -> tuple[Adapter, ...]:
    folder = f"{ADAPTERS}/{name}"
    ports = sorted(root.names(f"{folder}/ports"), key=lambda port: (len(port), port))
    pci = _address(root, folder)
    unknown = () if pci else (Gap("not a PCI device, or its link is missing", "PCI address"),)
    if not ports:
        why = Gap("none (a software device, or its folder is missing)", "ports")
        return (Adapter(name=name, pci=pci, unknown=(*unknown, why)),)
    return tuple(
        _port(root, f"{folder}/ports/{port}", f"{name}:{port}" if len(ports) > 1 else name, pci,
              unknown)
        for port in ports
    )  # fmt: skip


def _port(root: Root, folder: str, name: str, pci: str | None, unknown: tuple[Gap, ...]) -> Adapter:
    state = re.fullmatch(r"[0-9]+: (\w+)", root.text(f"{folder}/state") or "")
    rate = re.match(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/sec", root.text(f"{folder}/rate") or "")
    layer = root.text(f"{folder}/link_layer")
    missing = tuple(
        Gap(f"/{folder}/{what} is not readable, or has an unknown format", what)
        for what, value in (("state", state), ("rate", rate), ("link_layer", layer))
        if not value
    )
    return Adapter(
        name=name,
        pci=pci,
        state=state[1].lower() if state else None,
        rate=float(rate[1]) * 1e9 / 8 if rate else None,
        link_layer=layer or None,
        unknown=(*unknown, *missing),
    )


def _address(root: Root, folder: str) -> str | None:
    real = root.resolve(folder)
    target = root.link_name(f"{real}/device") if real else None
    match = re.fullmatch(ADDRESS, target or "")
    return match[0] if match else None
