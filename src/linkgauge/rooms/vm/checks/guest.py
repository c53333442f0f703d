"""Checks inside the guest: its CPUs, NUMA nodes and memory against those of its domain, and what it
shows without one."""

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
from linkgauge.judge.remedies import COMPARE_ON_HOST, HUGE_PAGES
from linkgauge.machine.tree import ranges
from linkgauge.model.part import MACHINE
from linkgauge.model.units import count_of, format_size

from .comparison import Comparison, faults, is_same_uuid, sized
from .described import FEW_SOCKETS, ROUNDING, one_socket, product
from .guest_devices import MADE_UP


def check_uuid(case: Comparison) -> Iterator[Finding]:
    own, asked = case.uuid, case.domain.uuid
    if own and asked and not is_same_uuid(own, asked):
        found = f"the guest's firmware has the UUID {own}, the domain has {asked}"
        why = "this domain belongs to another guest, so the findings below compare the wrong two"
        remedy = (f"# On the host, find the name of {own}:", "virsh list --uuid --name")
        yield Finding("domain-uuid", "fail", "domain", found, why, (*remedy, *COMPARE_ON_HOST[1:]))


def check_vcpus(case: Comparison) -> Iterator[Finding]:
    domain, online = case.domain, len(case.cpus)
    if not online:
        yield Finding("vcpus", "unknown", "vCPUs", "cannot read which CPUs are online")
        return
    asked = len(domain.enabled)
    if online == asked:
        return
    found = f"the guest has {count_of(online, 'CPU')} online, the domain asks for {asked}"
    if domain.vcpus > asked:
        found += f" of at most {domain.vcpus}"
    why = "threads and pins are planned for CPUs that the guest does not have"
    offline = "cat /sys/devices/system/cpu/offline  # to bring one back, write 1 to its cpuN/online"
    if online > asked:
        why = "more CPUs than planned share what the domain has"
        offline = f"virsh setvcpus {case.name} COUNT --live  # or --config, for the next start"
    yield Finding("vcpus", "fail", "vCPUs", found, why, (offline, *case.again))


def check_topology(case: Comparison) -> Iterator[Finding]:
    """Sockets and threads of a core, of the CPUs that are there: their number is another check."""
    topology, host = case.domain.topology, case.host
    if topology is None or topology.vcpus != case.domain.vcpus:
        return
    sockets, cores, threads = topology.of(case.vcpu_of.values())
    given = product(topology)
    if host.sockets is None or host.cores is None or host.threads_per_core is None:
        found = f"the guest's kernel shows only part of its topology; the domain asks for {given}"
        yield Finding("topology", "unknown", "topology", found)
        return
    if host.sockets != sockets:
        found = f"the guest sees {count_of(host.sockets, 'socket')}; the domain asks for {given}"
        why = "the kernel misjudges which CPUs share a cache, and programs place threads wrongly"
        yield Finding("sockets", "fail", "topology", found, why, case.again)
    if host.threads_per_core != threads or host.cores != cores:
        found = (
            f"the guest sees {count_of(host.cores, 'core')} of "
            f"{count_of(host.threads_per_core, 'thread')}; the domain asks for {given}"
        )
        why = "the guest's scheduler does not know which CPUs share a core"
        yield Finding(
            "threads", "fail", "topology", found, why, _threads_remedy(case, topology.threads)
        )


def _threads_remedy(case: Comparison, threads: int) -> tuple[str, ...]:
    hidden = case.host.threads_per_core == 1 and threads > 1
    lacks = case.domain.features.get("topoext") not in ("require", "force")
    if hidden and case.host.cpu_vendor == "AuthenticAMD" and lacks:
        line = (
            "# In <cpu>, to show threads of AMD's CPUs: <feature policy='require' name='topoext'/>"
        )
        return (line, *case.again)
    return case.again


def check_cells(case: Comparison) -> Iterator[Finding]:
    """NUMA nodes and their CPUs, one finding a cell."""
    seen, asked = len(case.seen_nodes), len(case.seen_cells) or 1
    if seen != asked and case.cpus:
        found = f"the guest sees {count_of(seen, 'NUMA node')}, the domain defines {asked}"
        why = "programs cannot place threads and memory by the host's nodes"
        off = "grep -E 'numa=off|acpi=off' /proc/cmdline  # in the guest: both hide the nodes"
        yield Finding("cells", "fail", "cells", found, why, (off, *case.again))
    for cell in case.seen_cells:
        node = case.node_of_cell.get(cell.index)
        if node is not None and set(case.seen_nodes[node]) != set(cell.vcpus):
            has, wants = ranges(case.seen_nodes[node]) or "none", ranges(cell.vcpus) or "none"
            found = f"node {node} of the guest has vCPUs {has}, the domain gives it {wants}"
            why = "threads run on the wrong side of the host's NUMA link"
            yield Finding("cell-vcpus", "fail", f"cell {cell.index}", found, why, case.again)


def check_distances(case: Comparison) -> Iterator[Finding]:
    node_of, columns = case.node_of_cell, [*case.host.distances]
    for cell in case.seen_cells if node_of else ():
        row = case.host.distances.get(node_of[cell.index], ())
        seen = dict(zip(columns, row, strict=False))
        asked = {node_of.get(other): (other, far) for other, far in cell.distances.items()}
        wrong = [
            f"{seen[node]} to cell {other}, not {far}"
            for node, (other, far) in asked.items()
            if node in seen and seen[node] != far
        ]
        if wrong:
            found = f"the guest sees a distance of {'; '.join(wrong)}"
            why = "the kernel balances and allocates by the distances"
            yield Finding("cell-distances", "fail", f"cell {cell.index}", found, why, case.again)


def check_memory(case: Comparison) -> Iterator[Finding]:
    """Memory in all, or of each cell where there are several."""
    domain, most = case.domain, case.domain.bytes
    if most is None:
        return
    added = sum(one.size for one in domain.added_memory)
    current = most if domain.current_memory is None else min(domain.current_memory, most)
    ballooned = most - current
    if len(case.node_of_cell) < 2:
        total = case.machine.host.memory_total
        yield from _sized(case, "memory", "memory", total, most - added - ballooned, most)
        return
    for cell in case.seen_cells:
        more = sum(one.size for one in domain.added_memory if one.cell == cell.index)
        total = case.node_memory.get(case.node_of_cell[cell.index], 0)
        least, subject = cell.memory - ballooned, f"cell {cell.index}"
        yield from _sized(case, "cell-memory", subject, total, least, cell.memory + more)


def _sized(
    case: Comparison, check: str, subject: str, total: int | None, least: int, most: int
) -> Iterator[Finding]:
    """Memory that is not between the least that a kernel shows of it and all of it."""
    if total is None:
        return
    if total < _least_visible(least, case.virtual.crash_kernel):
        found = f"the guest has {sized(total)}, the domain gives {sized(least)}"
        why = "less fits than planned, or a balloon took the rest"
        remedy = f"virsh setmem {case.name} SIZE --live  # takes memory back from a balloon"
        yield Finding(check, "fail", subject, found, why, (remedy, *case.again))
    elif total > most + ROUNDING:
        found = f"the guest has {sized(total)}, the domain gives at most {sized(most)}"
        why = "the guest was started from another definition"
        yield Finding(check, "fail", subject, found, why, case.again)


def _least_visible(size: int, crash_kernel: int) -> int:
    """What a kernel shows at least of so many bytes of memory (MemTotal).

    It keeps 64 bytes for each page of 4 KiB (1.6 %), its own code and buffers, what firmware and
    swiotlb reserve (64 MiB; of encrypted guests 6 %, at most 1 GiB), and the memory set aside for
    a crash kernel.
    """
    return int(size * (1 - _SHARE)) - _FIXED - crash_kernel


_SHARE, _FIXED = 0.08, 256 << 20


def check_pages(case: Comparison) -> Iterator[Finding]:
    """Huge pages help where both sides use them: the TLB holds the smaller of the two."""
    host = case.host
    pools = sum(total for total, _ in host.huge_pages.values())
    if case.domain.huge_pages and not pools and host.transparent_huge_pages == "never":
        found = "the domain is backed by huge pages, but the guest's kernel uses none"
        why = "the TLB holds translations of the smaller of the two pages, so little is gained"
        yield Finding("guest-pages", "warn", "huge pages", found, why, (HUGE_PAGES,))


def check_beyond(case: Comparison) -> Iterator[Finding]:
    """What no guest can see."""
    domain = case.domain
    asked = {
        "vcpupin": domain.vcpu_pins,
        "emulatorpin": domain.emulator_pin,
        "iothreadpin": domain.iothread_pins,
        "numatune": domain.policy or domain.cell_policies,
        "hugepages": domain.huge_pages,
    }
    there = ", ".join(f"<{name}>" for name, value in asked.items() if value)
    if there:
        found = f"a guest cannot see whether {there} took effect"
        yield Finding("beyond-guest", "unknown", MACHINE, found, remedy=COMPARE_ON_HOST)


def _own_sockets(evidence: Evidence) -> Iterator[Finding]:
    """QEMU without a topology makes each vCPU a socket of its own."""
    host = evidence.machine.known.host
    if host.sockets is None or host.sockets < FEW_SOCKETS or host.sockets != host.cores:
        return
    found = f"each of its {host.sockets} vCPUs is a socket of its own"
    why = "the guest's scheduler assumes that no two vCPUs share a cache or a core"
    yield Finding("sockets", "warn", "guest", found, why, one_socket(host.sockets))


def _own_node(evidence: Evidence) -> Iterator[Finding]:
    """A guest with several devices, or much of a host, on a single node."""
    nodes = evidence.machine.host.nodes
    devices = [one for _, one in shown(evidence) if one.vendor not in MADE_UP]
    if len(nodes) == 1 and len(devices) > 1:
        total = nodes[0].memory_total
        size = "" if total is None else f" with {format_size(total >> 30 << 30)}"
        found = f"it has one NUMA node{size} and {len(devices)} devices"
        why = "if they are on several nodes of the host, the guest cannot know which is near"
        yield Finding("cells", "note", "guest", found, why, COMPARE_ON_HOST)


def _own_links(evidence: Evidence) -> Iterator[Finding]:
    """The doctor's checks of PCI Express, as far as a guest can see."""
    return faults(evidence, checks_in(links))


ALONE = (
    _own_links,
    _own_sockets,
    _own_node,
    check_near_node,
    check_steal,
    check_transparent_huge_pages,
    check_huge_pages,
)
"""The checks of a guest without its domain: what it shows by itself."""
