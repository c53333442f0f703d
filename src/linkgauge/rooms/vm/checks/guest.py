"""Checks CPUs, nodes, memory and devices inside a guest. Some checks need no domain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from linkgauge.judge.doctor import links
from linkgauge.judge.doctor.busy import check_steal
from linkgauge.judge.doctor.host_setup import (
    check_huge_pages,
    check_iommu,
    check_transparent_huge_pages,
)
from linkgauge.judge.doctor.placement import check_near_node
from linkgauge.judge.findings import Check, Evidence, Finding, checks_in
from linkgauge.judge.pcie_chains import shown
from linkgauge.judge.remedies import COMPARE_ON_HOST, HUGE_PAGES, kernel_log
from linkgauge.machine.tree import ranges
from linkgauge.model.hardware.part import MACHINE, Part
from linkgauge.model.hardware.virtual import BusFunction
from linkgauge.model.units import count_of, format_size
from linkgauge.rooms.vm.domain import TOPOEXT, PciRoute

from .comparison import DomainEvidence, is_same_uuid, several, sized
from .described import FEW_SOCKETS, ROUNDING, one_socket, product


def check_uuid(case: DomainEvidence) -> Iterator[Finding]:
    own, asked = case.uuid, case.domain.uuid
    if own and asked and not is_same_uuid(own, asked):
        found = f"the guest's firmware has the UUID {own}, the domain has {asked}"
        why = "this domain belongs to another guest, so the findings below compare the wrong two"
        remedy = (f"# On the host, find the name of {own}:", "virsh list --uuid --name")
        yield Finding("domain-uuid", "fail", "domain", found, why, (*remedy, *COMPARE_ON_HOST[1:]))


def check_vcpus(case: DomainEvidence) -> Iterator[Finding]:
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
    offline = "cat /sys/devices/system/cpu/offline  # in that folder: echo 1 > cpuN/online"
    if online > asked:
        why = "more vCPUs than planned share the host's CPUs"
        offline = f"virsh setvcpus {case.name} {asked} --live  # on the host; else restart it"
    yield Finding("vcpus", "fail", "vCPUs", found, why, (offline, *case.again))


def check_topology(case: DomainEvidence) -> Iterator[Finding]:
    """Compares the sockets, cores and threads that the guest sees with those in the definition."""
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
    if host.threads_per_core != threads or (host.sockets == sockets and host.cores != cores):
        seen = f"{count_of(host.cores, 'core')} of {count_of(host.threads_per_core, 'thread')}"
        found = f"the guest sees {seen}; the domain asks for {given}"
        why = "the guest's scheduler does not know which CPUs share a core"
        hidden = host.threads_per_core == 1 and case.domain.hides_threads(host.cpu_vendor)
        remedy = (TOPOEXT, *case.again) if hidden else case.again
        yield Finding("threads", "fail", "topology", found, why, remedy)


def check_cells(case: DomainEvidence) -> Iterator[Finding]:
    seen, asked = len(case.seen_nodes), len(case.seen_cells) or 1
    if seen != asked and case.cpus:
        found = f"the guest sees {count_of(seen, 'NUMA node')}, the domain defines {asked}"
        why = "programs cannot place threads and memory by the host's nodes"
        off = "grep -E 'numa=off|acpi=off' /proc/cmdline  # in the guest: words that hide nodes"
        yield Finding("cells", "fail", "NUMA nodes", found, why, (off, *case.again))
    for cell in case.seen_cells:
        node = case.node_of_cell.get(cell.index)
        if node is not None and set(case.seen_nodes[node]) != set(cell.vcpus):
            has, wants = ranges(case.seen_nodes[node]) or "none", ranges(cell.vcpus) or "none"
            found = f"node {node} of the guest has vCPUs {has}, the domain gives it {wants}"
            why = "threads run on the wrong side of the host's NUMA link"
            yield Finding("cell-vcpus", "fail", f"cell {cell.index}", found, why, case.again)


def check_distances(case: DomainEvidence) -> Iterator[Finding]:
    node_of = case.node_of_cell
    for cell in case.seen_cells if node_of else ():
        seen = case.distances.get(node_of[cell.index], {})
        asked = ((n, seen.get(node_of.get(n, -1)), far) for n, far in cell.distances.items())
        wrong = [f"{at} to cell {n}, not {far}" for n, at, far in asked if at not in (None, far)]
        if wrong:
            found = f"the guest sees a distance of {'; '.join(wrong)}"
            why = "the kernel balances and allocates by the distances"
            yield Finding("cell-distances", "fail", f"cell {cell.index}", found, why, case.again)


# The kernel takes 1.6 % for page structures, for swiotlb 64 MiB (6 % in encrypted guests, at most
# 1 GiB), and memory for code and firmware.
_SHARE, _FIXED = 0.08, 256 << 20


def check_memory(case: DomainEvidence) -> Iterator[Finding]:
    domain, most = case.domain, case.domain.bytes
    if most is None:
        return
    added = sum(domain.added_memory.values())
    current = most if domain.current_memory is None else min(domain.current_memory, most)
    ballooned = most - current
    if len(case.node_of_cell) < 2:
        total = case.machine.host.memory_total
        yield from _sized(case, "memory", "memory", total, most - added - ballooned, most)
        return
    for cell in case.seen_cells:
        more = domain.added_memory.get(cell.index, 0)
        total = case.node_memory.get(case.node_of_cell[cell.index], 0)
        least, subject = cell.memory - ballooned, f"cell {cell.index}"
        yield from _sized(case, "cell-memory", subject, total, least, cell.memory + more)


def _sized(
    case: DomainEvidence, check: str, subject: str, total: int | None, least: int, most: int
) -> Iterator[Finding]:
    if total is None:
        return
    if total < int(least * (1 - _SHARE)) - _FIXED - case.virtual.crash_kernel:
        found = f"the guest has {sized(total)}, the domain gives {sized(least)}"
        why = "less fits than planned, or a balloon took the rest"
        remedy = f"virsh setmem {case.name} SIZE --live  # takes memory back from a balloon"
        yield Finding(check, "fail", subject, found, why, (remedy, *case.again))
    elif total > most + ROUNDING:
        found = f"the guest has {sized(total)}, the domain gives at most {sized(most)}"
        why = "the guest was started from another definition"
        yield Finding(check, "fail", subject, found, why, case.again)


def check_pages(case: DomainEvidence) -> Iterator[Finding]:
    """Reports a guest that uses no huge pages, although huge pages back its memory on the host."""
    host = case.host
    pools = sum(total for total, _ in host.huge_pages.values())
    if case.domain.huge_pages and not pools and host.transparent_huge_pages == "never":
        found = "the domain is backed by huge pages, but the guest's kernel uses none"
        why = "the TLB holds translations of the smaller of the two pages, so little is gained"
        yield Finding("guest-pages", "warn", "huge pages", found, why, (HUGE_PAGES,))


def check_beyond(case: DomainEvidence) -> Iterator[Finding]:
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
    host = evidence.machine.known.host
    if host.sockets is None or host.sockets < FEW_SOCKETS or host.sockets != host.cores:
        return
    found = f"each of its {host.sockets} vCPUs is a socket of its own"
    why = "the guest's scheduler assumes that no two vCPUs share a cache or a core"
    yield Finding("sockets", "warn", "guest", found, why, one_socket(host.sockets))


def _own_node(evidence: Evidence) -> Iterator[Finding]:
    nodes = evidence.machine.host.nodes
    devices = [one for _, one in shown(evidence) if one.vendor not in MADE_UP]
    if len(nodes) == 1 and len(devices) > 1:
        total = nodes[0].memory_total
        size = "" if total is None else f" with {format_size(total >> 30 << 30)}"
        found = f"it has one NUMA node{size} and {len(devices)} devices"
        why = "if they are on several nodes of the host, the guest cannot know which is near"
        yield Finding("cells", "note", "guest", found, why, COMPARE_ON_HOST)


def _own_links(
    evidence: Evidence, checks: Sequence[Check[Evidence]] = checks_in(links)
) -> Iterator[Finding]:
    for check in checks:
        yield from (one for one in check(evidence) if one.is_grave)


ALONE = (
    _own_links,
    _own_sockets,
    _own_node,
    check_near_node,
    check_steal,
    check_transparent_huge_pages,
    check_huge_pages,
)


# Checks inside the guest: devices that are passed through, where they show and at which node.


_BRIDGE = 0x06
MADE_UP = (0x1AF4, 0x1B36, 0x1234, 0x15AD)
"""Vendors of functions that are a hypervisor's own: virtio, QEMU's (Red Hat), its VGA, VMware."""
_EMULATED = ((0x8086, 0x10D3), (0x8086, 0x10C9), (0x1013, 0x00B8))
"""Functions that QEMU emulates with the subsystem of the original: e1000e, igb, Cirrus."""


def is_real(function: BusFunction) -> bool:
    """Whether a PCI function belongs to a real device, not to a bridge or an emulated device."""
    if function.class_code is None or function.class_code >> 16 == _BRIDGE:
        return False
    if function.vendor in MADE_UP or function.subsystem == MADE_UP[0]:
        return False
    return (function.vendor, function.device) not in _EMULATED


def matched(case: DomainEvidence) -> dict[str, BusFunction]:
    """Maps host addresses of passed-through devices to their PCI functions in the guest."""
    real = [function for function in case.virtual.functions or () if is_real(function)]
    found = {}
    for device in case.domain.devices:
        route = case.domain.route_to(device)
        place = next((f for f in real if route and _is_at(f, route)), None)
        if place is not None:
            found[device.source] = place
    return found


def _is_at(function: BusFunction, route: PciRoute) -> bool:
    if len(function.route) != len(route.steps):
        return False
    places = [tuple(int(n, 16) for n in re.split("[:.]", at)) for at in function.route]
    domain, bus = places[0][:2]
    if domain or (bus == 0 if route.root_bus is None else bus != route.root_bus):
        return False
    return tuple(place[2:] for place in places) == route.steps


def check_devices(case: DomainEvidence) -> Iterator[Finding]:
    devices = case.domain.devices
    if not devices:
        return
    functions = case.virtual.functions
    if functions is None or not all(function.is_known for function in functions):
        found = "cannot read all of the guest's PCI functions"
        where = "# Run it in the guest itself."
        yield Finding("device", "unknown", "devices", found, remedy=(where,))
        return
    there = matched(case)
    why = "the guest has fewer devices than the domain passes through"
    remedy = (f"lspci -nn; {kernel_log('pci', 'vfio')}", *case.again)
    for device in devices:
        if case.domain.route_to(device) is not None and device.source not in there:
            found = "it is passed through, but the guest does not show it"
            if at := device.guest:
                found += f" at bus {at.bus:#04x}, slot {at.slot:#04x}, function {at.function}"
            yield Finding("device", "fail", Part.function(device.source), found, why, remedy)
    anywhere = [one.source for one in devices if case.domain.route_to(one) is None]
    taken = {function.address for function in there.values()}
    free = [one for one in functions if is_real(one) and one.address not in taken]
    if len(free) < len(anywhere):
        found = f"{several(len(anywhere), 'device')} passed through, but the guest shows only "
        found += f"{len(free)}: {', '.join(anywhere[:4])}"
        yield Finding("device", "fail", "devices", found, why, remedy)


def check_device_nodes(case: DomainEvidence) -> Iterator[Finding]:
    for source, function in matched(case).items():
        device = next(one for one in case.domain.devices if one.source == source)
        cell = case.domain.cell_of(device)
        part = Part("function", f"{function.address} (host: {source})", (function.address,))
        node = None if cell is None else case.node_of_cell.get(cell)
        if node is not None and len(case.cells) > 1 and function.numa_node != node:
            sees = "no node" if function.numa_node is None else f"node {function.numa_node}"
            found = f"the guest sees it at {sees}; its expander belongs to cell {cell}, node {node}"
            why = "drivers and linkgauge place buffers on another node"
            yield Finding("device-node", "fail", part, found, why, case.again)
        elif cell is None and len(case.cells) > 1 and function.numa_node is None:
            found = f"the guest does not know which of its {len(case.cells)} nodes is near"
            why = "drivers and linkgauge place buffers on any node"
            yield Finding("device-node", "warn", part, found, why, COMPARE_ON_HOST)


def check_links(case: DomainEvidence) -> Iterator[Finding]:
    """Checks the links of passed-through devices, and the guest's IOMMU."""
    if case.domain.devices:
        yield from _own_links(case.evidence, (*links.OF_LINKS, check_iommu))
