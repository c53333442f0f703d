"""Reads a configuration of Proxmox VE (/etc/pve/qemu-server/VMID.conf). Source: pve-docs,
qm.conf(5): lines `name: value`, lists with semicolons; sections in brackets are snapshots."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from linkgauge.machine.tree import ranges
from linkgauge.rooms.vm.domain import (
    CpuTopology,
    Domain,
    GuestNode,
    HostDevice,
    HugePages,
    MemoryPolicy,
)

from .words import MODES, address, count, host_device, numbers, options, size, vcpus

if TYPE_CHECKING:
    from linkgauge.rooms.vm.checks.planner import Suited

NAME = "Proxmox VE"
_LINE = re.compile(r"([a-z][a-z0-9_-]*): *(\S.*)")
_OWN = frozenset({"cores", "sockets", "memory", "scsihw", "ostype", "bootdisk", "numa", "vmgenid"})
_MIB = 1 << 20
_MEMORY = "512"
"""MiB; qm.conf's default."""


def _settings(text: str) -> dict[str, str]:
    lines = re.split(r"^\[", text, maxsplit=1, flags=re.MULTILINE)[0].splitlines()
    matches = (_LINE.fullmatch(line.strip()) for line in lines if not line.startswith("#"))
    return {match[1]: match[2].strip() for match in matches if match}


def knows(text: str) -> bool:
    return len(_OWN.intersection(_settings(text))) > 1


def parse(text: str) -> Domain:
    said = _settings(text)
    sockets, cores = (vcpus(said.get(name, "1"), name) for name in ("sockets", "cores"))
    made, total = _cells(said), sockets * cores
    cells = tuple(cell for cell, _ in made)
    affinity = said.get("affinity")
    cpuset = None if affinity is None else numbers(affinity, "affinity")
    cpu = dict(options(said.get("cpu", "kvm64"), "cputype"))
    flags = re.findall(r"\+([\w-]+)", cpu.get("flags", ""))
    model = "host-passthrough" if cpu.get("cputype") == "host" else cpu.get("cputype")
    devices, mapped, mediated = _devices(said)
    memory = dict(options(said.get("memory", _MEMORY), "current")).get("current", _MEMORY)
    return Domain(
        name=said.get("name", ""),
        form=NAME,
        kind="qemu" if said.get("kvm") == "0" else "kvm",
        arch=said.get("arch", "x86_64"),
        machine=dict(options(said.get("machine", "pc"), "type")).get("type"),
        vcpus=vcpus(str(total), "sockets × cores"),
        enabled=tuple(range(min(total, vcpus(said.get("vcpus", str(total)), "vcpus")))),
        cpuset=cpuset,
        emulator_pin=cpuset,
        memory=size(memory, "memory"),
        current_memory=size(said["balloon"], "balloon")
        if said.get("balloon", "0") != "0"
        else None,
        cell_policies={cell.index: policy for cell, policy in made if policy is not None},
        topology=CpuTopology(sockets=sockets, cores=cores),
        cpu=model,
        features=dict.fromkeys(flags, "require"),
        cells=cells,
        huge_pages=_pages(said.get("hugepages")),
        devices=devices,
        mediated=mediated,
        mapped=mapped,
    )


def _cells(said: dict[str, str]) -> tuple[tuple[GuestNode, MemoryPolicy | None], ...]:
    """Reads NUMA cells such as `numa0: cpus=0-3;8,hostnodes=0,memory=8192,policy=bind`."""
    found = []
    for name in sorted(said, key=lambda one: (len(one), one)):
        if re.fullmatch("numa[0-9]{1,2}", name):
            own = {key: value.replace(";", ",") for key, value in options(said[name], "cpus")}
            cpus = numbers(own["cpus"], name) if own.get("cpus") else ()
            cell = GuestNode(count(name[4:], name), cpus, size(own.get("memory", "0"), name))
            nodes = numbers(own["hostnodes"], name) if own.get("hostnodes") else None
            mode = MODES.get(own.get("policy", "preferred"), "preferred")
            found.append((cell, MemoryPolicy(mode, nodes) if nodes else None))
    return tuple(found)


def _pages(text: str | None) -> tuple[HugePages, ...]:
    if text is None:
        return ()
    return (HugePages(None if text == "any" else count(text, "hugepages") * _MIB),)


def _devices(said: dict[str, str]) -> tuple[tuple[HostDevice, ...], tuple[str, ...], int]:
    found, mapped, mediated = list[HostDevice](), list[str](), 0
    for name in sorted(said):
        if not re.fullmatch("hostpci[0-9]{1,2}", name):
            continue
        own = dict(options(said[name], "host"))
        if "mdev" in own:
            mediated += 1
        elif "host" not in own:
            mapped.append(own.get("mapping", name))
        else:
            found += [host_device(address(one, name)) for one in own["host"].split(";")]
    return tuple(found), tuple(mapped), mediated


def settings(domain: Domain, suited: Suited) -> Iterator[str]:
    """Yields lines of the configuration. Each vCPU may run on any CPU of `affinity`."""
    yield f"# In /etc/pve/qemu-server/VMID.conf{f' ({domain.name})' if domain.name else ''}:"
    yield f"affinity: {ranges({*chain(*suited.pins.values())})}"
    topology = suited.topology or domain.topology
    if topology is not None:
        yield f"sockets: {topology.sockets}"
        yield f"cores: {topology.cores_of_socket * topology.threads}"
    whole = GuestNode(0, tuple(range(domain.vcpus)), domain.bytes or 0)
    cells = [cell for cell in suited.cells or (whole,) if cell.index in suited.nodes]
    if cells:
        yield "numa: 1"
    for cell in cells:
        cpus, nodes = (
            ranges(of).replace(",", ";") for of in (cell.vcpus, suited.nodes[cell.index])
        )
        about = f"cpus={cpus},hostnodes={nodes},memory={cell.memory // _MIB},policy=bind"
        yield f"numa{cell.index}: {about}"
    if suited.page_size:
        yield f"hugepages: {suited.page_size // _MIB}"
