"""Reads the network counters of the kernel and of adapters."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.network import NetworkCounters

from .ethtool import Drivers
from .network import ADAPTERS
from .tools import FOLDER, QDISCS
from .tree import INTERFACES, ROOT, Root

_CARRIER = ("carrier_down_count", "carrier_up_count")
_SNMP = ("proc/net/snmp", "proc/net/netstat")
_NETLINK_ROUTE, _GET_QDISC, _DONE, _ERROR = 0, 38, 3, 2
_DUMP = 0x301
"""NLM_F_REQUEST and NLM_F_DUMP."""
_HEADER, _TC = struct.Struct("=IHHII"), struct.Struct("=BxxxiIII")
"""struct nlmsghdr and struct tcmsg. (uapi/linux/netlink.h, rtnetlink.h)"""
_AT_ROOT = 0xFFFFFFFF
_STATS = 3
"""TCA_STATS: struct tc_stats of uapi/linux/pkt_sched.h."""
_OF_QDISC = ("dropped", "overlimits")


class CounterReader:
    def __init__(self, nics: Iterable[Interface], root: Root = ROOT) -> None:
        self._nics, self._root = tuple(nics), root
        self._drivers = Drivers(root)
        self._folders: Mapping[tuple[str, str], Mapping[str, str]] = {}

    def read(self) -> tuple[NetworkCounters, ...]:
        """Returns the counters of interfaces, of RDMA ports and of the host's protocols."""
        return tuple(one for one in self._each() if one.values)

    def _each(self) -> Iterator[NetworkCounters]:
        queues = dict(_queues(self._root))
        for nic in self._nics:
            yield NetworkCounters("interface", nic.name, interface_counters(self._root, nic.name))
            yield NetworkCounters("ethtool", nic.name, self._drivers.counters(nic.name))
            yield NetworkCounters("queue", nic.name, queues.get(nic.name, {}))
        for device in dict.fromkeys(nic.rdma for nic in self._nics if nic.rdma):
            for port in self._root.names(f"{ADAPTERS}/{device}/ports"):
                found = rdma_counters(self._root, device, port)
                yield NetworkCounters("rdma", f"{device}:{port}", found)
        yield NetworkCounters("host", "", _of_protocols(self._root))


def interface_counters(root: Root, name: str) -> dict[str, int]:
    """Returns an interface's statistics, and how often its link came up and went down."""
    folder = f"{INTERFACES}/{name}"
    found = dict(_numbers(root, f"{folder}/statistics"))
    carrier = ((one, root.number(f"{folder}/{one}")) for one in _CARRIER)
    return found | {one: count for one, count in carrier if count is not None}


def rdma_counters(root: Root, device: str, port: str) -> dict[str, int]:
    """Returns the counters of a port and its device, except those whose value is `N/A`."""
    folder = f"{ADAPTERS}/{device}"
    places = (f"{folder}/hw_counters", *(f"{folder}/ports/{port}/{of}" for of in (
        "counters", "hw_counters",
    )))  # fmt: skip
    found = {name: value for place in places for name, value in _numbers(root, place)}
    found.pop("lifespan", None)  # the age in ms at which the kernel reads them again
    return found


def _numbers(root: Root, folder: str) -> Iterator[tuple[str, int]]:
    for name in sorted(root.names(folder)):
        # Some counters have 64 bits, and some 20 digits.
        text = root.text(f"{folder}/{name}") or ""
        if text.isdecimal() and text.isascii():
            yield name, int(text[:20])


def _of_protocols(root: Root) -> dict[str, int]:
    found: dict[str, int] = {}
    for place in _SNMP:
        lines = (root.text(place) or "").splitlines()
        for names, values in zip(lines[::2], lines[1::2], strict=False):
            of, _, named = names.partition(":")
            with suppress(ValueError):  # what is damaged counts nothing
                each = zip(named.split(), values.split()[1:], strict=False)
                found |= {f"{of}{name}": int(value) for name, value in each}
    return found


def _queues(root: Root) -> Iterator[tuple[str, dict[str, int]]]:
    if root == ROOT:
        with suppress(OSError):
            yield from _asked_queues()
        return
    text = root.text(f"{FOLDER}/{'_'.join(QDISCS)}.txt") or ""
    form = r"^qdisc \S+ \S+ dev (\S+) root\b.*\n.*\(dropped ([0-9]+), overlimits ([0-9]+) "
    found = re.finditer(form, text, re.MULTILINE)
    for name, *counts in (match.groups() for match in found):
        yield name, dict(zip(_OF_QDISC, map(int, counts), strict=True))


def _asked_queues() -> Iterator[tuple[str, dict[str, int]]]:
    names = dict(socket.if_nameindex())
    asked = _HEADER.pack(_HEADER.size + _TC.size, _GET_QDISC, _DUMP, 0, 0) + _TC.pack(0, 0, 0, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as kernel:
        kernel.settimeout(1.0)
        kernel.send(asked)
        while True:
            part = kernel.recv(1 << 16)
            while part:
                length, kind, *_ = _HEADER.unpack_from(part)
                if kind in (_DONE, _ERROR):
                    return
                _, index, _, parent, _ = _TC.unpack_from(part, _HEADER.size)
                counts = _attribute(part[_HEADER.size + _TC.size : length], _STATS)
                if parent == _AT_ROOT and counts and index in names:
                    dropped, over = struct.unpack_from("=II", counts, 12)
                    yield names[index], dict(zip(_OF_QDISC, (dropped, over), strict=True))
                part = part[-(-length // 4) * 4 :]


def _attribute(content: bytes, wanted: int) -> bytes | None:
    while len(content) >= 4:
        length, kind = struct.unpack_from("=HH", content)
        if kind == wanted:
            return content[4:length]
        content = content[-(-max(length, 4) // 4) * 4 :]
    return None
