"""Checks inside the guest: its CPUs, NUMA nodes and memory against those of its domain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from linkgauge.judge.findings import Finding
from linkgauge.judge.remedies import COMPARE_ON_HOST, HUGE_PAGES, restarted
from linkgauge.machine.tree import ranges
from linkgauge.model.domain import Cell, Cpus
from linkgauge.model.part import MACHINE

from .comparison import Comparison, is_same_uuid
from .described import product
from .seen import least_visible, nodes_of, vcpus_of
from .words import plural, sized


def again(case: Comparison) -> tuple[str, ...]:
    """How a definition takes effect."""
    name = case.name
    shown = f"virsh dumpxml {name}  # as it runs; with --inactive, as it will start"
    return ("# On the host:", shown, *restarted(name))


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
    found = f"the guest has {plural(online, 'CPU')} online, the domain asks for {asked}"
    if domain.vcpus > asked:
        found += f" of at most {domain.vcpus}"
    why = "threads and pins are planned for CPUs that the guest does not have"
    offline = "cat /sys/devices/system/cpu/offline  # to bring one back, write 1 to its cpuN/online"
    if online > asked:
        why = "more CPUs than planned share what the domain has"
        offline = f"virsh setvcpus {case.name} COUNT --live  # or --config, for the next start"
    yield Finding("vcpus", "fail", "vCPUs", found, why, (offline, *again(case)))


def check_topology(case: Comparison) -> Iterator[Finding]:
    """Sockets and threads of a core, of the CPUs that are there: their number is another check."""
    topology, host = case.domain.topology, case.host
    if topology is None or topology.vcpus != case.domain.vcpus:
        return
    asked = topology.of(vcpus_of(case.domain, case.cpus).values())
    given = product(topology)
    if host.sockets is None or host.cores is None or host.threads_per_core is None:
        found = f"the guest's kernel shows only part of its topology; the domain asks for {given}"
        yield Finding("topology", "unknown", "topology", found)
        return
    if host.sockets != asked.sockets:
        found = f"the guest sees {plural(host.sockets, 'socket')}; the domain asks for {given}"
        why = "the kernel misjudges which CPUs share a cache, and programs place threads wrongly"
        yield Finding("sockets", "fail", "topology", found, why, again(case))
    if host.threads_per_core != asked.threads or host.cores != asked.cores:
        found = (
            f"the guest sees {plural(host.cores, 'core')} of "
            f"{plural(host.threads_per_core, 'thread')}; the domain asks for {given}"
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
        return (line, *again(case))
    return again(case)


class _Nodes(NamedTuple):
    """The cells that this guest can see, the vCPUs of each of its nodes, and the node of each cell
    (none if there are more or fewer nodes than cells)."""

    cells: tuple[Cell, ...]
    vcpus: dict[int, Cpus]
    node_of: dict[int, int]


def _nodes(case: Comparison) -> _Nodes:
    """Without what has neither CPUs nor memory: cells for a device's own (generic initiators)."""
    known = vcpus_of(case.domain, case.cpus)
    there = set(known.values())
    narrowed = (
        replace(cell, vcpus=tuple(vcpu for vcpu in cell.vcpus if vcpu in there))
        for cell in case.cells
    )
    cells = tuple(cell for cell in narrowed if cell.vcpus or cell.memory)
    vcpus = {
        node: tuple(known[cpu] for cpu in cpus if cpu in known)
        for node, cpus in case.node_cpus.items()
        if cpus or node in case.node_memory
    }
    alike = len(cells) == len(vcpus)
    return _Nodes(cells, vcpus, nodes_of(cells, vcpus) if alike else {})


def node_of_cell(case: Comparison, cell: int) -> int | None:
    """The guest's node that a cell is; None if it cannot be told."""
    return _nodes(case).node_of.get(cell)


def check_cells(case: Comparison) -> Iterator[Finding]:
    """NUMA nodes and their CPUs, one finding a cell."""
    nodes = _nodes(case)
    seen, asked = len(nodes.vcpus), len(nodes.cells) or 1
    if seen != asked and case.cpus:
        found = f"the guest sees {plural(seen, 'NUMA node')}, the domain defines {asked}"
        why = "programs cannot place threads and memory by the host's nodes"
        off = "grep -E 'numa=off|acpi=off' /proc/cmdline  # in the guest: both hide the nodes"
        yield Finding("cells", "fail", "cells", found, why, (off, *again(case)))
    for cell in nodes.cells:
        node = nodes.node_of.get(cell.index)
        if node is not None and set(nodes.vcpus[node]) != set(cell.vcpus):
            has, wants = ranges(nodes.vcpus[node]) or "none", ranges(cell.vcpus) or "none"
            found = f"node {node} of the guest has vCPUs {has}, the domain gives it {wants}"
            why = "threads run on the wrong side of the host's NUMA link"
            yield Finding("cell-vcpus", "fail", f"cell {cell.index}", found, why, again(case))


def check_distances(case: Comparison) -> Iterator[Finding]:
    nodes, columns = _nodes(case), [*case.host.distances]
    for cell in nodes.cells if nodes.node_of else ():
        row = case.host.distances.get(nodes.node_of[cell.index], ())
        seen = dict(zip(columns, row, strict=False))
        asked = {nodes.node_of.get(other): (other, far) for other, far in cell.distances.items()}
        wrong = [
            f"{seen[node]} to cell {other}, not {far}"
            for node, (other, far) in asked.items()
            if node in seen and seen[node] != far
        ]
        if wrong:
            found = f"the guest sees a distance of {'; '.join(wrong)}"
            why = "the kernel balances and allocates by the distances"
            yield Finding("cell-distances", "fail", f"cell {cell.index}", found, why, again(case))


def check_memory(case: Comparison) -> Iterator[Finding]:
    """Memory in all, or of each cell where there are several."""
    domain, most = case.domain, case.domain.bytes
    if most is None:
        return
    added = sum(one.size for one in domain.added_memory)
    current = most if domain.current_memory is None else min(domain.current_memory, most)
    ballooned = most - current
    nodes = _nodes(case)
    if len(nodes.node_of) < 2:
        total = case.machine.host.memory_total
        yield from _sized(case, "memory", "memory", total, most - added - ballooned, most)
        return
    for cell in nodes.cells:
        more = sum(one.size for one in domain.added_memory if one.cell == cell.index)
        total = case.node_memory.get(nodes.node_of[cell.index], 0)
        least, subject = cell.memory - ballooned, f"cell {cell.index}"
        yield from _sized(case, "cell-memory", subject, total, least, cell.memory + more)


def _sized(
    case: Comparison, check: str, subject: str, total: int | None, least: int, most: int
) -> Iterator[Finding]:
    """Memory that is not between the least that a kernel shows of it and all of it."""
    if total is None:
        return
    if total < least_visible(least, case.virtual.crash_kernel):
        found = f"the guest has {sized(total)}, the domain gives {sized(least)}"
        why = "less fits than planned, or a balloon took the rest"
        remedy = f"virsh setmem {case.name} SIZE --live  # takes memory back from a balloon"
        yield Finding(check, "fail", subject, found, why, (remedy, *again(case)))
    elif total > most + _ROUNDING:
        found = f"the guest has {sized(total)}, the domain gives at most {sized(most)}"
        why = "the guest was started from another definition"
        yield Finding(check, "fail", subject, found, why, again(case))


_ROUNDING = 64 << 20
"""libvirt aligns sizes of cells and of memory devices."""


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
