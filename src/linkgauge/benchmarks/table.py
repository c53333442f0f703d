"""The parts of a table of benchmarks: rows, and the device sets over which they are laid out.

A row is data: a name, a layout and the transfers of one cell in the transfer notation, where
letters stand for memories. `Row.lay_out(fabric)` returns the Benchmark with all its cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import cache
from itertools import product
from typing import ClassVar, Literal

import msgspec

from linkgauge.model.hardware.machine import Device, Node
from linkgauge.model.memory import NULL, Memory, host
from linkgauge.model.notation import parse_memory, parse_transfers
from linkgauge.model.operations.collective import CollectiveChoice
from linkgauge.model.operations.operation import OperationName, named
from linkgauge.model.operations.workload import WorkloadChoice
from linkgauge.model.ranks import Rank
from linkgauge.model.transfer import Benchmark, Cell, Engine, EngineKind, Report, Transfer
from linkgauge.model.units import BANDWIDTH, Unit

HOST_ROW = "0"
"""The host's row in matrices is called 0, for any node."""


class DeviceSet(msgspec.Struct, frozen=True):
    """The devices over which benchmarks are laid out: the host's nodes and one backend's selected
    devices."""

    backend: str
    nodes: tuple[Node, ...]
    devices: tuple[Device, ...] = ()
    reason: str | None = None
    """The reason why there are no devices."""
    profile: str | None = None
    sizes: tuple[int, ...] = ()
    """The requested bytes, for benchmarks that have sizes of their own."""
    hosts: tuple[str, ...] = ()
    """The name of each device's host, if the devices belong to several processes and the hosts are
    known."""
    collectives: CollectiveChoice = CollectiveChoice()
    ranks: tuple[Rank, ...] = ()
    """The processes that have the devices, if there are several."""
    workloads: WorkloadChoice = WorkloadChoice()
    apart: frozenset[tuple[int, int]] = frozenset()
    """Pairs of nodes in which the first one's CPUs do not reach the memory of the second."""

    @property
    def across_ranks(self) -> bool:
        """Whether every device belongs to a different process."""
        return any(parse_memory(device.memory).rank is not None for device in self.devices)

    @property
    def full(self) -> bool:
        """Whether everything is measured, at any cost in time."""
        return self.profile == "full"

    @property
    def brief(self) -> bool:
        """Whether only a little is measured, as a first look."""
        return self.profile == "quick"

    @property
    def for_comparison(self) -> bool:
        """Whether only figures are measured that exist on every configuration of a machine, for any
        number of CPUs."""
        return self.profile == COMPARISON

    @property
    def with_cpus(self) -> tuple[Node, ...]:
        """The nodes that have CPUs which this process may use."""
        return tuple(node for node in self.nodes if node.cpus)

    @property
    def reachable(self) -> tuple[tuple[Node, Node], ...]:
        """The pairs of nodes in which the first node's CPUs can reach the second node's memory."""
        pairs = product(self.nodes, repeat=2)
        return tuple((a, b) for a, b in pairs if (a.index, b.index) not in self.apart)


Profile = Literal["quick", "standard", "full", "vm"]
GENERAL: tuple[Profile, ...] = ("quick", "standard", "full")
"""All profiles except `vm`, which lists its benchmarks itself (vm.py)."""
UNHURRIED: tuple[Profile, ...] = ("standard", "full")
"""The general profiles except the quick one."""
COMPARISON: Profile = "vm"
"""The profile that compares configurations of a machine."""
NO_CPU = "no CPU may be used"


class Layout(Enum):
    """The shape of a matrix (rows × columns), and the letters that may occur in its notation."""

    EACH_DEVICE = auto()
    """1 × N: d is the column's device, h the host node near the device of the same transfer."""
    ALL_DEVICES = auto()
    """1 × N, at least two devices: a transfer with e is repeated for every other device."""
    OTHERS = auto()
    """1 × N: like ALL_DEVICES, but a single device is measured without others."""
    PAIRS = auto()
    """N × N without the diagonal: r is the row's device, c the column's."""
    NODES = auto()
    """Node × node: r is the row's node, c the column's."""
    TOGETHER = auto()
    """1 × 1, at least two devices: a transfer is repeated for every device d. With e, it is
    repeated for every other device; o is the device half of all devices further on; p is the other
    device of a pair, where the first two devices form one pair (of an odd number, the last device
    has none)."""
    HALVES = auto()
    """N × 1, all at once: d is the row's device, e the device half of all devices further on."""


_BETWEEN_DEVICES = (Layout.PAIRS, Layout.ALL_DEVICES, Layout.TOGETHER, Layout.HALVES)
_ONE_PROCESS = "needs several processes, one for each device: mpiexec -n 2 linkgauge run {}"
_BETWEEN_HOSTS: Mapping[EngineKind, EngineKind] = {"ce": "rma", "sm": "msg"}
"""The engines that move bytes between the memories of hosts, in place of devices' engines:
one-sided accesses, which leave the other process alone, and messages, in which both take part."""


class Row(msgspec.Struct, frozen=True):
    """A benchmark whose cells are given by a notation.

    `cell` is the notation of one cell, with the layout's letters. `K` in `cell` stands for the
    engine's kind. `parts` names the matrices of single transfers; `size` is the benchmark's own
    size in bytes, or None. With `diagonal`, pairs of a device with itself are measured, too.
    `profiles` lists the profiles that measure the row if the user names no benchmark. If
    `across_ranks`, several processes measure the row, each with one device."""

    name: str
    title: str
    layout: Layout
    cell: str
    report: Report = Report.FIRST
    unit: Unit = BANDWIDTH
    operation: OperationName = "copy"
    parts: tuple[str, ...] = ()
    size: int | None = None
    diagonal: bool = False
    profiles: tuple[Profile, ...] = GENERAL
    across_ranks: bool = False

    only_by: ClassVar[str | None] = None
    ranks_with: ClassVar[tuple[str, ...]] = ()

    @property
    def on_host(self) -> bool:
        return self.layout is Layout.NODES

    @property
    def between_devices(self) -> bool:
        return self.layout in _BETWEEN_DEVICES

    def over(
        self, fabrics: Sequence[DeviceSet], of_host: Sequence[DeviceSet]
    ) -> Sequence[DeviceSet]:
        """Returns the device sets that the row covers: the backends' sets or the host's."""
        if self.across_ranks:
            return fabrics[:1]
        return of_host if self.on_host else fabrics

    def lay_out(self, fabric: DeviceSet) -> Benchmark:
        """Returns the benchmark with all cells of this row over the device set, or with the reason
        why there are no cells."""
        if self.across_ranks and not fabric.across_ranks:
            return self._benchmark(fabric.backend, (), _ONE_PROCESS.format(self.name))
        if self.on_host:
            pairs = ((host(row.index), host(column.index)) for row, column in fabric.reachable)
            return self._benchmark("host", tuple(self._pair_cell(*pair) for pair in pairs))
        least = 2 if self.between_devices and not self.diagonal else 1
        if len(fabric.devices) < least:
            reason = f"needs two devices, {fabric.backend} has {len(fabric.devices)} selected"
            return self._benchmark(fabric.backend, (), fabric.reason or reason)
        memories = [parse_memory(device.memory) for device in fabric.devices]
        match self.layout:
            case Layout.PAIRS:
                cells = self._pair_cells(memories, diagonal=self.diagonal)
            case Layout.TOGETHER:
                cells = self._cell_of_all(memories)
            case Layout.HALVES:
                cells = self._half_cells(memories)
            case _:
                cells = self._device_cells(fabric.devices)
        return self._benchmark(fabric.backend, tuple(cells))

    def _benchmark(
        self, backend: str, cells: tuple[Cell, ...], reason: str | None = None
    ) -> Benchmark:
        return Benchmark(
            self.name,
            self.title,
            backend,
            cells,
            self.unit,
            self.parts,
            pairs=self.layout is Layout.PAIRS,
            rounds=(0,) * len(cells) if self.layout is Layout.HALVES else (),
            size=self.size,
            reason=reason,
        )

    def _device_cells(self, devices: tuple[Device, ...]) -> Iterator[Cell]:
        memories = [parse_memory(device.memory) for device in devices]
        for device, memory in zip(devices, memories, strict=True):
            placed: list[Transfer] = []
            for transfer in _template(self.cell):
                if "e" in _letters(transfer):
                    # The host of a transfer is the node near its own device.
                    for other, its in zip(devices, memories, strict=True):
                        if its is not memory:
                            places = {"h": host(other.near), "d": memory, "e": its}
                            placed.append(_place(transfer, places))
                else:
                    placed.append(_place(transfer, {"h": host(device.near), "d": memory}))
            yield self._cell(HOST_ROW, memory.label, placed)

    def _pair_cells(self, memories: Sequence[Memory], *, diagonal: bool) -> Iterator[Cell]:
        for row, column in product(memories, repeat=2):
            if row != column or diagonal:
                yield self._pair_cell(row, column)

    def _pair_cell(self, row: Memory, column: Memory) -> Cell:
        places = {"r": row, "c": column}
        placed = [_place(transfer, places) for transfer in _template(self.cell)]
        return self._cell(row.label, column.label, placed)

    def _cell_of_all(self, memories: Sequence[Memory]) -> Iterator[Cell]:
        placed = [
            _place(transfer, places)
            for at in range(len(memories))
            for transfer in _template(self.cell)
            for places in _partners(memories, at, _letters(transfer))
        ]
        yield self._cell(HOST_ROW, HOST_ROW, placed)

    def _half_cells(self, memories: Sequence[Memory]) -> Iterator[Cell]:
        for number, memory in enumerate(memories):
            other = _opposite(memories, number)
            placed = [_place(one, {"d": memory, "e": other}) for one in _template(self.cell)]
            yield self._cell(f"{memory.label}->{other.label}", HOST_ROW, placed)

    def _cell(self, row: str, column: str, transfers: Sequence[Transfer]) -> Cell:
        if named(self.operation).by_flags:
            transfers = tuple(map(_by_flags, transfers))
        return Cell(row, column, tuple(transfers), self.report, operation=self.operation)


class Sweep(msgspec.Struct, frozen=True):
    """A benchmark whose columns are not memories. `cells` computes the cells from the device set.
    `size` is the benchmark's own size in bytes, if there is one. `reason` says why there are no
    cells. `left_out` ends the title if only some of the possible cells are measured."""

    name: str
    title: str
    cells: Callable[[DeviceSet], Iterator[Cell]]
    unit: Unit = BANDWIDTH
    size: int | Callable[[DeviceSet], int] | None = None
    reason: str | None = None
    profiles: tuple[Profile, ...] = GENERAL
    left_out: Callable[[DeviceSet], str] | None = None

    on_host: ClassVar[bool] = True
    between_devices: ClassVar[bool] = False
    across_ranks: ClassVar[bool] = False
    only_by: ClassVar[str | None] = None
    """The only backend that measures the sweep; this backend is opened for the sweep."""

    @property
    def ranks_with(self) -> tuple[str, ...]:
        """The backends that ranks open for the sweep, or an empty tuple if any backend will do."""
        return ()

    def over(
        self, fabrics: Sequence[DeviceSet], of_host: Sequence[DeviceSet]
    ) -> Sequence[DeviceSet]:
        """Returns the device sets that the sweep covers: the backends' sets or the host's."""
        return of_host if self.on_host else fabrics

    def lay_out(self, fabric: DeviceSet) -> Benchmark:
        cells = tuple(self.cells(fabric))
        title = self.title + (self.left_out(fabric) if self.left_out else "")
        size = self.size(fabric) if callable(self.size) else self.size
        reason = None if cells else self.reason
        named = self.name, title, "host"
        return Benchmark(*named, cells, self.unit, sweep=True, size=size, reason=reason)


def _by_flags(transfer: Transfer) -> Transfer:
    """Returns the transfer for flags. Between hosts the engine is `rma`, because a side stores
    flags without help from the other side."""
    owner = transfer.engine.owner
    return transfer.by(Engine(owner, "rma")) if owner.is_host else transfer


@cache
def _template(cell: str) -> tuple[Transfer, ...]:
    """Returns the transfers of a row's notation, with placeholders for the letters. The placeholder
    of a letter is a memory whose index is the letter's code. The memory is the host's if only the
    host has the engine."""

    def memory(letter: re.Match[str]) -> str:
        on_host = letter[0] == "h" or ".cpu" in cell
        return f"{'host' if on_host else letter[0]}:{ord(letter[0])}"

    return parse_transfers(re.sub(r"\b[a-z]\b", memory, cell))


def _letters(transfer: Transfer) -> set[str]:
    return {chr(memory.index or 0) for memory in (*transfer.memories, transfer.engine.owner)}


def _opposite(memories: Sequence[Memory], at: int) -> Memory:
    return memories[(at + len(memories) // 2) % len(memories)]


def _partners(
    memories: Sequence[Memory], at: int, letters: set[str]
) -> Iterator[Mapping[str, Memory]]:
    """Yields the memories for the letters of a transfer, where d is the memory at index `at`. The
    partners of d begin with the next memory. Kernels of one device run in this order, so kernels of
    different devices do not all meet at one partner."""
    own = memories[at]
    if "o" in letters:
        yield {"d": own, "o": _opposite(memories, at)}
    elif "p" in letters:
        yield from ({"d": own, "p": other} for other in memories[at ^ 1 : (at ^ 1) + 1])
    else:
        yield from ({"d": own, "e": other} for other in (*memories[at + 1 :], *memories[:at]))


def _place(transfer: Transfer, places: Mapping[str, Memory]) -> Transfer:
    """Returns the transfer with each letter replaced by its memory."""

    def at(letter: Memory) -> Memory:
        if letter.is_null:
            return NULL
        place = places[chr(letter.index or 0)]
        return Memory(place.space, place.index, letter.kind, place.rank)

    placed = transfer.placed(at)
    engine = placed.engine
    if engine.owner.is_host and engine.kind in _BETWEEN_HOSTS:
        return placed.by(Engine(engine.owner, _BETWEEN_HOSTS[engine.kind]))
    return placed
