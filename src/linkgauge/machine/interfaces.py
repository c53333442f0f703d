"""Reads network interfaces in the order of `ip link`, then RDMA devices without an interface
(InfiniBand without IP). In an engine `nic:N`, N is the position in this list, from 0."""

from __future__ import annotations

import fcntl
import re
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

import msgspec

from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.network import InterfaceSetup

from .ethtool import Drivers
from .network import ADAPTERS, read_adapter
from .tree import ADDRESS, INTERFACES, PCI, ROOT, Root, hexadecimal

_ADDRESSES_V6 = "proc/net/if_inet6"
_ROCE = "sys/kernel/config/rdma_cm"
"""The default settings of RoCE connections, if configfs is mounted. (Documentation/ABI/testing/
configfs-rdma_cm)"""
_UP = 1
"""Linux' flag IFF_UP: the interface is switched on."""
_RUNNING = ("up", "unknown")
"""States of a link that carries data. A loopback and some tunnels are `unknown`."""
_KINDS = {1: "Ethernet", 32: "InfiniBand", 772: "loopback"}
"""Hardware types by their number in Linux' if_arp.h."""
_MEGABIT = 1e6 / 8
_SIOCGIFADDR = 0x8915
_REQUEST = struct.Struct("16sHxx4s16x")
"""Linux' struct ifreq with the interface's name and an IPv4 address."""
_LINK_LOCAL = "fe80"
_DIGITS_V6 = re.compile("[0-9a-fA-F]{32}")


def read_interfaces(root: Root = ROOT) -> tuple[Interface, ...]:
    """Returns the interfaces. IPv4 addresses are known only on this machine, not in a capture."""
    names = root.names(INTERFACES)
    order = {name: root.number(f"{INTERFACES}/{name}/ifindex") or 0 for name in names}
    devices = dict(_rdma_devices(root))
    known = tuple(
        _read(root, name, devices)
        for name in sorted(names, key=lambda name: (order[name], name))
        if order[name]  # bonding_masters is a file among them
    )
    taken = {each.rdma for each in known}
    alone = sorted({*root.names(ADAPTERS)} - taken)
    return (*known, *(_of_rdma_alone(root, name) for name in alone))


def from_device(
    nics: Iterable[Interface], address: str | None, root: Root = ROOT
) -> tuple[Interface, ...]:
    """Returns the interfaces with `steps`: the steps in the PCI tree from the device at `address`
    up to a shared bridge and down to the interface, or None if they share no bridge."""
    start = _way(root, address)
    return tuple(
        msgspec.structs.replace(nic, steps=_steps(start, _way(root, nic.pci))) for nic in nics
    )


def _way(root: Root, address: str | None) -> list[str]:
    real = root.resolve(f"{PCI}/{address}") if address else None
    return re.findall(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}|[0-9a-f]{4,8}:[^/]+", real or "")


def _steps(one: Sequence[str], other: Sequence[str]) -> int | None:
    sameness = (each == its for each, its in zip(one, other, strict=False))
    shared = len(list(takewhile(bool, sameness)))
    return len(one) + len(other) - 2 * shared if shared else None


def _read(root: Root, name: str, devices: dict[str, str]) -> Interface:
    folder = f"{INTERFACES}/{name}"
    flags = hexadecimal(root.text(f"{folder}/flags"))
    state = root.text(f"{folder}/operstate")
    megabits = root.number(f"{folder}/speed")
    kind = root.number(f"{folder}/type")
    pci = _pci(root, folder)
    return Interface(
        name=name,
        up=None if flags is None else bool(flags & _UP) and state in _RUNNING,
        kind=_KINDS.get(kind) if kind is not None else None,
        addresses=tuple(_addresses(root, name)),
        driver=_driver(root, folder),
        speed=megabits * _MEGABIT if megabits and megabits > 0 else None,
        mtu=root.number(f"{folder}/mtu") or None,
        node=root.node(f"{folder}/device"),
        pci=pci,
        rdma=devices.get(name),
        setup=None if pci is None else _setup(root, name, devices.get(name)),
    )


def _setup(root: Root, name: str, rdma: str | None) -> InterfaceSetup:
    irqs = root.names(f"{INTERFACES}/{name}/device/msi_irqs")
    cpus = (root.cpu_list(f"proc/irq/{irq}/effective_affinity_list",
                          f"proc/irq/{irq}/smp_affinity_list") for irq in irqs)  # fmt: skip
    mode = root.line(f"{_ROCE}/{rdma}/ports/1/default_roce_mode") if rdma else None
    drivers = Drivers(root)
    return InterfaceSetup(
        able=drivers.able(name),
        fec=drivers.fec(name),
        rings=drivers.rings(name),
        queues=drivers.channels(name),
        irq_cpus=tuple(of[0] for of in cpus if of),
        off=drivers.off(name),
        roce=mode.rpartition(" ")[2] if mode and mode.endswith(("v1", "v2")) else None,
        traffic_class=root.number(f"{_ROCE}/{rdma}/ports/1/default_roce_tos"),
    )


def _of_rdma_alone(root: Root, name: str) -> Interface:
    folder = f"{ADAPTERS}/{name}"
    ports = root.names(f"{folder}/ports")
    states = (root.text(f"{folder}/ports/{port}/state") for port in ports)
    rates = [port.rate for port in read_adapter(root, name) if port.rate]
    return Interface(
        name=name,
        up=any("ACTIVE" in (state or "") for state in states),
        kind="InfiniBand",
        driver=_driver(root, folder),
        speed=max(rates, default=None),
        node=root.node(f"{folder}/device"),
        pci=_pci(root, folder),
        rdma=name,
    )


def _rdma_devices(root: Root) -> Iterator[tuple[str, str]]:
    for name in sorted(root.names(ADAPTERS)):
        parent = root.text(f"{ADAPTERS}/{name}/parent")
        if parent:
            yield parent, name
        for interface in root.names(f"{ADAPTERS}/{name}/device/net"):
            yield interface, name


def _driver(root: Root, folder: str) -> str | None:
    real = root.resolve(f"{folder}/device")
    return root.link_name(f"{real}/driver") if real else None


def _pci(root: Root, folder: str) -> str | None:
    real = root.resolve(f"{folder}/device")
    steps = re.findall(ADDRESS, real or "")
    return steps[-1] if steps else None


def _addresses(root: Root, name: str) -> Iterator[str]:
    if root == ROOT:
        yield from _address_v4(name)
    for line in (root.text(_ADDRESSES_V6) or "").splitlines():
        words = line.split()
        if len(words) != 6 or words[5] != name or not _DIGITS_V6.fullmatch(words[0]):
            continue
        if not words[0].startswith(_LINK_LOCAL):
            yield socket.inet_ntop(socket.AF_INET6, bytes.fromhex(words[0]))


def _address_v4(name: str) -> Iterator[str]:
    asked = _REQUEST.pack(name.encode(), socket.AF_INET, b"")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            found = fcntl.ioctl(any_socket, _SIOCGIFADDR, asked)
        except OSError:  # it has none
            return
    yield socket.inet_ntoa(_REQUEST.unpack(found)[2])
