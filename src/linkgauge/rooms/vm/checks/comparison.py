"""What the checks of a virtual machine read: a domain beside a machine, its guest or its host, and
which of the two it is by what its files show."""

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

    @property
    def again(self) -> tuple[str, ...]:
        """How a definition takes effect in the guest."""
        shown = f"virsh dumpxml {self.name}  # as it runs; with --inactive, as it will start"
        return ("# On the host:", shown, *restarted(self.name))

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
        vcpus, there = range(self.domain.vcpus), set(self.cpus)
        pins = {vcpu: pin for vcpu in vcpus if (pin := self.domain.pin_of(vcpu))}
        lists = {id(pin): pin for pin in pins.values()}
        narrow = {key for key, pin in lists.items() if not there.issubset(pin)}
        return {vcpu: pin for vcpu, pin in pins.items() if id(pin) in narrow}

    @cached_property
    def exact(self) -> dict[int, int]:
        """The vCPUs that are pinned to a single CPU, with it."""
        return {vcpu: pin[0] for vcpu, pin in self.pins.items() if len(pin) == 1}

    @property
    def runs(self) -> bool:
        """Whether the domain runs, by the machine's files or by its own definition."""
        return self.alive is not None or self.domain.running

    def nodes_at(self, cpus: Iterable[int]) -> set[int]:
        """The host's nodes of these CPUs, as far as they are online."""
        return {self.node_of[cpu] for cpu in cpus if cpu in self.node_of}

    def nodes_of(self, vcpus: Iterable[int]) -> set[int]:
        """The host's nodes that those of these vCPUs may run on that are pinned."""
        pins = {id(pin): pin for vcpu in vcpus if (pin := self.pins.get(vcpu))}
        return self.nodes_at(set[int]().union(*pins.values()))

    def sure_nodes_of(self, vcpus: Iterable[int]) -> set[int]:
        """The same; none if one of the vCPUs is not pinned."""
        vcpus = tuple(vcpus)
        return self.nodes_of(vcpus) if all(vcpu in self.pins for vcpu in vcpus) else set()

    @cached_property
    def distances(self) -> dict[int, dict[int, int]]:
        """The firmware's distances of each node that it has them of, by the other node."""
        table = self.host.distances
        return {node: dict(zip(table, row, strict=False)) for node, row in table.items()}

    def distance(self, node: int, other: int) -> int:
        """By the firmware's table; where it has none, Linux's own 10 and 20."""
        known = self.distances.get(node, {}).get(other)
        return known or (_LOCAL if node == other else _REMOTE)

    def remote(self, vcpus: Iterable[int], nodes: Collection[int]) -> tuple[float, float]:
        """The remote share of these vCPUs' accesses to memory that is spread evenly over nodes, and
        their distance as a multiple of the local one (0: none is remote)."""
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
        """The domain's cells as libvirt makes them: the first has the vCPUs that no cell lists."""
        listed = {vcpu for cell in self.domain.cells for vcpu in cell.vcpus}
        left = [vcpu for vcpu in range(self.domain.vcpus) if vcpu not in listed]
        first = self.domain.cells[:1]
        filled = [replace(cell, vcpus=tuple(sorted({*cell.vcpus, *left}))) for cell in first]
        return (*filled, *self.domain.cells[1:])

    @cached_property
    def memories(self) -> tuple[GuestNode, ...]:
        """The domain's cells; of a domain without any, all of it as one."""
        domain = self.domain
        whole = GuestNode(0, tuple(range(domain.vcpus)), domain.bytes or 0)
        return self.cells or (whole,)

    def bound(self, cell: GuestNode) -> Cpus:
        """The host's nodes that the memory of a cell is bound to; none if it is not bound."""
        policy = self.domain.policy_of(cell.index)
        return (policy and policy.nodes) or ()

    def strictly_bound(self, cell: GuestNode) -> Cpus:
        """The host's nodes that alone give the memory of a cell; none if others may."""
        policy = self.domain.policy_of(cell.index)
        return self.bound(cell) if policy and policy.mode in ("strict", "restrictive") else ()

    @property
    def bound_nodes(self) -> set[int]:
        """The host's nodes that any of the memory is bound to."""
        return set[int]().union(*map(self.bound, self.memories))

    def name_of(self, cell: GuestNode) -> str:
        return f"cell {cell.index}" if self.cells else "memory"

    @cached_property
    def vcpu_of(self) -> dict[int, int]:
        """The vCPU of each CPU that the guest has online. Linux numbers CPUs as QEMU's firmware
        lists them: those there at the start, then those that may be added."""
        enabled = self.domain.enabled
        order = (*enabled, *sorted(set(range(self.domain.vcpus)) - set(enabled)))
        return {cpu: order[cpu] for cpu in self.cpus if cpu < len(order)}

    @cached_property
    def seen_cells(self) -> tuple[GuestNode, ...]:
        """The cells that the guest can see, without what has neither CPUs nor memory: cells for a
        device's own (generic initiators)."""
        there = set(self.vcpu_of.values())
        narrowed = (
            replace(cell, vcpus=tuple(vcpu for vcpu in cell.vcpus if vcpu in there))
            for cell in self.cells
        )
        return tuple(cell for cell in narrowed if cell.vcpus or cell.memory)

    @cached_property
    def seen_nodes(self) -> dict[int, Cpus]:
        """The vCPUs of each of the guest's nodes."""
        return {
            node: tuple(self.vcpu_of[cpu] for cpu in cpus if cpu in self.vcpu_of)
            for node, cpus in self.node_cpus.items()
            if cpus or node in self.node_memory
        }

    @cached_property
    def node_of_cell(self) -> dict[int, int]:
        """The guest's node of each cell; none if there are more or fewer nodes than cells."""
        alike = len(self.seen_cells) == len(self.seen_nodes)
        return _nodes_of(self.seen_cells, self.seen_nodes) if alike else {}


def alive_of(domain: Domain, running: Iterable[RunningDomain]) -> RunningDomain | None:
    """The domain among those that run. Control groups keep only letters and digits of its name for
    certain, and cut a long one."""
    wanted = _plain(domain.name)
    for one in running:
        ends = wanted if len(one.name) < _LONGEST else wanted[: len(_plain(one.name))]
        if ends == _plain(one.name):
            return one
    return None


def is_same_uuid(one: str, other: str) -> bool:
    """Whether two UUIDs are the same, also if the first three fields of one have their bytes in the
    order of SMBIOS before 2.6."""
    return other in (one, str(UUID(bytes_le=UUID(one).bytes)))


def _plain(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9]", "", name)


def _nodes_of(cells: Sequence[GuestNode], nodes: dict[int, Cpus]) -> dict[int, int]:
    """The guest's node of each cell; `nodes` are the vCPUs of each node, as many as the cells.

    A node is recognized by the vCPUs that it shares with a cell; without any, by its number: Linux
    numbers nodes in the order in which the firmware's table names them, which is that of the CPUs,
    then that of memory.
    """
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
    """Which side of a virtual machine this is (null: nothing shows it), and the `reasons`."""

    role: Role | None
    reasons: tuple[str, ...]


def decide(
    machine: Machine,
    virtual: Virtual,
    domain: Domain | None = None,
    uuid: str | None = None,
    alive: RunningDomain | None = None,
) -> Decision:
    """The surest evidence first: a domain that runs here makes a host also of a virtual machine
    (nested), and the domain's own UUID in the firmware makes a guest of what hides its
    hypervisor."""
    if alive is not None:
        return Decision("host", (f"the domain runs here (control group of {alive.name!r})",))
    if domain is not None and uuid and domain.uuid and is_same_uuid(uuid, domain.uuid):
        return Decision("guest", ("the firmware has the domain's UUID",))
    host = machine.known.host
    unread = {field for gap in host.unknown for field in gap.fields}
    if host.hypervisor is None and "hypervisor" in unread:
        return Decision(None, virtual.signs)
    if host.hypervisor is not None:
        return Decision("guest", (f"it runs under {host.hypervisor}", *virtual.signs))
    return Decision("host", virtual.signs)


def several(count: int, what: str) -> str:
    """`1 vCPU is`, `2 vCPUs are`."""
    return f"{count_of(count, what)} {'is' if count == 1 else 'are'}"


def sized(size: int) -> str:
    """A size to one decimal, without one where it is exact: 16 GiB, 15.6 GiB."""
    return approximate_size(size).replace(".0 ", " ")
