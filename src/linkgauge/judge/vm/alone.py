"""Checks of a guest without its domain: what it tells by itself."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.doctor import links
from linkgauge.judge.doctor.busy import check_steal
from linkgauge.judge.doctor.host_setup import (
    check_huge_pages,
    check_near_node,
    check_transparent_huge_pages,
)
from linkgauge.judge.doctor.pcie_chains import shown
from linkgauge.judge.findings import Evidence, Finding, checks_in
from linkgauge.judge.remedies import COMPARE_ON_HOST
from linkgauge.model.units import format_size

from .described import FEW_SOCKETS, one_socket
from .guest_devices import MADE_UP


def check_sockets(evidence: Evidence) -> Iterator[Finding]:
    """QEMU without a topology makes each vCPU a socket of its own."""
    host = evidence.machine.known.host
    if host.sockets is None or host.sockets < FEW_SOCKETS or host.sockets != host.cores:
        return
    found = f"each of its {host.sockets} vCPUs is a socket of its own"
    why = "the guest's scheduler assumes that no two vCPUs share a cache or a core"
    yield Finding("sockets", "warn", "guest", found, why, one_socket(host.sockets))


def check_one_node(evidence: Evidence) -> Iterator[Finding]:
    """A guest with several devices, or much of a host, on a single node."""
    nodes = evidence.machine.host.nodes
    devices = [one for _, one in shown(evidence) if one.vendor not in MADE_UP]
    if len(nodes) == 1 and len(devices) > 1:
        total = nodes[0].memory_total
        size = "" if total is None else f" with {format_size(total >> 30 << 30)}"
        found = f"it has one NUMA node{size} and {len(devices)} devices"
        why = "if they are on several nodes of the host, the guest cannot know which is near"
        yield Finding("cells", "note", "guest", found, why, COMPARE_ON_HOST)


def check_links(evidence: Evidence) -> Iterator[Finding]:
    """The doctor's checks of PCI Express, as far as a guest can see."""
    for check in checks_in(links):
        yield from (one for one in check(evidence) if one.severity in ("fail", "warn"))


CHECKS = (
    check_links,
    check_sockets,
    check_one_node,
    check_near_node,
    check_steal,
    check_transparent_huge_pages,
    check_huge_pages,
)
