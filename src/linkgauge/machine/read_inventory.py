"""Reads everything that a machine's files show, in addition to what host.py reads."""

from __future__ import annotations

import msgspec

from linkgauge.model.hardware.gaps import Gap
from linkgauge.model.hardware.host_details import HostDetails
from linkgauge.model.hardware.inventory import Accelerator, Inventory
from linkgauge.model.notation import decode_hook, encode_hook

from . import cgroup, cpu, dimms, environment, network, numa
from .cpu_time import ticks_and_steal
from .host import read_host, unread
from .interfaces import read_interfaces
from .kernel_options import command_line
from .pci import read_pci
from .tree import ROOT, Root

# What the kernel reports about the host besides host.py: what affects and explains a measurement.
#
# Everything is read below a filesystem root. What cannot be read is null, and `unknown` says why
# and how to make it readable; a null that means "there is none" (no hypervisor, no limit) has no
# such line.


def read_details(root: Root = ROOT) -> HostDetails:
    host, cpus = read_host(root), cpu.shown_cpus(root)
    cpuinfo = root.text("proc/cpuinfo") or ""
    sockets, cores, threads = cpu.topology(root, cpus)
    below, below_is_known = environment.hypervisor(root)
    translation, why_no_iommu = environment.iommu(root)
    limit, limit_is_known = cgroup.memory_limit(root)
    locked, lock_is_known = cgroup.memlock_limit(root)
    ticks, steal = ticks_and_steal(root)
    rate, why_no_rate = dimms.memory_rate(root, sockets)
    cpus_allowed = cgroup.allowed(root, "Cpus")
    used_channels, empty_channels = dimms.channels(root, sockets)
    details = HostDetails(
        cpu_vendor=cpu.cpu_vendor(cpuinfo),
        cpu_code=cpu.cpu_code(cpuinfo),
        sockets=sockets,
        cores=cores,
        threads_per_core=threads,
        isa=cpu.isa(cpuinfo),
        caches=cpu.cache_levels(root, cpus),
        distances=numa.distances(root, [node.index for node in numa.read_nodes(root, cpus, None)]),
        node_cpus={index: numa.node_cpus(root, index) for index in numa.host_nodes(root)},
        huge_pages=dimms.huge_pages(root),
        transparent_huge_pages=host.transparent_huge_pages,
        governor=cpu.governor(root, cpus),
        frequency_driver=cpu.frequency_driver(root, cpus),
        firmware=environment.firmware(root),
        microcode=cpu.microcode(cpuinfo),
        command_line=_command_line(root),
        iommu=translation,
        aspm_policy=root.choice("sys/module/pcie_aspm/parameters/policy"),
        hypervisor=below,
        container=environment.container(root),
        allowed_cpus=cpus_allowed,
        allowed_cores=None if cpus_allowed is None else len(cpu.one_a_core(root, cpus_allowed)),
        allowed_nodes=cgroup.allowed(root, "Mems"),
        memory_limit=limit,
        memlock_limit=locked,
        steal=steal,
        cpu_ticks=ticks,
        memory_rate=rate,
        memory_channels=used_channels,
        memory_channels_empty=empty_channels,
        gpudirect=environment.gpudirect(root),
    )
    reasons = {
        **_missing(details),
        "hypervisor": (below_is_known, "neither CPU flags, firmware nor device tree report it"),
        "memory limit": (limit_is_known, "/proc/self/cgroup is not readable"),
        "locked memory limit": (lock_is_known, "/proc/self/limits is not readable"),
        "IOMMU": (None, why_no_iommu),
        "DIMM rate": (None, why_no_rate),
    }
    gaps = (Gap(why, name) for name, (known, why) in reasons.items() if why and not known)
    return msgspec.structs.replace(details, unknown=(*unread(host), *gaps))


def _command_line(root: Root) -> str | None:
    content = root.content("proc/cmdline")
    return None if content is None else command_line(content).decode(errors="replace").strip()


def _missing(details: HostDetails) -> dict[str, tuple[object, str]]:
    return {
        "sockets": (details.sockets, "the kernel does not number them (usual without ACPI)"),
        "cores": (details.cores, "the kernel shows no CPU topology"),
        "instruction set": (details.isa, "/proc/cpuinfo does not report it"),
        "caches": (
            details.caches,
            "the kernel shows none (as on some boards and virtual machines)",
        ),
        "NUMA distances": (details.distances, "the kernel shows no nodes with distances"),
        "huge pages": (details.huge_pages, "the kernel shows none (CONFIG_HUGETLBFS)"),
        "transparent huge pages": (
            details.transparent_huge_pages,
            "the kernel has no setting for them (CONFIG_TRANSPARENT_HUGEPAGE)",
        ),
        "frequency governor": (details.governor, _why_no_governor(details)),
        "kernel command line": (details.command_line is not None, "/proc/cmdline is not readable"),
        "allowed CPUs": (details.allowed_cpus, "/proc/self/status and the cpuset lack them"),
        "allowed nodes": (details.allowed_nodes, "/proc/self/status and the cpuset lack them"),
        "CPU steal": (details.steal is not None, "/proc/stat does not count it"),
    }


def _why_no_governor(details: HostDetails) -> str:
    if details.hypervisor:
        return f"the hypervisor ({details.hypervisor}) hides the frequency: check on the host"
    return "the kernel shows no cpufreq driver (the firmware may set the frequency)"


# Accelerators of a captured or simulated machine, as their vendors' libraries reported them where
# these could be queried. On a real machine, the backends query the libraries.

ACCELERATORS = "linkgauge/accelerators.json"
"""The file of a captured machine that holds its accelerators, as a JSON list of `Accelerator`."""

_decoder = msgspec.json.Decoder(tuple[Accelerator, ...], dec_hook=decode_hook())


def read_accelerators(root: Root) -> tuple[tuple[Accelerator, ...], tuple[Gap, ...]]:
    """Returns a captured machine's accelerators, and the reason if their file cannot be read."""
    text = root.text(ACCELERATORS)
    if text is None:
        return (), ()
    try:
        return _decoder.decode(text), ()
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        why = f"{ACCELERATORS} cannot be read: {error}: capture the machine again"
        return (), (Gap(why, "accelerators"),)


def accelerators_file(accelerators: tuple[Accelerator, ...]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(accelerators, enc_hook=encode_hook))


def read_inventory(root: Root = ROOT) -> Inventory:
    """Reads the inventory below `root`."""
    pci, no_pci = read_pci(root)
    # Only captured machines have a file of accelerators. Else, vendors' libraries report them.
    accelerators, no_accelerators = read_accelerators(root)
    return Inventory(
        host=read_details(root),
        pci=pci,
        accelerators=accelerators,
        adapters=network.read_adapters(root)
        if network.has_class(root)
        else network.adapters_by_class(pci),
        interfaces=read_interfaces(root),
        unknown=(*no_pci, *no_accelerators),
    )
