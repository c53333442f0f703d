"""Checks of the host: memory, CPUs, the IOMMU, and what this process may use of them."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.remedies import HUGE_PAGES, IOMMU_PT, NEAR_NODE, kernel_log
from linkgauge.model.hardware.host_details import HostDetails
from linkgauge.model.hardware.part import MACHINE

from .pcie_chains import shown

LITTLE_LOCKED = 1 << 30
"""Limit of locked memory, in bytes, that is too small for a run's buffers."""
HUGE = 2 << 20
"""Size in bytes of the huge pages that `host:N/huge` uses (native/memory.cpp)."""
_SLOW_GOVERNORS = {"powersave", "ondemand", "conservative", "schedutil", "userspace"}
_SELF_GOVERNED = {"intel_pstate", "amd-pstate-epp", "amd_pstate_epp"}
"""Drivers under which the processor chooses its frequency: their `powersave` is the usual setting,
not the lowest frequency (Documentation/admin-guide/pm/intel_pstate.rst and amd-pstate.rst). In
passive mode they call themselves intel_cpufreq and amd-pstate."""


def _why_unknown(evidence: Evidence, field: str) -> str:
    """The reader's reason for a missing field."""
    gaps = evidence.machine.known.host.unknown
    return next((f": {gap.why}" for gap in gaps if field in gap.fields), "")


def check_iommu(evidence: Evidence) -> Iterator[Finding]:
    host = evidence.machine.known.host
    if host.iommu == "translating":
        found = "the IOMMU translates the addresses that devices use"
        why = (
            "each transfer looks up its addresses, and copies between devices may go through the "
            "root complex"
        )
        remedy: tuple[str, ...] = (IOMMU_PT,)
        if "iommu=pt" in (host.command_line or "").split():
            remedy = (
                "# The kernel's command line already has iommu=pt. To see which groups translate:",
                "grep -r --include=type . /sys/kernel/iommu_groups",
            )
        yield Finding("iommu", "warn", MACHINE, found, why, remedy)
    elif host.iommu is None:
        found = f"cannot read whether the IOMMU translates{_why_unknown(evidence, 'IOMMU')}"
        why = "if it does, each transfer looks up its addresses"
        remedy = ("cat /proc/cmdline", kernel_log("iommu", "dmar"))
        yield Finding("iommu", "unknown", MACHINE, found, why, remedy)


def check_governor(evidence: Evidence) -> Iterator[Finding]:
    governor = evidence.machine.known.host.governor
    if governor is None:
        reason = _why_unknown(evidence, "frequency governor")
        found = f"cannot read the CPU frequency governor{reason}"
        why = "if threads start at a low frequency, latencies and small copies vary"
        remedy = "cpupower frequency-info  # on the host, if this is a virtual machine"
        yield Finding("governor", "unknown", MACHINE, found, why, (remedy,))
    elif not _slow_governors(evidence.machine.known.host).isdisjoint(governor.split(", ")):
        found = f"the CPU frequency governor is {governor}"
        why = "threads start at a low frequency, so latencies and small copies vary"
        remedy = "sudo cpupower frequency-set -g performance"
        yield Finding("governor", "warn", MACHINE, found, why, (remedy,))


def _slow_governors(host: HostDetails) -> set[str]:
    drivers = set((host.frequency_driver or "unknown").split(", "))
    return _SLOW_GOVERNORS - ({"powersave"} if drivers <= _SELF_GOVERNED else set())


def check_transparent_huge_pages(evidence: Evidence) -> Iterator[Finding]:
    host = evidence.machine.known.host
    pages = host.transparent_huge_pages or evidence.machine.host.transparent_huge_pages
    # The kernel lists all choices and brackets the one in force.
    chosen = pages[pages.find("[") + 1 : pages.find("]")] if pages and "[" in pages else pages
    if chosen == "never":
        found = "transparent huge pages are off"
        why = "copies by host threads miss the TLB and lose several percent of bandwidth"
        yield Finding("transparent-huge-pages", "warn", MACHINE, found, why, (HUGE_PAGES,))


def check_huge_pages(evidence: Evidence) -> Iterator[Finding]:
    pages = evidence.machine.known.host.huge_pages.get(HUGE)
    if pages is not None and not pages[0]:
        # vm.nr_hugepages counts pages of the default size, which may be 512 MiB or 1 GiB.
        pool = f"/sys/kernel/mm/hugepages/hugepages-{HUGE >> 10}kB/nr_hugepages"
        found = "no huge pages of 2 MiB are reserved"
        why = "host:N/huge then needs transparent ones, and the kernel may find too few"
        yield Finding("huge-pages", "note", MACHINE, found, why, (f"echo 1024 | sudo tee {pool}",))


def check_memlock(evidence: Evidence) -> Iterator[Finding]:
    limit = evidence.machine.known.host.memlock_limit
    limit = evidence.machine.host.memlock_limit if limit is None else limit
    if limit is None or not 0 <= limit < LITTLE_LOCKED:
        return
    unlocked = sum(cell.locked is False for cell in evidence.cells())
    found = f"this process may lock {limit >> 10} KiB of memory"
    found += f": the buffers of {unlocked} cells were not locked" if unlocked else ""
    why = "the kernel may move unlocked memory while it is measured"
    remedy = "ulimit -l unlimited  # or set memlock in /etc/security/limits.conf"
    yield Finding("memlock", "warn" if unlocked else "note", MACHINE, found, why, (remedy,))


def check_near_node(evidence: Evidence) -> Iterator[Finding]:
    """A device whose node is unknown is measured from node 0, which may be the far one."""
    nodes = {node.index for node in evidence.machine.host.nodes}
    for device, function in shown(evidence):
        node = function.numa_node
        if node is None and len(nodes) > 1:
            found = "its NUMA node is unknown"
            if evidence.machine.known.host.hypervisor:
                found += " (a virtual machine hides it)"
            why = "memory on the far node costs bandwidth"
            yield Finding("near-node", "unknown", device, found, why, (NEAR_NODE,))
        elif node is not None and node not in nodes:
            found = f"its node {node} has no memory that this system can see"
            why = "buffers lie on a remote node: transfers cross the link between sockets"
            populate = "# Fit DIMMs to that socket. Until then:"
            yield Finding("near-node", "warn", device, found, why, (populate, NEAR_NODE))


def check_allowed(evidence: Evidence) -> Iterator[Finding]:
    """Threads and memory must be allowed on the node near each device (cgroup, taskset)."""
    host = evidence.machine.known.host
    why = "threads or buffers are on a remote node: transfers cross the link between sockets"
    for device, function in shown(evidence):
        node = function.numa_node
        if node is None:
            continue
        missing = []
        cpus = host.node_cpus.get(node)
        if host.allowed_cpus is not None and cpus and not set(cpus) & set(host.allowed_cpus):
            missing.append("CPUs")
        if host.allowed_nodes is not None and node not in host.allowed_nodes:
            missing.append("memory")
        if missing:
            what = " and ".join(missing)
            found = f"this process may not use the {what} of node {node}, the nearest one"
            remedy = (
                f"numactl --cpunodebind={node} --membind={node} linkgauge run",
                "# In a container, widen its cpuset: docker run --cpuset-cpus --cpuset-mems.",
            )
            yield Finding("allowed", "fail", device, found, why, remedy)
