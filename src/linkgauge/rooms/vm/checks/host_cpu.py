"""Checks on the host: whether the domain's CPUs are the host's own, and what they hide."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.findings import Finding
from linkgauge.judge.remedies import restarted

from .comparison import DomainEvidence

_X86 = ("x86_64", "i686")
_X86_VENDORS = ("AuthenticAMD", "GenuineIntel", "HygonGenuine")
_BASIC = (None, "qemu64", "qemu32", "kvm64", "kvm32")
"""Models that QEMU defines as the least that it knows: no AVX, no pages of 1 GiB, no PCID. None is
its default, qemu64 (QEMU's target/i386/cpu.c)."""


def check_emulation(case: DomainEvidence) -> Iterator[Finding]:
    """A domain whose CPUs QEMU emulates, or that KVM cannot run here."""
    domain, kvm = case.domain, case.virtual.kvm
    is_x86 = case.host.cpu_vendor in _X86_VENDORS
    is_own = domain.arch is None or (domain.arch in _X86) == is_x86
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
    """The mode host-passthrough and QEMU's older models lack AMD's `topoext`, without which a guest
    takes threads for cores; models EPYC-… have it, and host-model takes the host's."""
    domain, topology = case.domain, case.domain.topology
    policy = domain.features.get("topoext")
    lacks = policy in ("disable", "forbid") or (
        policy is None and domain.cpu != "host-model" and not (domain.cpu or "").startswith("EPYC")
    )
    is_amd = case.host.cpu_vendor == "AuthenticAMD" and domain.arch in (None, *_X86)
    if is_amd and topology is not None and topology.threads > 1 and lacks:
        found = f"{topology.threads} threads of a core without the CPU's feature topoext"
        why = "the guest takes them for cores of their own, and places work on busy ones"
        remedy = "# In <cpu>: <feature policy='require' name='topoext'/>"
        yield Finding("threads-hidden", "warn", "topology", found, why, (remedy,))


def check_model(case: DomainEvidence) -> Iterator[Finding]:
    domain = case.domain
    if domain.arch in _X86 and domain.kind == "kvm" and domain.cpu in _BASIC:
        model = domain.cpu or "qemu64, as it names none"
        found = f"its model is {model}: no AVX, no pages of 1 GiB"
        why = "copies and kernels use narrower instructions than the host's CPU has"
        remedy = "# Set <cpu mode='host-passthrough'>; host-model, if the domain migrates."
        yield Finding("cpu-model", "note", "cpu", found, why, (remedy,))
