"""How a network interface is set up."""

from __future__ import annotations

import msgspec

from linkgauge.model.shareable import Word


class InterfaceSetup(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an interface of a device is set up. Null and empty values are unknown.

    able: The highest rate that both ends of its link offer, in bytes/s.
    fec: Its active mode of forward error correction: `rs`, `baser`, `off` and so on.
    rings: The entries of its receive and transmit ring, and the most of each.
    queues: How many queues it uses, and how many it could.
    irq_cpus: For each of its interrupts, the CPU that handles it.
    off: The offloads that are off: `tso`, `gro`, `rx` and `tx` (checksums), `sg` (scatter-gather).
    roce: The version of RoCE that connections use by default: `v1` or `v2`.
    traffic_class: The traffic class of RoCE packets that nobody gives another."""

    able: float | None = None
    fec: Word | None = None
    rings: tuple[int, int, int, int] | None = None
    queues: tuple[int, int] | None = None
    irq_cpus: tuple[int, ...] = ()
    off: tuple[Word, ...] = ()
    roce: Word | None = None
    traffic_class: int | None = None
