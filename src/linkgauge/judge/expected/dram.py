"""Computes host memory rates from DIMMs or else from this run's best rate on similar nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from linkgauge.model.documents.result import Result
from linkgauge.model.hardware.machine import Machine, Node
from linkgauge.model.memory import SPREAD, Memory
from linkgauge.model.transfer import Transfer

from .link_rates import ExpectedPath, Unknown, Use

DRAM_SHARE = 0.85
"""The share of the DIMMs' rate that threads reach; refresh and read-write turnarounds take the
rest. STREAM reaches 0.75 to 0.9 on servers with all channels populated."""


Path = tuple[Memory, Memory]


class Ceilings(msgspec.Struct, frozen=True):
    """The highest rates of host threads in the memory of their node, in payload bytes/s. `rates`
    maps a node and an operation to the rates of paths, on this node or a similar one."""

    rates: dict[tuple[int, str], dict[Path, float]] = {}

    def beside(self, transfer: Transfer) -> float | None:
        """Returns the best rate of other paths than the transfer's own; None if none is known."""
        own = (transfer.source, transfer.destination)
        known = self.rates.get((transfer.engine.owner.index or 0, _operation(transfer)), {})
        return max((rate for path, rate in known.items() if path != own), default=None)

    def traffic(self, node: int) -> float | None:
        """Returns a node's highest memory traffic in bytes/s. A copy is a read and a write."""
        known = ((weight, self.rates.get((node, name), {})) for name, weight in _TRAFFIC.items())
        return max((weight * rate for weight, of in known for rate in of.values()), default=None)


_TRAFFIC = {"read": 1.0, "write": 1.0, "copy": 2.0}
"""The bytes over the memory bus per byte of payload."""
_EQUIVALENT = 0.1
"""Nodes of as many CPUs, and memory within this, are assumed to have the same DIMMs."""


def measured_ceilings(results: Iterable[Result], machine: Machine) -> Ceilings:
    """Returns the highest measured rates of host memory. Leaves out sizes that fit in caches."""
    nodes = {node.index: node for node in machine.host.nodes}
    found: defaultdict[tuple[int, str], dict[Path, float]] = defaultdict(dict)
    for result in results:
        if result.backend != "host" or _cached(result.size, machine):
            continue
        for cell in result.cells:
            if cell.status != "pass" or cell.summary is None or not cell.does.is_copy:
                continue
            transfer, *others = cell.transfers
            node = transfer.engine.owner.index or 0
            is_whole = node in nodes and _is_local(transfer) and _all_cpus(transfer, machine)
            if is_whole and not others:
                own = found[node, _operation(transfer)]
                path = (transfer.source, transfer.destination)
                own[path] = max(own.get(path, 0.0), cell.summary.median)
    return Ceilings({
        (index, name): {
            path: rate
            for (other, what), rates in found.items()
            if what == name and _equivalent(nodes[index], nodes[other])
            for path, rate in rates.items()
        }
        for index, name in found
    })  # fmt: skip


def _equivalent(one: Node, other: Node) -> bool:
    sizes = one.memory_total or 0, other.memory_total or 0
    return len(one.cpus) == len(other.cpus) and min(sizes) >= (1 - _EQUIVALENT) * max(sizes)


class HostMemory:
    def __init__(self, machine: Machine, ceilings: Ceilings) -> None:
        self._machine = machine
        self._ceilings = ceilings
        details = machine.inventory.host if machine.inventory else None
        rate = details.memory_rate if details else None
        self._rate = rate / len(machine.host.nodes) if rate else None

    def reached(self, node: Memory, *, alone: bool) -> ExpectedPath:
        """Returns the use of a node's memory by a device. If `alone` is true, the device transfers
        alone, and rates measured with host threads do not limit it."""
        if self._rate is not None:
            return ExpectedPath((self._use(str(node), self._rate, 1.0),))
        traffic = self._ceilings.traffic(node.index or 0)
        if alone or traffic is None:
            return ExpectedPath()
        return ExpectedPath((_measured(str(node), traffic),))

    def knows(self, node: int) -> bool:
        return self._rate is not None or self._ceilings.traffic(node) is not None

    def by_threads(self, transfer: Transfer, size: int) -> ExpectedPath:
        """Returns the path of a transfer by host threads. Raises Unknown if no rate is known."""
        if not _is_local(transfer):
            raise Unknown("the link between the two nodes is unknown")
        if not _all_cpus(transfer, self._machine):
            raise Unknown("how much fewer threads than CPUs can move is unknown")
        if _cached(size * transfer.scale, self._machine):
            raise Unknown("data this small stays in the last-level cache")
        node, name = str(transfer.engine.owner), _operation(transfer)
        if self._rate is not None:
            loose = ("the share that threads reach varies",)
            return ExpectedPath((self._use(node, self._rate, _TRAFFIC[name]),), loose=loose)
        ceiling = self._ceilings.beside(transfer)
        if ceiling is None:
            raise Unknown("the rate of the DIMMs is unknown, and no figure of such memory is known")
        # On a machine shared with others, one run's best may be twice the usual figure.
        return ExpectedPath((_measured(node, ceiling),), loose=("it varies while others use it",))

    def _use(self, node: str, rate: float, weight: float) -> Use:
        nodes = len(self._machine.host.nodes)
        shown = "DRAM" if nodes == 1 else f"DRAM, one of {nodes} nodes"
        return Use(node, rate, shown, weight, weight / DRAM_SHARE, "reached by threads")


def _measured(name: str, rate: float) -> Use:
    shown = "the best figure of memory like this in this run"
    return Use(name, rate, shown, 0.0, 1.0, shown, measured=True)


def _operation(transfer: Transfer) -> str:
    if transfer.source.is_null:
        return "write"
    return "read" if transfer.destination.is_null else "copy"


def _is_local(transfer: Transfer) -> bool:
    owner = transfer.engine.owner
    return owner.is_host and all(
        memory.place == owner and memory.kind not in SPREAD for memory in transfer.memories
    )


def _all_cpus(transfer: Transfer, machine: Machine) -> bool:
    count = transfer.engine.count
    cpus = {node.index: len(node.cpus) for node in machine.host.nodes}
    return count is None or count >= cpus.get(transfer.engine.owner.index or 0, 0)


def _cached(size: int, machine: Machine) -> bool:
    return size <= (machine.host.last_level_cache or 0) / len(machine.host.nodes)
