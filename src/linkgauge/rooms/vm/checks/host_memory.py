"""Checks on the host which nodes the domain's memory is on, and which pages back it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from linkgauge.judge.findings import Finding, Severity
from linkgauge.judge.remedies import restarted
from linkgauge.machine.tree import ranges
from linkgauge.model.hardware.virtual import Cpus
from linkgauge.model.units import count_of
from linkgauge.rooms.vm.domain import GuestNode, MemoryPolicy

from .comparison import DomainEvidence, sized

BELOW = ("# Use the <numatune> below.",)
_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_BASE = 4 * _KIB
"""Pages of this size are no huge pages; libvirt takes memory as it comes."""


def check_nodes(case: DomainEvidence) -> Iterator[Finding]:
    policies = {None: case.domain.policy} | case.domain.cell_policies
    for cell, policy in policies.items():
        subject = "memory" if cell is None else f"cell {cell}"
        nodes = policy.nodes if policy and policy.nodes else ()
        absent = tuple(node for node in nodes if node not in case.node_memory)
        if absent:
            there = ranges(case.node_memory)
            found = f"bound to node {ranges(absent)}; the host has memory on {there}"
            why = "the domain does not start, or uses only the nodes of the list that exist"
            yield Finding("memory-node", "fail", subject, found, why, BELOW)


def check_alive(case: DomainEvidence) -> Iterator[Finding]:
    policy, alive = case.domain.policy, case.alive
    if alive is None or alive.nodes is None or policy is None or policy.nodes is None:
        return
    if policy.mode in ("strict", "restrictive") and not set(alive.nodes) <= set(policy.nodes):
        found = f"bound to node {ranges(policy.nodes)}, but may come from {ranges(alive.nodes)}"
        why = "the running domain has another definition"
        remedy = (f"virsh numatune {case.name}  # as it runs", *restarted(case.name))
        yield Finding("live-memory", "fail", "memory", found, why, remedy)


def _page_size(case: DomainEvidence, cell: GuestNode) -> int | None:
    """Returns the bytes of a huge page of a guest's NUMA cell (0: the host's default), or None if
    the cell has no huge pages."""
    pages = case.domain.huge_pages
    own = [one for one in pages if one.cells is not None and cell.index in one.cells]
    rest = [one for one in pages if one.cells is None]
    return next((one.size or 0 for one in (*own, *rest)), None)


def check_bound(case: DomainEvidence) -> Iterator[Finding]:
    if len(case.node_memory) < 2:
        return
    for cell in case.memories:
        subject, policy = case.name_of(cell), case.domain.policy_of(cell.index)
        if policy is None or policy.nodes is None:
            by_numad = policy or case.domain.automatic
            how = "numad chooses its nodes" if by_numad else "bound to no node"
            found = f"{how}: memory may come from any of {len(case.node_memory)} nodes"
            why = "vCPUs and devices reach memory on another node over the link between nodes"
            yield Finding("memory-unbound", "warn", subject, found, why, BELOW)
        else:
            yield from by_policy(case, cell, policy)


def by_policy(case: DomainEvidence, cell: GuestNode, policy: MemoryPolicy) -> Iterator[Finding]:
    if policy.nodes is not None and policy.mode in ("preferred", "interleave"):
        found = f"its memory policy is {policy.mode!r} with node {ranges(policy.nodes)}"
        why = "when the node is full, the rest comes from other nodes"
        why = why if policy.mode == "preferred" else "interleaved memory is partly remote"
        is_own = cell.index in case.domain.cell_policies
        tag = f"<memnode cellid='{cell.index}'" if is_own else "<memory"
        remedy = f"# Set {tag} mode='strict' nodeset='{ranges(policy.nodes)}'/>: its memory "
        remedy += "then comes from that node alone."
        yield Finding("memory-policy", "note", case.name_of(cell), found, why, (remedy,))


def check_remote(case: DomainEvidence) -> Iterator[Finding]:
    """Checks that each cell's vCPUs run near its memory, as if that is spread evenly over nodes."""
    for cell in case.memories:
        at = case.sure_nodes_of(cell.vcpus)
        nodes = {*case.node_memory}.intersection(case.bound(cell))
        if not nodes or not at or (nodes == at and (len(at) == 1 or not case.cells)):
            continue
        share, far = case.remote(cell.vcpus, nodes)
        found = f"bound to node {ranges(nodes)}, but its vCPUs run on node {ranges(at)}"
        if share < 1:
            found += f": {share:.0%} of accesses are remote"
            found += " if each node gives the same share" if len(nodes) > 1 else ""
        why = "every access crosses the link between the nodes"
        why = why if share == 1 else "accesses to another node cross the link between the nodes"
        why += f", at {far:.1f} times the local distance" if far else ""
        yield Finding("memory-remote", "warn", case.name_of(cell), found, why, BELOW)


def check_size(case: DomainEvidence) -> Iterator[Finding]:
    needs = Counter[Cpus]()
    for cell in case.memories:
        needs[case.strictly_bound(cell)] += cell.memory
    for nodes, size in needs.items():
        sizes = [case.node_memory.get(node) for node in nodes]
        known = sum(one or 0 for one in sizes)
        if nodes and None not in sizes and size > known:
            found = f"{sized(size)} are bound to node {ranges(nodes)}, which has {sized(known)}"
            why = "the domain does not start, or is killed when the node is full"
            yield Finding("memory-size", "fail", "memory", found, why, BELOW)


def check_pools(case: DomainEvidence) -> Iterator[Finding]:
    pools = case.host.huge_pages
    needs = Counter[tuple[int, Cpus]]()
    for cell in case.memories:
        page = _page_size(case, cell)
        if page is None or page == _BASE:
            continue
        # The default is 2 MiB on x86; elsewhere it may be another, which the pools do not say.
        page = page or (2 * _MIB if 2 * _MIB in pools else min(pools, default=2 * _MIB))
        needs[page, case.strictly_bound(cell)] += cell.memory
    for (page, nodes), size in needs.items():
        if page not in pools:
            sizes = "of " + ", ".join(sized(one) for one in pools) if pools else "none"
            found = f"asks for pages of {sized(page)}; pools of huge pages on the host: {sizes}"
            why, unit = "the domain does not start", f"{page >> 20}M" if page < _GIB else "1G"
            look = f"# Boot the host with hugepagesz={unit} hugepages={-(-size // page)} on its "
            look += "kernel's command line."
            yield Finding("huge-pages", "fail", "huge pages", found, why, (look,))
        else:
            yield from _pool(case, page, nodes, -(-size // page))


def _pool(case: DomainEvidence, page: int, nodes: Cpus, need: int) -> Iterator[Finding]:
    counts = [case.node_pages(node, page) for node in nodes] or [case.host.huge_pages[page]]
    total, free = (sum(pair[place] for pair in counts) for place in (0, 1))
    where = f" on node {ranges(nodes)}" if nodes else ""
    folder = f"/sys/devices/system/node/node{nodes[0]}" if nodes else "/sys/kernel/mm"
    pool = f"{folder}/hugepages/hugepages-{page // _KIB}kB/nr_hugepages"
    if total < need:
        found = f"needs {need} pages of {sized(page)}{where}; the host has {total}"
        why = "the domain does not start, or gets its memory in other pages"
        remedy = f"echo {need} | sudo tee {pool}  # soon after boot, before memory is fragmented"
        yield Finding("huge-pages", "fail", "huge pages", found, why, (remedy,))
    elif free < need and not case.runs:
        found = f"needs {need} pages of {sized(page)}{where}; {free} of the host's {total} are free"
        why = "the domain does not start while others use them (unless it is running)"
        remedy = f"echo {total + need - free} | sudo tee {pool}"
        yield Finding("huge-pages", "warn", "huge pages", found, why, (remedy,))


def check_no_pages(case: DomainEvidence) -> Iterator[Finding]:
    yield from without_pages(case, is_off=case.host.transparent_huge_pages == "never")


def without_pages(case: DomainEvidence, *, is_off: bool) -> Iterator[Finding]:
    if any(_page_size(case, cell) is not None for cell in case.memories):
        return
    severity: Severity = "warn" if is_off else "note"
    other = ", and transparent huge pages are off" if is_off else " or transparent huge pages"
    found = f"the domain's memory is in base pages{other}"
    why = "the TLB covers less memory, which costs bandwidth and above all latency"
    pages = count_of(-(-(case.domain.bytes or 0) // (2 * _MIB)), "page")
    remedy = f"# Set <memoryBacking><hugepages/></memoryBacking>, and reserve {pages} of 2 MiB."
    yield Finding("huge-pages-none", severity, "huge pages", found, why, (remedy,))
