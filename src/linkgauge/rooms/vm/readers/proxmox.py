"""Reads a configuration of Proxmox VE (/etc/pve/qemu-server/VMID.conf). Source: pve-docs,
qm.conf(5): lines `name: value`, lists with semicolons; sections in brackets are snapshots."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from linkgauge.machine.tree import ranges
from linkgauge.model.errors import InputError
from linkgauge.rooms.vm.domain import (
    MOST,
    CpuTopology,
    Domain,
    GuestNode,
    HostDevice,
    HugePages,
    MemoryPolicy,
    length,
    parse_cpu_set,
)

if TYPE_CHECKING:
    from linkgauge.rooms.vm.checks.planner import Suited

NAME = "Proxmox VE"
_LINE = re.compile(r"([a-z][a-z0-9_-]*): *(\S.*)")
_OWN = frozenset({"cores", "sockets", "memory", "scsihw", "ostype", "bootdisk", "numa", "vmgenid"})
_MIB = 1 << 20
_SIZE = re.compile(r"([0-9]{1,15})([kmgt]?)(?:i?b)?", re.IGNORECASE | re.ASCII)
_POWERS = {"k": 10, "m": 20, "g": 30, "t": 40}
_MODES = {"bind": "strict", "preferred": "preferred", "interleave": "interleave"}
"""The modes of libvirt's memory policies by QEMU's names."""
_ADDRESS = re.compile(
    r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}):([01][0-9a-f])(?:\.([0-7]))?", re.IGNORECASE | re.ASCII
)
_MEMORY = "512"
"""MiB; qm.conf's default."""


def _settings(text: str) -> dict[str, str]:
    """Those before the first snapshot. Of two lines with a name, the later one counts."""
    lines = re.split(r"^\[", text, maxsplit=1, flags=re.MULTILINE)[0].splitlines()
    matches = (_LINE.fullmatch(line.strip()) for line in lines if not line.startswith("#"))
    return {match[1]: match[2].strip() for match in matches if match}


def knows(text: str) -> bool:
    return len(_OWN.intersection(_settings(text))) > 1


def parse(text: str) -> Domain:
    said = _settings(text)
    sockets, cores = (_count(said.get(name, "1"), name, 1) for name in ("sockets", "cores"))
    made, total = _cells(said), sockets * cores
    cells = tuple(cell for cell, _ in made)
    affinity = said.get("affinity")
    cpuset = None if affinity is None else _numbers(affinity, "affinity")
    cpu = dict(_options(said.get("cpu", "kvm64"), "cputype"))
    flags = re.findall(r"\+([\w-]+)", cpu.get("flags", ""))
    model = "host-passthrough" if cpu.get("cputype") == "host" else cpu.get("cputype")
    devices, mapped, mediated = _devices(said)
    memory = dict(_options(said.get("memory", _MEMORY), "current")).get("current", _MEMORY)
    return Domain(
        name=said.get("name", ""),
        form=NAME,
        kind="qemu" if said.get("kvm") == "0" else "kvm",
        arch=said.get("arch", "x86_64"),
        machine=dict(_options(said.get("machine", "pc"), "type")).get("type"),
        vcpus=_count(str(total), "sockets × cores", 1),
        enabled=tuple(range(min(total, _count(said.get("vcpus", str(total)), "vcpus", 1)))),
        cpuset=cpuset,
        emulator_pin=cpuset,
        memory=_size(memory, "memory"),
        current_memory=_size(said["balloon"], "balloon")
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
    """From lines such as `numa0: cpus=0-3;8,hostnodes=0,memory=8192,policy=bind`."""
    found = []
    for name in sorted(said, key=lambda one: (len(one), one)):
        if re.fullmatch("numa[0-9]{1,2}", name):
            own = {key: value.replace(";", ",") for key, value in _options(said[name], "cpus")}
            cpus = _numbers(own["cpus"], name) if own.get("cpus") else ()
            cell = GuestNode(_count(name[4:], name), cpus, _size(own.get("memory", "0"), name))
            nodes = _numbers(own["hostnodes"], name) if own.get("hostnodes") else None
            mode = _MODES.get(own.get("policy", "preferred"), "preferred")
            found.append((cell, MemoryPolicy(mode, nodes) if nodes else None))
    return tuple(found)


def _pages(text: str | None) -> tuple[HugePages, ...]:
    """From `any` or a size in MiB."""
    if text is None:
        return ()
    return (HugePages(None if text == "any" else _count(text, "hugepages") * _MIB),)


def _devices(said: dict[str, str]) -> tuple[tuple[HostDevice, ...], tuple[str, ...], int]:
    """Those with an address, the names of those in the cluster's mapping, and the number of
    vGPUs."""
    found, mapped, mediated = list[HostDevice](), list[str](), 0
    for name in sorted(said):
        if not re.fullmatch("hostpci[0-9]{1,2}", name):
            continue
        own = dict(_options(said[name], "host"))
        if "mdev" in own:
            mediated += 1
        elif "host" not in own:
            mapped.append(own.get("mapping", name))
        else:
            found += [_host_device(_address(one, name)) for one in own["host"].split(";")]
    return tuple(found), tuple(mapped), mediated


def _options(text: str, first: str) -> Iterator[tuple[str, str]]:
    """Of `host,pcie=1`. `first` is the name of a first word without a name."""
    for place, word in enumerate(text.split(",")):
        name, sign, value = word.strip().partition("=")
        yield (name, value) if sign or place else (first, name)


def _count(text: str, what: str, least: int = 0) -> int:
    if not re.fullmatch("[0-9]{1,9}", text, re.ASCII) or not least <= int(text) <= MOST:
        raise InputError(f"{what} is {text[:40]!r}: give a number from {least} to {MOST}")
    return int(text)


def _size(text: str, what: str) -> int:
    """A number without a unit is in MiB."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InputError(f"{what} is {text[:40]!r}: give a size such as 16G")
    return int(match[1]) << _POWERS.get(match[2].lower(), 20)


def _numbers(text: str, what: str) -> tuple[int, ...]:
    if length(text) > MOST:
        raise InputError(f"{what} lists more than {MOST} numbers")
    try:
        return parse_cpu_set(text)
    except ValueError as error:
        raise InputError(f"{what} is {text[:40]!r}: {error}") from error


def _address(text: str, what: str) -> str:
    """As sysfs writes it. Without a function it gets function 0."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise InputError(f"{what} is {text[:40]!r}: give a PCI address such as 0000:41:00.0")
    return f"{match[1] or '0000'}:{match[2]}:{match[3]}.{match[4] or 0}".lower()


def _host_device(source: str) -> HostDevice:
    """With the element that libvirt would have for it."""
    domain, bus, rest = source.split(":")
    slot, function = rest.split(".")
    address = (
        f"<address domain='0x{domain}' bus='0x{bus}' slot='0x{slot}' function='0x{function}'/>"
    )
    element = "<hostdev mode='subsystem' type='pci' managed='yes'>"
    return HostDevice(
        source, managed=True, element=f"{element}<source>{address}</source></hostdev>"
    )


def settings(domain: Domain, suited: Suited) -> Iterator[str]:
    """`affinity` is for all threads: with it, vCPUs may run on any of its CPUs."""
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
