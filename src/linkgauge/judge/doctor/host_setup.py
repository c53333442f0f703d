"""Checks the host's setup, and whether a virtual machine's placement on its host slows copies."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.blame.cases import Case, cases_of
from linkgauge.judge.expected.link_rates import figure
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.remedies import COMPARE_ON_HOST, HUGE_PAGES, IOMMU_PT, SMT_OFF, kernel_log
from linkgauge.model.hardware.part import MACHINE, Part
from linkgauge.model.memory import Memory
from linkgauge.model.units import BANDWIDTH

_LOST = 0.9
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
    gaps = evidence.machine.known.host.unknown
    return next((f": {gap.why}" for gap in gaps if field in gap.fields), "")


def check_iommu(evidence: Evidence) -> Iterator[Finding]:
    host = evidence.machine.known.host
    if host.iommu == "translating":
        found = "the IOMMU translates the addresses that devices use"
        why = "each transfer looks up its addresses, and copies between devices"
        if evidence.machine.known.adapters:
            why += " (also by GPUDirect)"
        why += " may go through the root complex"
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


def check_channels(evidence: Evidence) -> Iterator[Finding]:
    host = evidence.machine.known.host
    used, empty = host.memory_channels, host.memory_channels_empty
    if used and empty:
        found = f"{empty} of {used + empty} memory channels have no module (DIMM)"
        why = f"the host's memory carries {used / (used + empty):.0%} of what all channels would"
        remedy = (
            "sudo dmidecode -t memory | grep -E 'Locator|Size'",
            "# Fit each channel with a module of the same kind; the board's manual has the slots.",
        )
        yield Finding("channels", "warn", MACHINE, found, why, remedy)


def check_governor(evidence: Evidence) -> Iterator[Finding]:
    host = evidence.machine.known.host
    governor, drivers = host.governor, (host.frequency_driver or "unknown").split(", ")
    slow = _SLOW_GOVERNORS - ({"powersave"} if _SELF_GOVERNED.issuperset(drivers) else set())
    if governor is None:
        reason = _why_unknown(evidence, "frequency governor")
        found = f"cannot read the CPU frequency governor{reason}"
        why = "if threads start at a low frequency, latencies and small copies vary"
        remedy = "cpupower frequency-info  # for a virtual machine, run this on its host"
        yield Finding("governor", "unknown", MACHINE, found, why, (remedy,))
    elif own := slow & {*(all_of_them := governor.split(", "))}:
        which = "some CPUs" if len(all_of_them) > len(own) else "CPUs"
        found = f"{which} have the frequency governor {' or '.join(sorted(own))}"
        why = "threads on them start at a low frequency, so latencies and small copies vary"
        remedy = "sudo cpupower frequency-set -g performance"
        yield Finding("governor", "warn", MACHINE, found, why, (remedy,))


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
        why = "buffers of huge pages (host:N/huge) then need transparent ones, maybe too few"
        yield Finding("huge-pages", "note", MACHINE, found, why, (f"echo 1024 | sudo tee {pool}",))


def check_memlock(evidence: Evidence) -> Iterator[Finding]:
    limit = evidence.machine.known.host.memlock_limit
    limit = evidence.machine.host.memlock_limit if limit is None else limit
    if limit is not None and 0 <= limit < LITTLE_LOCKED:
        unlocked = sum(cell.locked is False for cell in evidence.cells())
        found = f"this process may lock {limit >> 10} KiB of memory"
        found += f": the buffers of {unlocked} cells were not locked" if unlocked else ""
        why = "the kernel may move unlocked memory while it is measured"
        remedy = "ulimit -l unlimited  # as root; to keep it: memlock in /etc/security/limits.conf"
        yield Finding("memlock", "warn" if unlocked else "note", MACHINE, found, why, (remedy,))


def check_smt(evidence: Evidence) -> Iterator[Finding]:
    """Reports copies by all hardware threads that are slower than by one thread per core, or a
    process that may use only the threads of a few cores, although more cores are near."""
    host, threads = evidence.machine.known.host, evidence.machine.known.host.threads_per_core or 1
    if threads < 2:
        return
    cpus, cores = set(host.allowed_cpus or ()), host.allowed_cores or 0
    near = sum(len(own) for own in host.node_cpus.values() if cpus & set(own)) // threads
    if 0 < cores < len(cpus) <= near:
        found = f"this process may use {len(cpus)} CPUs, which are threads of {cores} cores; "
        found += f"{near} cores are near"
        why = "threads of one core share what moves bytes: copies by host threads are slower"
        remedy = ("lscpu --extended=CPU,CORE,NODE", "# Give it CPUs of as many cores first.")
        yield Finding("smt", "note", MACHINE, found, why, remedy)
    for few, all_threads in _oversubscribed(evidence, threads):
        most = all_threads.cell.transfers[0].engine
        found = f"{most.count} threads move {figure(all_threads.figure)}, and "
        found += f"{few.cell.transfers[0].engine.count} {figure(few.figure)}"
        why = "threads of one core take cache and buffers of each other"
        remedy = ("# Start one thread a core, or switch SMT off:", SMT_OFF)
        cells = (all_threads.name, few.name)
        yield Finding("smt", "warn", Part.of(most.owner), found, why, remedy, cells)


def _oversubscribed(evidence: Evidence, threads: int) -> Iterator[tuple[Case, Case]]:
    by_node: dict[tuple[str, int, str, Memory], dict[int, Case]] = {}
    for case in cases_of(evidence):
        is_rate = case.cell.status == "pass" and case.result.unit == BANDWIDTH.symbol
        engine = case.cell.transfers[0].engine if len(case.cell.transfers) == 1 else None
        if is_rate and engine and engine.kind == "cpu" and engine.count:
            key = case.result.benchmark, case.result.size, case.cell.row, engine.owner
            by_node.setdefault(key, {})[engine.count] = case
    for (*_, owner), by_count in by_node.items():
        nodes = (n for n in evidence.machine.host.nodes if f"host:{n.index}" == str(owner))
        every = sum(len(node.cpus) for node in nodes)
        few = [case for count, case in by_count.items() if count * threads <= every]
        best = max(few, key=lambda case: case.figure, default=None)
        full = by_count.get(every)
        if best and full and full.figure < _LOST * best.figure:
            yield best, full


_LEAST, _MOST = 0.3, 0.7
"""The shares of the expected rate that all copies reach in a badly placed virtual machine."""
_FEW = 2


def check_guest_copies(evidence: Evidence) -> Iterator[Finding]:
    """Reports a guest in which all copies with the host reach only about half of their rate."""
    if not evidence.machine.is_virtual:
        return
    cases = [case for case in cases_of(evidence) if _with_host(case)]
    shares = [case.cell.achieved or 0.0 for case in cases]
    if len(shares) < _FEW or not all(_LEAST <= share <= _MOST for share in shares):
        return
    found = f"all {len(shares)} kinds of copies with the host's memory reach {min(shares):.0%} to "
    found += f"{max(shares):.0%} of what their links carry"
    why = "all the same, so no card or slot: vCPUs that move among the host's CPUs, memory of "
    why += "another node, or an IOMMU that translates each address slow them so"
    remedy = (
        *COMPARE_ON_HOST,
        "# Pin each vCPU, and bind the memory to the devices' node, as it prints.",
        f"# On the host: {IOMMU_PT.removeprefix('# ')}",
    )
    names = tuple(case.name for case in cases)
    yield Finding("guest-copies", "warn", MACHINE, found, why, remedy, names)


def _with_host(case: Case) -> bool:
    first, *others = case.cell.transfers
    ends = first.memories
    is_copy = first.engine.kind == "ce" and len(ends) == 2 and case.result.unit == BANDWIDTH.symbol
    pinned = all(end.kind != "pageable" for end in ends)
    return is_copy and pinned and not others and sum(end.is_host for end in ends) == 1
