"""Checks what a domain's definition leaves open, without data from its host or guest."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.findings import Finding
from linkgauge.machine.tree import ranges
from linkgauge.model.units import count_of

from .comparison import DomainEvidence, several
from .host_memory import by_policy, without_pages

_HOST = "# On its host, linkgauge vm names the CPUs and nodes:"


def check_unbound(case: DomainEvidence) -> Iterator[Finding]:
    for cell in case.memories:
        policy = case.domain.policy_of(cell.index)
        if policy is not None and policy.nodes is not None:
            yield from by_policy(case, cell, policy)
        elif case.domain.devices or case.pins:
            found = "bound to no node: on a host with several, memory may come from any"
            why = "vCPUs and devices reach memory on another node over the link between nodes"
            remedy = (_HOST, "linkgauge vm DEFINITION --as host")
            yield Finding("memory-unbound", "note", case.name_of(cell), found, why, remedy)


def check_no_pages(case: DomainEvidence) -> Iterator[Finding]:
    yield from without_pages(case, is_off=False)


def check_unpinned(case: DomainEvidence) -> Iterator[Finding]:
    domain = case.domain
    free = tuple(vcpu for vcpu in range(domain.vcpus) if domain.pin_of(vcpu) is None)
    if not free or domain.form == "QEMU":
        return
    found = f"{several(len(free), 'vCPU')} not pinned, so may run on any CPU of the host"
    why = "the host's scheduler moves them away from their caches, memory and devices"
    remedy = [_HOST, "linkgauge vm DEFINITION --as host"]
    if domain.form == "Proxmox VE":
        cpus = count_of(domain.vcpus, "CPU")
        remedy.append(f"# It writes an affinity line of {cpus} near the devices, and numa0 lines.")
    yield Finding("unpinned", "note", f"vCPUs {ranges(free)}", found, why, tuple(remedy))
