"""Reads the network counters of the kernel and of adapters."""

from __future__ import annotations

import re
import socket
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache

from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.network import NetworkCounters

from .ethtool import Drivers
from .network import ADAPTERS
from .tools import FOLDER, QDISCS
from .tree import INTERFACES, ROOT, Root

_CARRIER = ("carrier_down_count", "carrier_up_count")
_SNMP = ("proc/net/snmp", "proc/net/netstat")
_NETLINK_ROUTE, _GET_LINK, _GET_QDISC, _DONE, _ERROR = 0, 18, 38, 3, 2
_ONE, _DUMP = 0x1, 0x301
"""NLM_F_REQUEST, without and with NLM_F_DUMP."""
_HEADER, _TC = struct.Struct("=IHHII"), struct.Struct("=BxxxiIII")
_LINK = struct.Struct("=BxHiII")
"""struct nlmsghdr, tcmsg and ifinfomsg. (uapi/linux/netlink.h, rtnetlink.h)"""
_STATS64, _STATISTICS = 23, (
    "rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_dropped",
    "tx_dropped", "multicast", "collisions", "rx_length_errors", "rx_over_errors", "rx_crc_errors",
    "rx_frame_errors", "rx_fifo_errors", "rx_missed_errors", "tx_aborted_errors",
    "tx_carrier_errors", "tx_fifo_errors", "tx_heartbeat_errors", "tx_window_errors",
    "rx_compressed", "tx_compressed", "rx_nohandler",
)  # fmt: skip
"""IFLA_STATS64: struct rtnl_link_stats64 of uapi/linux/if_link.h, by the names of sysfs."""
_CHANGES = {47: "carrier_up_count", 48: "carrier_down_count"}
"""IFLA_CARRIER_UP_COUNT and IFLA_CARRIER_DOWN_COUNT."""
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
            found = _asked_interface(nic.name) if self._root == ROOT else {}
            found = found or interface_counters(self._root, nic.name)
            yield NetworkCounters("interface", nic.name, found)
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
    """Returns the counters of a port and its device, except those without a number (`N/A`)."""
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
            with suppress(ValueError):  # what is damaged counts nothing
                each = map(int, values.split()[1:])
                found |= dict(zip(_full_names(names), each, strict=False))
    return found


@lru_cache(16)
def _full_names(line: str) -> tuple[str, ...]:
    of, _, named = line.partition(":")
    return tuple(f"{of}{name}" for name in named.split())


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
    for answer in _answers(_GET_QDISC, _DUMP, _TC.pack(0, 0, 0, 0, 0)):
        _, index, _, parent, _ = _TC.unpack_from(answer)
        counts = _attribute(answer[_TC.size :], _STATS)
        if parent == _AT_ROOT and counts and index in names:
            dropped, over = struct.unpack_from("=II", counts, 12)
            yield names[index], dict(zip(_OF_QDISC, (dropped, over), strict=True))


def _asked_interface(name: str) -> dict[str, int]:
    with suppress(OSError):  # a tenth of the time that its two dozen files take
        asked = _LINK.pack(0, 0, socket.if_nametoindex(name), 0, 0)
        for answer in _answers(_GET_LINK, _ONE, asked):
            each = _attribute(answer[_LINK.size :], _STATS64) or b""
            values = struct.unpack(f"={len(each) // 8}Q", each)
            found = dict(zip(_STATISTICS, values, strict=False))
            for kind, change in _CHANGES.items():
                if count := _attribute(answer[_LINK.size :], kind):
                    found[change] = int.from_bytes(count, sys.byteorder)
            return found
    return {}


def _answers(asked: int, flags: int, body: bytes) -> Iterator[bytes]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as kernel:
        kernel.settimeout(1.0)
        kernel.send(_HEADER.pack(_HEADER.size + len(body), asked, flags, 0, 0) + body)
        while True:
            part = kernel.recv(1 << 16)
            while part:
                length, kind, *_ = _HEADER.unpack_from(part)
                if kind in (_DONE, _ERROR):
                    return
                yield part[_HEADER.size : length]
                part = part[-(-length // 4) * 4 :]


def _attribute(content: bytes, wanted: int) -> bytes | None:
    while len(content) >= 4:
        length, kind = struct.unpack_from("=HH", content)
        if kind == wanted:
            return content[4:length]
        content = content[-(-max(length, 4) // 4) * 4 :]
    return None
