"""Checks a domain's XML for elements that libvirt refuses, ignores or changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from msgspec.structs import replace

from linkgauge.judge.findings import Finding
from linkgauge.machine.tree import ranges
from linkgauge.model.units import count_of
from linkgauge.rooms.vm.domain import CpuTopology

from .comparison import DomainEvidence, several, sized

FEW_SOCKETS = 4
"""With fewer vCPUs, it costs little if each is a socket."""
_SHOW_SOCKETS = ("x86_64", "i686", "aarch64")
ROUNDING = 64 << 20
"""libvirt aligns sizes of cells and of memory devices."""


_REFUSED = "libvirt refuses to define the domain"


def _refusal(check: str, subject: str, found: str, *remedy: str) -> Finding:
    return Finding(check, "fail", subject, found, _REFUSED, remedy)


def check_refused(case: DomainEvidence) -> Iterator[Finding]:
    return (_refusal("refused", subject, found) for subject, found in case.domain.refused)


def check_pins_of_none(case: DomainEvidence) -> Iterator[Finding]:
    domain = case.domain
    vcpus = tuple(vcpu for vcpu in domain.vcpu_pins if vcpu >= domain.vcpus)
    if vcpus:
        found = (
            f"pins of vCPUs that the domain does not have: {ranges(vcpus)} of 0-{domain.vcpus - 1}"
        )
        why = "libvirt ignores these <vcpupin>: they were written for another number of vCPUs"
        remedy = "# Remove these <vcpupin>, or raise <vcpu>."
        yield Finding("pin-of-none", "warn", "vcpupin", found, why, (remedy,))
    threads = tuple(one for one in domain.iothread_pins if one not in domain.iothreads)
    if threads:
        found = f"pins of IO threads that the domain does not have: {ranges(threads)}"
        remedy = "# Remove these <iothreadpin>, or raise <iothreads>."
        yield _refusal("pin-of-none", "iothreadpin", found, remedy)


def check_topology_product(case: DomainEvidence) -> Iterator[Finding]:
    topology, vcpus = case.domain.topology, case.domain.vcpus
    if topology is not None and topology.vcpus != vcpus:
        found = f"the topology has {topology.vcpus} vCPUs ({product(topology)}), <vcpu> has {vcpus}"
        remedy = "# Make <vcpu> equal to the product of <topology>."
        yield _refusal("topology-product", "topology", found, remedy)


def check_granularity(case: DomainEvidence) -> Iterator[Finding]:
    """Checks that a pseries domain starts with whole cores, because only cores can be added."""
    domain, threads = case.domain, case.domain.topology.threads if case.domain.topology else 1
    if (domain.machine or "").startswith("pseries") and len(domain.enabled) % threads:
        found = (
            f"{len(domain.enabled)} vCPUs run at the start, no multiple of {threads} threads a core"
        )
        remedy = f"# Set <vcpu current> to a multiple of {threads}."
        refused = _refusal("vcpus", "vCPUs", found, remedy)
        yield replace(refused, why=f"{_REFUSED}: a {domain.machine} starts with whole cores")


def check_topology_none(case: DomainEvidence) -> Iterator[Finding]:
    """Reports a missing topology. A guest on x86 or Arm then sees each vCPU as a socket."""
    vcpus, is_shown = case.domain.vcpus, case.domain.arch in (None, *_SHOW_SOCKETS)
    if case.domain.topology is None and vcpus >= FEW_SOCKETS and is_shown:
        found = f"the domain has none, so each of the {vcpus} vCPUs is a socket of its own"
        why = "the guest's scheduler assumes that no two vCPUs share a cache or a core"
        yield Finding("topology-none", "note", "topology", found, why, one_socket(vcpus))


def one_socket(vcpus: int) -> tuple[str, ...]:
    whole, halves = CpuTopology(cores=vcpus), CpuTopology(cores=vcpus // 2, threads=2)
    paired = f"# In <cpu>: {halves}, if vCPUs are pinned to both threads of cores"
    return f"# In <cpu>: {whole}", *(() if vcpus % 2 else (paired,))


def product(topology: CpuTopology) -> str:
    return " × ".join(count_of(n, name.removesuffix("s")) for name, n in topology.shown.items())


def check_cells(case: DomainEvidence) -> Iterator[Finding]:
    domain = case.domain
    if not domain.cells:
        return
    counts = Counter(vcpu for cell in domain.cells for vcpu in cell.vcpus)
    problems = {
        "that the domain does not have": {vcpu for vcpu in counts if vcpu >= domain.vcpus},
        "in several cells": {vcpu for vcpu, count in counts.items() if count > 1},
        "in no cell": {*range(domain.vcpus)} - {*counts},
    }
    for what, vcpus in problems.items():
        if vcpus:
            found = f"vCPUs {what}: {ranges(vcpus)}"
            remedy = "# List each vCPU in the cell of the node that it is pinned to."
            one = _refusal("cell-list", "cells", found, remedy)
            first = "libvirt puts them in the first cell"
            yield replace(one, severity="warn", why=first) if what == "in no cell" else one


def check_cell_numbers(case: DomainEvidence) -> Iterator[Finding]:
    numbers = tuple(cell.index for cell in case.domain.cells)
    if numbers != tuple(range(len(numbers))):
        found = f"their numbers are {ranges(numbers)}, not 0 to {len(numbers) - 1}"
        remedy = "# Number the cells from 0 on, in <memnode> and <distances>, too."
        yield _refusal("cell-list", "cells", found, remedy)


def check_spans(case: DomainEvidence) -> Iterator[Finding]:
    """Reports a core or socket in several cells: Linux ignores what it shares (topology_sane)."""
    topology = case.domain.topology
    if topology is None or topology.vcpus != case.domain.vcpus or len(case.cells) < 2:
        return
    if part := topology.across(case.cells):
        kind, vcpus = part
        found = f"one {kind} of the guest, vCPUs {ranges(vcpus)}, is in several cells"
        why = "the guest's kernel ignores what its CPUs share, and places threads without it"
        better = topology.fitted(case.cells)
        remedy = "# List the threads of each core in the same cell."
        if better is not None and better.across(case.cells):
            sizes = " and ".join(str(len(cell.vcpus)) for cell in case.cells if cell.vcpus)
            why += f": no sockets of equal size hold cells of {sizes} vCPUs"
            remedy = "# Give the cells equal numbers of vCPUs."
            yield Finding("cell-spans", "note", "topology", found, why, (remedy,))
            return
        remedy = remedy if better is None else f"# In <cpu>: {better}"
        yield Finding("cell-spans", "warn", "topology", found, why, (remedy,))


def check_cells_of_none(case: DomainEvidence) -> Iterator[Finding]:
    domain = case.domain
    known = {cell.index for cell in domain.cells} or {0}
    places: dict[str, Collection[int]] = {
        "memnode": domain.cell_policies,
        "hugepages": [cell for pages in domain.huge_pages for cell in pages.cells or ()],
        "expander": [one.cell for one in domain.controllers if one.cell is not None],
        "memory device": [cell for cell in domain.added_memory if cell is not None],
    } | {f"cell {cell.index}": cell.distances for cell in domain.cells}
    for what, cells in places.items():
        there = set[int]() if what == "memnode" and not domain.cells else known
        strange = tuple(sorted(set(cells) - there))
        if strange:
            found = f"refers to cell {ranges(strange)}, which the domain does not have"
            remedy = "# Refer to a <cell> of <numa>, or add one."
            remedy = remedy if domain.cells else "# Remove it, or define cells (<numa> in <cpu>)."
            yield _refusal("cell-of-none", what, found, remedy)


def check_memory_sum(case: DomainEvidence) -> Iterator[Finding]:
    asked, summed = case.domain.memory, case.domain.bytes
    if asked is None or summed is None or abs(asked - summed) < ROUNDING:
        return
    found = f"<memory> is {sized(asked)}, but cells and memory devices add up to {sized(summed)}"
    why = "libvirt uses the sum of the cells"
    yield Finding("memory-sum", "note", "memory", found, why)


def check_mediated(case: DomainEvidence) -> Iterator[Finding]:
    if count := case.domain.mediated:
        found = f"{several(count, 'mediated device')} passed through (vGPU): not compared"
        look = "ls -l /sys/bus/mdev/devices  # on the host: the parents' folders have numa_node"
        yield Finding("mediated", "unknown", "devices", found, remedy=(look,))


def check_mapped(case: DomainEvidence) -> Iterator[Finding]:
    for name in case.domain.mapped:
        found = "a whole device by the cluster's mapping, which has its address: not compared"
        look = f"pvesh get /cluster/mapping/pci/{name}  # on the host: its address on each node"
        yield Finding("mapped", "unknown", f"mapping {name}", found, remedy=(look,))
