"""Checks a domain's CPU model, and where on the host its vCPUs and other threads may run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from linkgauge.judge.findings import Finding, Severity
from linkgauge.judge.remedies import restarted
from linkgauge.machine.tree import ranges
from linkgauge.model.grouped import grouped
from linkgauge.model.units import count_of
from linkgauge.rooms.vm.domain import TOPOEXT, X86

from .comparison import DomainEvidence, several

BELOW = ("# Use the <cputune> below.",)
"""The remedy where a placement is printed after the findings."""

_X86_VENDORS = ("AuthenticAMD", "GenuineIntel", "HygonGenuine")
_BASIC = "(qemu|kvm)(32|64)"
_SSE = f"{_BASIC}|core2duo|Conroe|Penryn|Nehalem|Westmere|Opteron_G[123]"
_LACKING = {
    "avx": ("AVX", _SSE),
    "avx2": ("AVX2", f"{_SSE}|SandyBridge|IvyBridge|Opteron_G[45]"),
    "avx512f": ("AVX-512", "(?!)"),
    "pdpe1gb": ("pages of 1 GiB", _BASIC),
}
"""Features that matter to bandwidth: in words, and the older models that lack them (QEMU's
target/i386/cpu.c). Newer models without AVX-512 are no fault."""


def check_emulation(case: DomainEvidence) -> Iterator[Finding]:
    domain, kvm = case.domain, case.virtual.kvm
    is_x86 = case.host.cpu_vendor in _X86_VENDORS
    is_own = domain.arch is None or (domain.arch in X86) == is_x86
    if domain.kind == "kvm" and is_x86 and not is_own:
        found = f"KVM runs only the host's own architecture, not {domain.arch}"
        why = "the domain does not start"
        yield Finding("emulation", "fail", "type", found, why)
    if domain.kind != "qemu" or not is_own:
        return
    found = "its type is qemu: QEMU emulates the CPU, without KVM"
    why = "emulated vCPUs are many times slower, so no figure in the guest is the host's"
    remedy = ("# Set <domain type='kvm'>.", *restarted(case.name))
    if kvm is None:
        found += "; the host shows no module of KVM"
        remedy = ("ls -l /dev/kvm  # without it, enable AMD-V or VT-x in the firmware", *remedy)
    yield Finding("emulation", "fail" if kvm else "warn", "type", found, why, remedy)


def check_hidden_threads(case: DomainEvidence) -> Iterator[Finding]:
    topology, hides = case.domain.topology, case.domain.hides_threads(case.host.cpu_vendor)
    if hides and topology is not None and topology.threads > 1:
        found = f"{topology.threads} threads of a core without the CPU's feature topoext"
        why = "the guest takes them for cores of their own, and places work on busy ones"
        yield Finding("threads-hidden", "warn", "topology", found, why, (TOPOEXT,))


def check_model(case: DomainEvidence) -> Iterator[Finding]:
    """Reports features that the CPU model hides. An unknown host CPU counts as having AVX2."""
    domain, isa = case.domain, case.host.isa or "x86-64-v3"
    if domain.arch not in X86 or domain.kind != "kvm" or not isa.endswith(("v3", "v4")):
        return
    model, wide = (domain.cpu or "qemu64").partition("-")[0], isa.endswith("v4")
    hidden = []
    for name, (what, models) in _LACKING.items():
        by_model = "disable" if re.fullmatch(models, model) else "require"
        is_off = domain.features.get(name, by_model) in ("disable", "forbid")
        hidden += [f"no {what}"] if is_off and (wide or name != "avx512f") else []
    if hidden:
        found = f"the model {domain.cpu or 'qemu64, the default,'} has {', '.join(hidden)}"
        why = "programs in the guest use narrower instructions or smaller pages than the host has"
        remedy = "# Set <cpu mode='host-passthrough'>; host-model, if the domain migrates."
        yield Finding("cpu-model", "note", "cpu", found, why, (remedy,))


def check_pinned_cpus(case: DomainEvidence) -> Iterator[Finding]:
    domain, online = case.domain, set(case.cpus)
    if not online:
        yield Finding("pinned-cpus", "unknown", "pins", "cannot read which CPUs are online")
        return
    own = {n: pin for n, pin in domain.vcpu_pins.items() if n < domain.vcpus}
    lost = {vcpu: absent for vcpu, pin in own.items() if (absent := {*pin} - online)}
    pins = {f"vCPUs {ranges(lost)}": set[int]().union(*lost.values())}
    pins |= {subject: {*(pin or ())} for subject, pin in domain.other_pins.items()}
    pins |= {"<vcpu>": {*(domain.cpuset or ())}}
    for subject, pin in pins.items():
        if absent := pin - online:
            found = f"pinned to CPU {ranges(absent)}; the host has {ranges(case.cpus)} online"
            why = "the domain does not start, or runs only on the CPUs of the list that exist"
            yield Finding("pinned-cpus", "fail", subject, found, why, BELOW)


def check_alive(case: DomainEvidence) -> Iterator[Finding]:
    domain, alive = case.domain, case.alive
    if alive is None:
        return
    vcpus = {f"vCPU {n}": domain.pin_of(n) for n in range(domain.vcpus)}
    seen = {f"vCPU {n}": pin for n, pin in alive.vcpus.items()} | {"emulator": alive.emulator}
    seen |= {f"IO thread {n}": pin for n, pin in alive.iothreads.items()}
    why = "the running domain has another definition, or its pins were changed"
    look = f"virsh vcpupin {case.name}; virsh emulatorpin {case.name}  # as it runs"
    for subject, asked in (vcpus | domain.other_pins).items():
        runs = seen.get(subject)
        if asked is not None and runs is not None and set(asked) != set(runs):
            found = f"pinned to CPU {ranges(asked)}, but runs on {ranges(runs)}"
            yield Finding("live-pins", "fail", subject, found, why, (look, *restarted(case.name)))


def check_unpinned(case: DomainEvidence) -> Iterator[Finding]:
    domain = case.domain
    free = tuple(vcpu for vcpu in range(domain.vcpus) if vcpu not in case.pins)
    if not free or len(case.cpus) < 2:
        return
    nodes = len([node for node, cpus in case.node_cpus.items() if cpus])
    where = f"any of {len(case.cpus)} CPUs" + (f" of {nodes} nodes" if nodes > 1 else "")
    found = f"{several(len(free), 'vCPU')} not pinned, so may run on {where}"
    if domain.automatic:
        found = f"numad chooses the CPUs at each start (placement='auto'): {where}"
    why = "the host's scheduler moves vCPUs away from their caches, memory and devices"
    if domain.form == "QEMU":
        found = "a command line does not say where vCPUs run: what starts QEMU pins them"
        look = "# Look at Cpus_allowed_list in /proc/PID/task/*/status, PID being QEMU's."
        yield Finding("unpinned", "unknown", f"vCPUs {ranges(free)}", found, why, (look,))
    else:
        yield Finding("unpinned", "warn", f"vCPUs {ranges(free)}", found, why, BELOW)


def check_across(case: DomainEvidence) -> Iterator[Finding]:
    wide = grouped((pin, vcpu) for vcpu, pin in case.pins.items() if len(pin) > 1)
    for pin, vcpus in wide.items():
        nodes = case.nodes_at(pin)
        subject = f"vCPUs {ranges(vcpus)}"
        if len(nodes) > 1:
            found = f"may run on CPUs {ranges(pin)} of nodes {ranges(nodes)}"
            why = "when the host's scheduler moves one to another node, its memory is remote"
            yield Finding("pins-across", "warn", subject, found, why, BELOW)
        else:
            found = f"share the CPUs {ranges(pin)} of one node"
            why = "the host's scheduler moves them among these CPUs, away from their caches"
            remedy = "# Give each vCPU a <vcpupin> with one CPU."
            yield Finding("pins-wide", "note", subject, found, why, (remedy,))


def check_shared(case: DomainEvidence) -> Iterator[Finding]:
    by_cpu = grouped((cpu, vcpu) for vcpu, cpu in case.exact.items())
    shared = [(one, f"all pinned to CPU {cpu}") for cpu, one in by_cpu.items() if len(one) > 1]
    pins, union = [*case.pins], {*chain(*case.pins.values())}
    if len(union) < len(pins) and not shared:
        found = f"{len(pins)} of them share {count_of(len(union), 'CPU')}, {ranges(union)}"
        shared = [(pins, found)]
    for vcpus, found in shared:
        why = "one waits while another runs, which shows as steal and stalled locks in the guest"
        yield Finding("pins-shared", "warn", f"vCPUs {ranges(vcpus)}", found, why, BELOW)


def check_taken(case: DomainEvidence) -> Iterator[Finding]:
    for other in case.others:
        theirs = {cpu for pin in other.vcpus.values() if len(pin) == 1 for cpu in pin}
        shared = theirs.intersection(case.exact.values())
        if shared:
            found = f"CPU {ranges(shared)} also runs vCPUs of the domain {other.name}"
            why = "one domain's vCPU waits while the other's runs"
            yield Finding("pins-taken", "warn", "vCPUs", found, why, BELOW)


def check_threads(case: DomainEvidence) -> Iterator[Finding]:
    exact, siblings, topology = case.exact, case.virtual.siblings, case.domain.topology
    threads = topology.threads if topology else 1
    why = "the guest's scheduler mistakes which vCPUs share a core"
    guests = grouped((vcpu // threads, vcpu) for vcpu in exact)
    hosts = grouped((siblings.get(cpu, (cpu,)), vcpu) for vcpu, cpu in exact.items())
    together = {vcpu: core for core, vcpus in hosts.items() for vcpu in vcpus}
    split = [v for v in guests.values() if len({together[vcpu] for vcpu in v}) > 1]
    wrong = split or [v for v in hosts.values() if len({vcpu // threads for vcpu in v}) > 1]
    if wrong:
        pairs = "; ".join(f"{ranges(v)} on CPUs {ranges(exact[n] for n in v)}" for v in wrong[:3])
        cores = count_of(len(wrong), "core")
        found = f"the guest sees the threads of {cores} as cores of their own: vCPUs {pairs}"
        if split:
            found = f"threads of {cores} of the guest run on several host cores: vCPUs {pairs}"
        yield Finding("pin-threads", "warn", "vCPUs", found, why, BELOW)


def check_emulator(case: DomainEvidence) -> Iterator[Finding]:
    exact = set(case.exact.values())
    for subject, own in case.domain.other_pins.items() if exact else ():
        pin = own or case.domain.cpuset
        shared = exact if pin is None else exact.intersection(pin)
        if pin is None and len(exact) < len(case.cpus):
            found = "not pinned: it may run on the vCPUs' CPUs"
        elif pin is not None and shared:
            found = f"may run on CPU {ranges(shared)}, to which vCPUs are pinned"
        else:
            continue
        why = "the vCPU on that CPU waits while it runs"
        severity: Severity = "warn" if subject == "emulator" else "note"
        yield Finding("emulator", severity, subject, found, why, BELOW)


def check_emulator_far(case: DomainEvidence) -> Iterator[Finding]:
    vcpus = case.sure_nodes_of(range(case.domain.vcpus))
    for subject, pin in case.domain.other_pins.items():
        at = case.nodes_at(pin or ())
        if vcpus and at and at.isdisjoint(vcpus | case.bound_nodes):
            found = f"runs on node {ranges(at)}; the vCPUs are on node {ranges(vcpus)}"
            why = "its copies to and from the guest's memory cross the link between the nodes"
            remedy = f"# Pin it to CPUs of node {ranges(vcpus)} that no vCPU is pinned to."
            yield Finding("emulator-far", "note", subject, found, why, (remedy,))
