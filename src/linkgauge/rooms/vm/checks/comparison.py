"""Collects evidence for checks: a domain, a machine to compare it with, the machine's role."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from shlex import quote
from uuid import UUID

import msgspec
from msgspec.structs import replace

from linkgauge.judge.findings import Evidence
from linkgauge.judge.remedies import restarted
from linkgauge.model.hardware.host_details import HostDetails
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.virtual import BusFunction, Cpus, RunningDomain, Virtual
from linkgauge.model.units import approximate_size, count_of
from linkgauge.rooms.vm.domain import Domain, GuestNode, Role

_LOCAL, _REMOTE = 10, 20
"""Distances that Linux takes for granted (include/linux/topology.h)."""
_LONGEST = 48
"""Longer names may be cut (libvirt's machine names have 64 characters, number included)."""


class DomainEvidence(msgspec.Struct, frozen=True, dict=True, eq=False, kw_only=True):
    """A domain and the machine to compare it with. `alive` is the domain as it runs there, `others`
    are other domains that run there. `uuid` is the UUID in the machine's firmware."""

    domain: Domain
    machine: Machine
    virtual: Virtual
    alive: RunningDomain | None = None
    others: tuple[RunningDomain, ...] = ()
    uuid: str | None = None

    @cached_property
    def name(self) -> str:
        """Returns the domain's name for a shell, or NAME if it is empty, long or unprintable."""
        name = self.domain.name
        return quote(name) if name.isprintable() and 0 < len(name) <= _LONGEST else "NAME"

    @property
    def again(self) -> tuple[str, ...]:
        shown = f"virsh dumpxml {self.name}  # as it runs; with --inactive: as it starts next"
        return ("# On the host:", shown, *restarted(self.name))

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(self.machine)

    @cached_property
    def host(self) -> HostDetails:
        return self.machine.known.host

    @cached_property
    def cpus(self) -> Cpus:
        """Returns the online CPUs, including CPUs that this process may not use."""
        shown = set(self.virtual.siblings).union(*self.host.node_cpus.values())
        return tuple(sorted(shown or range(self.machine.host.cpus)))

    @cached_property
    def node_cpus(self) -> dict[int, Cpus]:
        """Returns the online CPUs of each node. A kernel without NUMA has only node 0."""
        return self.host.node_cpus or {0: self.cpus}

    @cached_property
    def node_of(self) -> dict[int, int]:
        return {cpu: node for node, cpus in self.node_cpus.items() for cpu in cpus}

    @cached_property
    def node_memory(self) -> dict[int, int | None]:
        """Returns the bytes of each node with memory, or None for a node of unknown size."""
        return {node.index: node.memory_total for node in self.machine.host.nodes}

    @cached_property
    def functions(self) -> dict[str, BusFunction]:
        return {function.address: function for function in self.virtual.functions or ()}

    @cached_property
    def taken(self) -> frozenset[int]:
        pins = (pin for other in self.others for pin in other.vcpus.values())
        return frozenset(pin[0] for pin in pins if len(pin) == 1)

    def node_of_device(self, address: str) -> int | None:
        function = self.functions.get(address)
        return None if function is None else function.numa_node

    def node_pages(self, node: int, size: int) -> tuple[int, int]:
        """Returns how many huge pages of `size` bytes a node has, in total and free."""
        if not self.virtual.node_pages and len(self.node_cpus) == 1:
            return self.host.huge_pages.get(size, (0, 0))
        return self.virtual.node_pages.get(node, {}).get(size, (0, 0))

    @cached_property
    def pins(self) -> dict[int, Cpus]:
        """Returns the CPUs of each pinned vCPU. A pin to all CPUs counts as no pin."""
        vcpus, there = range(self.domain.vcpus), set(self.cpus)
        pins = {vcpu: pin for vcpu in vcpus if (pin := self.domain.pin_of(vcpu))}
        lists = {id(pin): pin for pin in pins.values()}
        narrow = {key for key, pin in lists.items() if not there.issubset(pin)}
        return {vcpu: pin for vcpu, pin in pins.items() if id(pin) in narrow}

    @cached_property
    def exact(self) -> dict[int, int]:
        return {vcpu: pin[0] for vcpu, pin in self.pins.items() if len(pin) == 1}

    @property
    def runs(self) -> bool:
        return self.alive is not None or self.domain.running

    def nodes_at(self, cpus: Iterable[int]) -> set[int]:
        return {self.node_of[cpu] for cpu in cpus if cpu in self.node_of}

    def nodes_of(self, vcpus: Iterable[int]) -> set[int]:
        """Returns the host's nodes on which pinned vCPUs run. Leaves out vCPUs without pins."""
        pins = {id(pin): pin for vcpu in vcpus if (pin := self.pins.get(vcpu))}
        return self.nodes_at(set[int]().union(*pins.values()))

    def sure_nodes_of(self, vcpus: Iterable[int]) -> set[int]:
        """Returns the host's nodes on which these vCPUs run; none if a vCPU is not pinned."""
        vcpus = tuple(vcpus)
        return self.nodes_of(vcpus) if all(vcpu in self.pins for vcpu in vcpus) else set()

    @cached_property
    def distances(self) -> dict[int, dict[int, int]]:
        table = self.host.distances
        return {node: dict(zip(table, row, strict=False)) for node, row in table.items()}

    def distance(self, node: int, other: int) -> int:
        """Returns the NUMA distance that the firmware states, else Linux's default 10 or 20."""
        known = self.distances.get(node, {}).get(other)
        return known or (_LOCAL if node == other else _REMOTE)

    def remote(self, vcpus: Iterable[int], nodes: Collection[int]) -> tuple[float, float]:
        """Returns the share of the vCPUs' accesses that reach another node, and the mean distance
        of these accesses as a multiple of the local distance (zeros if all accesses are local).
        Assumes that memory is spread evenly over `nodes`."""
        ways = [
            (self.node_of[cpu], node, 1 / len(pin) / len(nodes))
            for vcpu in vcpus
            for pin in (self.pins.get(vcpu) or self.cpus,)
            for cpu in pin
            if cpu in self.node_of
            for node in nodes
        ]
        far = [(at, node, weight) for at, node, weight in ways if at != node]
        remote, total = sum(way[2] for way in far), sum(way[2] for way in ways)
        cost = sum(self.distance(at, node) / self.distance(at, at) * w for at, node, w in far)
        return (remote / total, cost / remote) if far else (0.0, 0.0)

    @cached_property
    def cells(self) -> tuple[GuestNode, ...]:
        """Returns the NUMA cells. As in libvirt, the first cell gets vCPUs that no cell lists."""
        listed = {vcpu for cell in self.domain.cells for vcpu in cell.vcpus}
        left = [vcpu for vcpu in range(self.domain.vcpus) if vcpu not in listed]
        first = self.domain.cells[:1]
        filled = [replace(cell, vcpus=tuple(sorted({*cell.vcpus, *left}))) for cell in first]
        return (*filled, *self.domain.cells[1:])

    @cached_property
    def memories(self) -> tuple[GuestNode, ...]:
        """Returns the cells, or one cell with all vCPUs and memory if the domain has none."""
        domain = self.domain
        whole = GuestNode(0, tuple(range(domain.vcpus)), domain.bytes or 0)
        return self.cells or (whole,)

    def bound(self, cell: GuestNode) -> Cpus:
        policy = self.domain.policy_of(cell.index)
        return (policy and policy.nodes) or ()

    def strictly_bound(self, cell: GuestNode) -> Cpus:
        """Returns the host's nodes to which a cell's memory is strictly bound, or no nodes."""
        policy = self.domain.policy_of(cell.index)
        return self.bound(cell) if policy and policy.mode in ("strict", "restrictive") else ()

    @property
    def bound_nodes(self) -> set[int]:
        return set[int]().union(*map(self.bound, self.memories))

    def name_of(self, cell: GuestNode) -> str:
        return f"cell {cell.index}" if self.cells else "memory"

    @cached_property
    def vcpu_of(self) -> dict[int, int]:
        """Returns the vCPU of each guest CPU. Guests first number the vCPUs enabled at boot."""
        enabled = self.domain.enabled
        order = (*enabled, *sorted(set(range(self.domain.vcpus)) - set(enabled)))
        return {cpu: order[cpu] for cpu in self.cpus if cpu < len(order)}

    @cached_property
    def seen_cells(self) -> tuple[GuestNode, ...]:
        """Returns the cells with vCPUs or memory in the guest, each with only its online vCPUs."""
        there = set(self.vcpu_of.values())
        narrowed = (
            replace(cell, vcpus=tuple(vcpu for vcpu in cell.vcpus if vcpu in there))
            for cell in self.cells
        )
        return tuple(cell for cell in narrowed if cell.vcpus or cell.memory)

    @cached_property
    def seen_nodes(self) -> dict[int, Cpus]:
        return {
            node: tuple(self.vcpu_of[cpu] for cpu in cpus if cpu in self.vcpu_of)
            for node, cpus in self.node_cpus.items()
            if cpus or node in self.node_memory
        }

    @cached_property
    def node_of_cell(self) -> dict[int, int]:
        """Returns the guest's node of each cell; empty if there are not as many nodes as cells."""
        equivalent = len(self.seen_cells) == len(self.seen_nodes)
        return _nodes_of(self.seen_cells, self.seen_nodes) if equivalent else {}


def alive_of(domain: Domain, running: Iterable[RunningDomain]) -> RunningDomain | None:
    """Returns the running domain with this name, or None. Names from cgroups may be cut."""
    wanted = _plain(domain.name)
    # Names are read from control groups: special characters may be replaced, and the end cut.
    for one in running:
        ends = wanted if len(one.name) < _LONGEST else wanted[: len(_plain(one.name))]
        if ends == _plain(one.name):
            return one
    return None


def is_same_uuid(one: str, other: str) -> bool:
    """Whether UUIDs are equal, also if firmware before SMBIOS 2.6 swapped bytes of one."""
    return other in (one, str(UUID(bytes_le=UUID(one).bytes)))


def _plain(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9]", "", name)


def _nodes_of(cells: Sequence[GuestNode], nodes: dict[int, Cpus]) -> dict[int, int]:
    """Returns the guest's node of each cell: the node that has most of the cell's vCPUs."""
    # If vCPUs don't decide: Linux numbers nodes with CPUs first, then nodes with only memory.
    ranks = sorted(cells, key=lambda cell: (not cell.vcpus, min(cell.vcpus, default=cell.index)))
    usual = {cell.index: node for cell, node in zip(ranks, sorted(nodes), strict=True)}
    shared = {
        (cell.index, node): len({*cell.vcpus}.intersection(cpus))
        for cell in cells
        for node, cpus in nodes.items()
    }
    found: dict[int, int] = {}
    for index, node in sorted(shared, key=lambda pair: (-shared[pair], usual[pair[0]] != pair[1])):
        if index not in found and node not in found.values():
            found[index] = node
    return found


class Decision(msgspec.Struct, frozen=True):
    role: Role | None
    reasons: tuple[str, ...]


def decide(
    machine: Machine,
    virtual: Virtual,
    domain: Domain | None = None,
    uuid: str | None = None,
    alive: RunningDomain | None = None,
    *,
    is_defined: bool = False,
) -> Decision:
    """Returns a machine's role, with reasons. `uuid` is in the machine's firmware. `alive` is the
    domain if it runs on the machine. `is_defined` is true if libvirt defines the domain there."""
    if alive is not None:
        return Decision("host", (f"the domain runs here (control group of {alive.name!r})",))
    if is_defined:
        return Decision("host", ("libvirt defines the domain here",))
    if domain is not None and uuid and domain.uuid and is_same_uuid(uuid, domain.uuid):
        return Decision("guest", ("the firmware has the domain's UUID",))
    host = machine.known.host
    unread = {field for gap in host.unknown for field in gap.fields}
    if host.hypervisor is None and "hypervisor" in unread:
        return Decision(None, virtual.signs)
    strange = None if domain is None else _strange(machine, virtual, domain, uuid)
    if strange is not None:
        return Decision("neither", (strange, "--as guest or --as host compares them anyway"))
    if host.hypervisor is not None:
        return Decision("guest", (f"it runs under {host.hypervisor}", *virtual.signs))
    return Decision("host", virtual.signs)


def _strange(machine: Machine, virtual: Virtual, domain: Domain, uuid: str | None) -> str | None:
    """Returns why a machine is neither the domain's host nor its guest, or None."""
    if machine.known.host.hypervisor is not None:
        if uuid and domain.uuid:
            return f"its firmware has the UUID {uuid}"
        cpus = machine.host.cpus
        is_equivalent = cpus == len(domain.enabled)
        return None if is_equivalent else f"it is virtual, shows no UUID, and has {cpus} CPUs"
    known = {function.address for function in virtual.functions or ()}
    passed = {device.source for device in domain.devices}
    is_elsewhere = known and passed and known.isdisjoint(passed)
    return "it has none of the devices that are passed through" if is_elsewhere else None


def several(count: int, what: str) -> str:
    return f"{count_of(count, what)} {'is' if count == 1 else 'are'}"


def sized(size: int) -> str:
    return approximate_size(size).replace(".0 ", " ")
