"""What the checks of a virtual machine read: a domain beside a machine, its guest or its host."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from shlex import quote

import msgspec
from msgspec.structs import replace

from linkgauge.judge.findings import Evidence
from linkgauge.model.domain import Cell, Cpus, Domain
from linkgauge.model.host_details import HostDetails
from linkgauge.model.machine import Machine
from linkgauge.model.virtual import BusFunction, RunningDomain, Virtual

_LONGEST = 48
"""Longer names may be cut (libvirt's machine names have 64 characters, number included)."""


class Comparison(msgspec.Struct, frozen=True, dict=True, eq=False, kw_only=True):
    """`alive` is the domain as it runs on a host, if it does, `others` are those that run beside
    it, and `uuid` is the machine's own in its firmware, where it could be read."""

    domain: Domain
    machine: Machine
    virtual: Virtual
    alive: RunningDomain | None = None
    others: tuple[RunningDomain, ...] = ()
    uuid: str | None = None

    @cached_property
    def name(self) -> str:
        """The domain's name as a shell takes it; NAME where it would be a riddle."""
        name = self.domain.name
        return quote(name) if name.isprintable() and 0 < len(name) <= _LONGEST else "NAME"

    @cached_property
    def evidence(self) -> Evidence:
        """What the doctor's checks read of the same machine."""
        return Evidence(self.machine)

    @cached_property
    def host(self) -> HostDetails:
        return self.machine.known.host

    @cached_property
    def cpus(self) -> Cpus:
        """The CPUs that are online, whatever this process may use."""
        shown = set(self.virtual.siblings).union(*self.host.node_cpus.values())
        return tuple(sorted(shown or range(self.machine.host.cpus)))

    @cached_property
    def node_cpus(self) -> dict[int, Cpus]:
        """The online CPUs of each node. A kernel without NUMA has one, 0."""
        return self.host.node_cpus or {0: self.cpus}

    @cached_property
    def node_of(self) -> dict[int, int]:
        """The node of each CPU."""
        return {cpu: node for node, cpus in self.node_cpus.items() for cpu in cpus}

    @cached_property
    def node_memory(self) -> dict[int, int | None]:
        """The bytes of each node that has memory (null: unknown)."""
        return {node.index: node.memory_total for node in self.machine.host.nodes}

    @cached_property
    def functions(self) -> dict[str, BusFunction]:
        return {function.address: function for function in self.virtual.functions or ()}

    @cached_property
    def taken(self) -> frozenset[int]:
        """The CPUs that vCPUs of other running domains are pinned to, alone."""
        pins = (pin for other in self.others for pin in other.vcpus.values())
        return frozenset(pin[0] for pin in pins if len(pin) == 1)

    def node_of_device(self, address: str) -> int | None:
        """The host's node of a device; null if the device or its node is unknown."""
        function = self.functions.get(address)
        return None if function is None else function.numa_node

    def node_pages(self, node: int, size: int) -> tuple[int, int]:
        """Huge pages of this size on a node, total and free; of a host with a single node all."""
        if not self.virtual.node_pages and len(self.node_cpus) == 1:
            return self.host.huge_pages.get(size, (0, 0))
        return self.virtual.node_pages.get(node, {}).get(size, (0, 0))

    @cached_property
    def pins(self) -> dict[int, Cpus]:
        """The CPUs of the vCPUs that may not run everywhere."""
        own, rest = self.domain.vcpu_pins, self.domain.pin_of(self.domain.vcpus)
        there = set(self.cpus)
        narrow = {vcpu: pin for vcpu, pin in own.items() if not there.issubset(pin)}
        left = rest if rest and not there.issubset(rest) else None
        return {
            vcpu: pin
            for vcpu in range(self.domain.vcpus)
            if (pin := narrow.get(vcpu) if vcpu in own else left)
        }

    def nodes_of(self, vcpus: Iterable[int]) -> set[int]:
        """The host's nodes that those of these vCPUs may run on that are pinned."""
        pins = {id(pin): pin for vcpu in vcpus if (pin := self.pins.get(vcpu))}
        cpus = set[int]().union(*pins.values())
        return {self.node_of[cpu] for cpu in cpus if cpu in self.node_of}

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The domain's cells as libvirt makes them: the first has the vCPUs that no cell lists."""
        listed = {vcpu for cell in self.domain.cells for vcpu in cell.vcpus}
        left = [vcpu for vcpu in range(self.domain.vcpus) if vcpu not in listed]
        first = self.domain.cells[:1]
        filled = [replace(cell, vcpus=tuple(sorted({*cell.vcpus, *left}))) for cell in first]
        return (*filled, *self.domain.cells[1:])


def alive_of(domain: Domain, running: Iterable[RunningDomain]) -> RunningDomain | None:
    """The domain among those that run. Control groups keep only letters and digits of its name for
    certain, and cut a long one."""
    wanted = _plain(domain.name)
    for one in running:
        name = _plain(one.name)
        if name == wanted or (len(one.name) >= _LONGEST and wanted.startswith(name)):
            return one
    return None


def is_same_uuid(one: str, other: str) -> bool:
    """Whether two UUIDs are the same, also if the first three fields of one have their bytes in the
    order of SMBIOS before 2.6."""
    fields = one.split("-")
    turned = ["".join(re.findall("..", field)[::-1]) for field in fields[:3]]
    return other in (one, "-".join([*turned, *fields[3:]]))


def _plain(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9]", "", name)
