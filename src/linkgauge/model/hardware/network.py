"""How network interfaces are set up, and how much their counters rise while a cell is measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from linkgauge.model.grouped import grouped
from linkgauge.model.joining import in_series
from linkgauge.model.shareable import InterfaceName, Word

CounterSource = Literal["rdma", "interface", "ethtool", "queue", "host", "connection"]
"""Who counts. `rdma`: a port's `counters` and `hw_counters` in sysfs. `interface`: `statistics` of
an interface in sysfs, and its changes of carrier. `ethtool`: the driver, by ethtool -S. `queue`:
the interface's root qdisc, by tc -s. `host`: the kernel's IP and TCP, in /proc/net/snmp and
netstat. `connection`: the TCP connections of the cell, by TCP_INFO."""


class InterfaceSetup(msgspec.Struct, frozen=True, omit_defaults=True):
    """The setup of a network interface. Null and empty values are unknown.

    able: The highest rate that both ends of its link support, in bytes/s.
    fec: Its active mode of forward error correction: `rs`, `baser`, `off` and so on.
    rings: The entries of its receive ring and of its transmit ring, then the maximum of each.
    queues: How many queues it uses, and how many it could use.
    irq_cpus: For each of its interrupts, the CPU that handles it.
    off: The offloads that are off: `tso`, `gro`, `rx` and `tx` (checksums), `sg` (scatter-gather).
    roce: The version of RoCE that connections use by default: `v1` or `v2`.
    traffic_class: The default traffic class of RoCE packets."""

    able: float | None = None
    fec: Word | None = None
    rings: tuple[int, int, int, int] | None = None
    queues: tuple[int, int] | None = None
    irq_cpus: tuple[int, ...] = ()
    off: tuple[Word, ...] = ()
    roce: Word | None = None
    traffic_class: int | None = None


class NetworkCounters(msgspec.Struct, frozen=True):
    source: CounterSource
    of: str
    values: dict[str, int]


class CounterRise(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much the counters of one source rose while a cell was measured.

    rank: The rank on whose machine the source counts.
    source: What counts, such as the driver (`ethtool`).
    of: The interface or the RDMA port; empty for a host or its connections.
    seconds: Seconds between the two readings.
    rose: How much each counter rose. Connections' times are in µs; their RTTs and windows are added
      up over all connections."""

    rank: int
    source: CounterSource
    of: InterfaceName = ""
    seconds: float = 0.0
    rose: dict[Word, int] = {}


def rises(
    before: Iterable[NetworkCounters],
    after: Iterable[NetworkCounters],
    seconds: float,
    rank: int = 0,
) -> tuple[CounterRise, ...]:
    """Returns the counters that rose between two readings, of sources in both readings."""
    was = {(one.source, one.of): one.values for one in before}
    found = (
        CounterRise(rank, one.source, one.of, seconds, risen(was[one.source, one.of], one.values))
        for one in after
        if (one.source, one.of) in was
    )
    return tuple(one for one in found if one.rose)


def risen(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: n - was for name, n in after.items() if n > (was := before.get(name, 0))}


def joined_rises(values: Sequence[Sequence[CounterRise]]) -> tuple[CounterRise, ...]:
    parts = grouped(((one.rank, one.source, one.of), one) for one in in_series(values))
    return tuple(
        CounterRise(*key, sum(one.seconds for one in own), _added(one.rose for one in own))
        for key, own in parts.items()
    )


def _added(each: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for rose in each:
        for name, more in rose.items():
            total[name] = total.get(name, 0) + more
    return total
