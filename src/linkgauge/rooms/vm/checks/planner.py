"""Plans where vCPUs and memory go. Changes only settings with a finding. Uses the devices' nodes
first. With enough cores, leaves a core of each node to the emulator, IO threads and the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from linkgauge.model.hardware.virtual import Cpus
from linkgauge.rooms.vm.domain import CpuTopology, GuestNode, MemoryPolicy

from .comparison import DomainEvidence

_GIB, _MIB = 1 << 30, 1 << 20
_USABLE = 0.95
"""The share of a node's memory that a domain may fill: the host's kernel has the rest."""
_EMULATOR = 2
"""CPUs of a node for the emulator, where no whole core is left."""


_PIN_CHECKS = frozenset({
    "pinned-cpus", "unpinned", "pins-across", "pins-shared", "pins-taken", "pin-threads",
    "device-far", "cells-hidden", "topology-product", "cell-list",
})  # fmt: skip
_MEMORY_CHECKS = frozenset({"memory-node", "memory-unbound", "memory-remote", "memory-size"})
PLACEMENT = _PIN_CHECKS | _MEMORY_CHECKS | {
    "emulator", "huge-pages-none", "device-node", "cell-spans",
}  # fmt: skip


class Suited(msgspec.Struct, frozen=True, kw_only=True):
    """A placement. `emulator` has the CPUs of all threads other than vCPUs. `nodes` has the host
    nodes of each cell, or of cell 0 if the domain has no cells; if empty, memory stays where it is.
    `page_size` is in bytes; None means that the page size stays."""

    pins: dict[int, Cpus]
    emulator: Cpus
    topology: CpuTopology | None
    cells: tuple[GuestNode, ...]
    nodes: dict[int, Cpus]
    device_cells: dict[str, int]
    page_size: int | None = None


def suited(case: DomainEvidence, found: Collection[str]) -> Suited | None:
    """Returns a placement that mends the checks in `found`, or None if the host is too small."""
    keeps_memory = (_PIN_CHECKS | _MEMORY_CHECKS).isdisjoint(found)
    chosen = _kept(case, keeps_memory) if _PIN_CHECKS.isdisjoint(found) else None
    if chosen is None or not {*chain(*chosen.pins.values())}.isdisjoint(chosen.emulator):
        chosen = _plan(case) or (None if "emulator" in found else chosen)
    if chosen is None:
        return None
    if "huge-pages-none" in found:
        chosen = replace(chosen, page_size=_page_size(case, chosen))
    is_free = case.domain.policy is None and not case.domain.cell_policies
    if keeps_memory or (is_free and len(case.node_memory) < 2):
        chosen = replace(chosen, nodes={})
    return chosen


def applied(case: DomainEvidence, chosen: Suited) -> DomainEvidence:
    """Returns the evidence as if the placement were applied, except to devices and pages."""
    policies = {cell: MemoryPolicy("strict", at) for cell, at in chosen.nodes.items()}
    own, first = policies or case.domain.cell_policies, next(iter(policies.values()), None)
    domain = replace(
        case.domain, automatic=False, cpuset=None, vcpu_pins=chosen.pins, cells=chosen.cells,
        emulator_pin=chosen.emulator, iothread_pins={}, topology=chosen.topology,
        policy=first or case.domain.policy, cell_policies=own if chosen.cells else {},
    )  # fmt: skip
    return replace(case, domain=domain)


def cost(case: DomainEvidence) -> tuple[int, int, int, float]:
    """Rates a placement (less is better) by the number of vCPUs that no CPU can run, that share a
    CPU, and that span nodes, then by the distance from vCPUs to memory and devices."""
    domain, online, taken = case.domain, set(case.cpus), set[int]()
    own = [domain.pin_of(vcpu) for vcpu in range(domain.vcpus)]
    pins = [online if pin is None else online.intersection(pin) for pin in own]
    for pin in sorted(pins, key=len):
        taken |= {*sorted(pin - taken)[:1]}
    wide = sum(len({case.node_of.get(cpu) for cpu in pin}) > 1 for pin in pins)
    cells = [cell for cell in case.memories if cell.vcpus]
    ways = [(cell.vcpus, case.bound(cell) or tuple(case.node_memory)) for cell in cells]
    homes = (case.node_of_device(device.source) for device in domain.devices)
    devices = [(range(domain.vcpus), (home,)) for home in homes if home is not None]
    shares = [len(at) / domain.vcpus for at, _ in ways] + [1 / len(devices) for _ in devices]
    far = (case.remote(at, nodes) for at, nodes in (*ways, *devices))
    distance = sum(of * (1 + part * (n - 1)) for of, (part, n) in zip(shares, far, strict=True))
    return sum(not pin for pin in pins), len(pins) - len(taken), wide, round(distance, 6)


def _kept(case: DomainEvidence, keeps_memory: bool) -> Suited | None:
    domain = case.domain
    pins = {vcpu: pin for vcpu in range(domain.vcpus) if (pin := domain.pin_of(vcpu))}
    cells = case.memories
    nodes = {cell.index: tuple(sorted(case.nodes_of(cell.vcpus))) for cell in cells}
    alone = {at[0]: cell for at, cell in zip(nodes.values(), cells, strict=True) if len(at) == 1}
    if not pins or not (keeps_memory or (len(alone) == len(cells) and _holds(case, alone))):
        return None
    topology = domain.topology
    if topology is not None and not topology.suits(case.cells):
        topology = topology.fitted(case.cells)
        if topology is None:
            return None
    taken = {*chain(*pins.values())}
    emulator = domain.emulator_pin
    if emulator is None or not taken.isdisjoint(emulator):
        emulator = _beside(case, sorted({*chain(*nodes.values())}), taken)
    return Suited(
        pins=pins, emulator=emulator, topology=topology, cells=case.cells, nodes=nodes,
        device_cells=_device_cells(case, nodes),
    )  # fmt: skip


def _page_size(case: DomainEvidence, chosen: Suited) -> int | None:
    """Returns the largest page size with enough pages, else 2 MiB, or None without 2 MiB pages."""
    whole = case.domain.bytes or 0
    shares = {cell.index: cell.memory for cell in chosen.cells} or {0: whole}
    for size in sorted(case.host.huge_pages, reverse=True):
        pools = {
            cell: sum(case.node_pages(node, size)[0] for node in nodes) * size
            for cell, nodes in chosen.nodes.items()
        }
        if all(share % size == 0 and share <= pools.get(cell, 0) for cell, share in shares.items()):
            return size
    return 2 * _MIB if 2 * _MIB in case.host.huge_pages else None


def _plan(case: DomainEvidence) -> Suited | None:
    planner = _Planner(case)
    for nodes in map(sorted, planner.choices()):
        for grain in planner.grains(nodes):
            cells = planner.cells(nodes, grain)
            if cells and _holds(case, dict(zip(nodes, cells, strict=True))):
                return planner.placed(nodes, cells, grain)
    return None


class _Grain(NamedTuple):
    """A guest core uses `threads` CPUs of one host core or, unless `whole`, any CPU.
    Each node keeps `spared` cores free."""

    threads: int
    whole: bool
    spared: int


def _holds(case: DomainEvidence, cells: Mapping[int, GuestNode]) -> bool:
    sizes = case.node_memory
    return all(
        cell.memory <= size * _USABLE
        for node, cell in cells.items()
        if (size := sizes.get(node)) is not None
    )


def _beside(case: DomainEvidence, homes: Sequence[int], taken: Collection[int]) -> Cpus:
    spare = [[c for core in _cores(case, node) for c in core if c not in taken] for node in homes]
    free = [cpu for cpus in spare for cpu in cpus[:_EMULATOR]]
    left = [cpu for cpu in case.cpus if cpu not in taken][:_EMULATOR]
    everywhere = [cpu for node in homes for cpu in case.node_cpus.get(node, ())]
    return tuple(sorted(free or left or everywhere))


def _device_cells(case: DomainEvidence, nodes: Mapping[int, Cpus]) -> dict[str, int]:
    if len(nodes) < 2:
        return {}
    cell_at = {node: cell for cell, at in reversed([*nodes.items()]) for node in at}
    homes = {one.source: case.node_of_device(one.source) for one in case.domain.devices}
    return {source: cell_at[node] for source, node in homes.items() if node in cell_at}


def _cores(case: DomainEvidence, node: int) -> list[Cpus]:
    cpus = set(case.node_cpus.get(node, ())) - case.taken
    siblings = case.virtual.siblings
    cores = {tuple(sorted(cpus.intersection(siblings.get(cpu, (cpu,))))) for cpu in cpus}
    return sorted(core for core in cores if core)


class _Planner:
    def __init__(self, case: DomainEvidence) -> None:
        self._case, self._domain = case, case.domain
        self._cores = {node: _cores(case, node) for node in case.node_cpus}
        self._nodes = [n for n, cores in self._cores.items() if cores and n in case.node_memory]

    def choices(self) -> Iterator[list[int]]:
        homes = self._homes()[: self._domain.vcpus]
        first = homes or self._nodes[:1]
        others = sorted(set(self._nodes) - {*first}, key=lambda node: self._far(first, node))
        cells = len(self._case.cells)
        if cells > max(1, len(first)):
            yield (first + others)[:cells]
        if not homes:
            yield from ([node] for node in self._nodes)
        for more in range(len(others) + 1):
            yield first + others[:more]

    def _homes(self) -> list[int]:
        case = self._case
        known = [case.node_of_device(device.source) for device in case.domain.devices]
        if not any(node is not None for node in known):
            pinned = sorted(case.nodes_of(range(case.domain.vcpus)) & {*self._nodes})
            return pinned if len(pinned) <= max(1, len(case.cells)) else []
        near = (self._near(node) for node in known if node is not None)
        counts = Counter(node for node in near if node is not None)
        return sorted(counts, key=lambda node: (-counts[node], node))

    def _near(self, node: int) -> int | None:
        return min(self._nodes, key=lambda other: self._far([node], other), default=None)

    def _far(self, homes: Sequence[int], node: int) -> tuple[int, int]:
        rows = (self._case.distances.get(home, {}) for home in homes)
        return 0 if node in homes else min(row.get(node, 255) for row in rows), node

    def grains(self, nodes: Sequence[int]) -> Iterator[_Grain]:
        most = max((len(core) for node in nodes for core in self._cores[node]), default=1)
        topology = self._domain.topology
        for threads in dict.fromkeys((topology.threads if topology else most, most, 1)):
            if threads <= most and self._domain.vcpus % threads == 0:
                yield from (_Grain(threads, True, spared) for spared in (1, 0))
        yield from (_Grain(1, False, spared) for spared in (1, 0))

    def cells(self, nodes: Sequence[int], grain: _Grain) -> list[GuestNode] | None:
        """Returns a cell for each node: the domain's own cells if it has as many, else new cells of
        about equal size. Returns None if the nodes lack cores."""
        room = [len(self._given(node, grain)) for node in nodes]
        own, threads = self._case.cells, grain.threads
        numbers = [cell.index for cell in own]
        listed = sorted(vcpu for cell in own for vcpu in cell.vcpus)
        is_sound = (numbers, listed) == ([*range(len(own))], [*range(self._domain.vcpus)])
        if len(own) == len(nodes) and is_sound and all(cell.vcpus for cell in own):
            cells = self._ordered(nodes)
            needs = [len({vcpu // threads for vcpu in cell.vcpus}) for cell in cells]
            pairs = zip(needs, room, cells, strict=True)
            fits = all(need <= most and need * threads == len(c.vcpus) for need, most, c in pairs)
            return cells if fits else None
        units = self._domain.vcpus // threads
        counts = [units // len(nodes) + (n < units % len(nodes)) for n in range(len(nodes))]
        counts = [min(count, most) for count, most in zip(counts, room, strict=True)]
        for place, most in enumerate(room):
            counts[place] += min(units - sum(counts), most - counts[place])
        if sum(counts) < units or not all(counts):
            return None
        return self._made(nodes, [count * threads for count in counts])

    def _given(self, node: int, grain: _Grain) -> list[Cpus]:
        cores = self._cores[node][grain.spared :]
        if not grain.whole:
            return [(cpu,) for core in cores for cpu in core]
        return [core[: grain.threads] for core in cores if len(core) >= grain.threads]

    def _ordered(self, nodes: Sequence[int]) -> list[GuestNode]:
        case, votes = self._case, Counter[tuple[int, int]]()
        for device in case.domain.devices:
            index, home = case.domain.cell_of(device), case.node_of_device(device.source)
            if index is not None and home is not None:
                votes[index, home] += 100
        for cell in case.cells:
            homes = (*case.bound(cell), *case.nodes_of(cell.vcpus))
            votes.update((cell.index, node) for node in homes)
        left = {cell.index: cell for cell in case.cells}
        found: dict[int, GuestNode] = {}
        for (index, node), _ in votes.most_common():
            if index in left and node in nodes and node not in found:
                found[node] = left.pop(index)
        rest = iter(left.values())
        return [found[node] if node in found else next(rest) for node in nodes]

    def _made(self, nodes: Sequence[int], counts: Sequence[int]) -> list[GuestNode]:
        """Makes cells whose memory is in proportion to their vCPUs, if possible in whole GiB."""
        total, vcpus = self._domain.bytes or 0, self._domain.vcpus
        unit = _GIB if total % _GIB == 0 and total // _GIB >= len(counts) else 2 * _MIB
        shares = [total * count // vcpus // unit * unit for count in counts]
        shares[0] = total - sum(shares[1:])
        made, ends = list[GuestNode](), [*accumulate(counts)]
        for index, (end, count, share) in enumerate(zip(ends, counts, shares, strict=True)):
            row = self._case.distances.get(nodes[index], {}) if len(nodes) > 1 else {}
            far = {other: row[node] for other, node in enumerate(nodes) if node in row}
            made.append(GuestNode(index, tuple(range(end - count, end)), share, far))
        return made

    def placed(self, nodes: Sequence[int], cells: Sequence[GuestNode], grain: _Grain) -> Suited:
        case = self._case
        pins: dict[int, Cpus] = {}
        at: dict[int, Cpus] = {}
        for node, cell in zip(nodes, cells, strict=True):
            cpus = (cpu for core in self._given(node, grain) for cpu in core)
            pins |= {vcpu: (cpu,) for vcpu, cpu in zip(cell.vcpus, cpus, strict=False)}
            at[cell.index] = (node,)
        taken = {*chain(*pins.values())}
        spare = {
            cpu for node in nodes for core in self._cores[node][: grain.spared] for cpu in core
        }
        shown = sorted(cells, key=lambda cell: cell.index)
        return Suited(
            pins=dict(sorted(pins.items())),
            emulator=tuple(sorted(spare)) or _beside(case, nodes, taken),
            topology=self._topology(cells, grain.threads),
            cells=tuple(shown) if len(cells) > 1 or case.cells else (),
            nodes=dict(sorted(at.items())),
            device_cells=_device_cells(case, at),
        )

    def _topology(self, cells: Sequence[GuestNode], threads: int) -> CpuTopology:
        own, vcpus = self._domain.topology, self._domain.vcpus
        if own and (own.threads, own.vcpus) == (threads, vcpus) and own.suits(cells):
            return own
        whole = CpuTopology(cores=vcpus // threads, threads=threads)
        return whole.fitted(cells) or whole
