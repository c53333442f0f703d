"""Benchmarks as data. Transfers are text, in which letters stand for memories."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import cache
from itertools import product
from typing import ClassVar, Literal

import msgspec

from linkgauge.model.errors import InputError
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
"""The label of the host's row in a matrix, for any NUMA node."""
MOST_PAIRS = 1_000_000
"""The most pairs of devices of a benchmark. More would not fit in the memory of a usual host."""


class DeviceSet(msgspec.Struct, frozen=True):
    """The devices (all of one backend) and the host nodes that a benchmark can use."""

    backend: str
    nodes: tuple[Node, ...]
    devices: tuple[Device, ...] = ()
    reason: str | None = None
    """The reason why there are no devices."""
    profile: str | None = None
    sizes: tuple[int, ...] = ()
    """The sizes in bytes that the user chose. They apply to benchmarks that measure several
    sizes."""
    hosts: tuple[str, ...] = ()
    """The name of each device's host, if the devices belong to several processes and the hosts are
    known."""
    collectives: CollectiveChoice = CollectiveChoice()
    ranks: tuple[Rank, ...] = ()
    """The processes of the run, if there are several."""
    workloads: WorkloadChoice = WorkloadChoice()
    separate: frozenset[tuple[int, int]] = frozenset()
    """Pairs of nodes: CPUs of the first node do not reach memory of the second."""
    buffer: int | None = None
    """The bytes of each buffer in a first look at a host, found by measuring; null if unknown."""

    @property
    def across_ranks(self) -> bool:
        return any(parse_memory(device.memory).rank is not None for device in self.devices)

    @property
    def full(self) -> bool:
        return self.profile == "full"

    @property
    def brief(self) -> bool:
        return self.profile == "quick"

    @property
    def is_first_look(self) -> bool:
        return self.profile == FIRST_LOOK

    @property
    def for_comparison(self) -> bool:
        return self.profile == COMPARISON

    @property
    def with_cpus(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.cpus)

    @property
    def memories(self) -> list[Memory]:
        return [parse_memory(device.memory) for device in self.devices]

    @property
    def with_near(self) -> list[tuple[Memory, Memory]]:
        return [(parse_memory(device.memory), host(device.near)) for device in self.devices]

    @property
    def reachable(self) -> tuple[tuple[Node, Node], ...]:
        pairs = product(self.nodes, repeat=2)
        return tuple((a, b) for a, b in pairs if (a.index, b.index) not in self.separate)


Profile = Literal["quick", "standard", "full", "vm", "first-look"]
GENERAL: tuple[Profile, ...] = ("quick", "standard", "full")
"""All profiles except `vm`. Its benchmarks are listed in vm.py."""
UNHURRIED: tuple[Profile, ...] = ("standard", "full")
"""The general profiles except the quick one."""
COMPARISON: Profile = "vm"
"""The profile that compares configurations of a machine."""
FIRST_LOOK: Profile = "first-look"
"""What the quick profile measures of a host that has nothing else to measure: the few figures that
people ask for first."""
NO_CPU = "no CPU may be used"
FLAG_BYTES = 256
"""The size in bytes of two flags that share no cache line."""


def counts_up_to(most: int) -> tuple[int, ...]:
    """Returns the powers of two up to a number, and the number: 1, 2, 4, 6 for 6; () for 0."""
    powers = [1 << step for step in range(most.bit_length()) if 1 << step <= most]
    return tuple(dict.fromkeys((*powers, most))) if most else ()


class Layout(Enum):
    """The shape of a matrix (rows × columns), and the letters that its cells' text may contain."""

    EACH_DEVICE = auto()
    """1 × N: d is the column's device, and h the host node near this device."""
    ALL_DEVICES = auto()
    """1 × N, for at least two devices: d is the column's device. A transfer whose text has e is
    repeated, with e as each of the other devices."""
    OTHERS = auto()
    """1 × N: as ALL_DEVICES, but a machine with one device is measured, too."""
    PAIRS = auto()
    """N × N without the diagonal: r is the row's device, c the column's."""
    NODES = auto()
    """Node × node: r is the row's node, c the column's."""
    TOGETHER = auto()
    """1 × 1, for at least two devices: a transfer is repeated for every device d and, if its text
    has e, for each other device e. The letter o is the device N/2 places after d. The letter p is
    the partner of d: the first two devices are a pair, the next two another."""
    HALVES = auto()
    """N × 1, all cells at once: d is the row's device, and e the device N/2 places after d."""


_BETWEEN_DEVICES = (Layout.PAIRS, Layout.ALL_DEVICES, Layout.TOGETHER, Layout.HALVES)
_ONE_PROCESS = "needs several processes, one for each device: mpiexec -n 2 linkgauge run {}"
_BETWEEN_HOSTS: Mapping[EngineKind, EngineKind] = {"ce": "rma", "sm": "msg"}
"""The engines between hosts, by the device engine that they replace. `rma` is a one-sided access,
in which the other process takes no part. `msg` is a message."""


class Row(msgspec.Struct, frozen=True):
    """A benchmark that is a matrix. `cell` is the text of every cell's transfers, with the layout's
    letters for memories. `parts` names further matrices, which show one of these transfers each.
    `size` is in bytes. If `diagonal` is true, devices are also paired with themselves."""

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

    @property
    def uses_all_pairs(self) -> bool:
        others = any("e" in _letters(one) for one in _template(self.cell))
        return self.layout is Layout.PAIRS or (others and self.layout is not Layout.HALVES)

    @property
    def is_of_many(self) -> bool:
        """Whether cells cover all pairs of devices, or many devices are measured at once."""
        return self.between_devices or self.uses_all_pairs

    def over(
        self, fabrics: Sequence[DeviceSet], of_host: Sequence[DeviceSet]
    ) -> Sequence[DeviceSet]:
        if self.across_ranks:
            return fabrics[:1]
        return of_host if self.on_host else fabrics

    def lay_out(self, fabric: DeviceSet) -> Benchmark:
        """Returns the benchmark with its cells. Raises InputError for too many pairs of devices."""
        if self.across_ranks and not fabric.across_ranks:
            return self._benchmark(fabric.backend, (), _ONE_PROCESS.format(self.name))
        if self.on_host:
            pairs = ((host(row.index), host(column.index)) for row, column in fabric.reachable)
            return self._benchmark("host", tuple(self._pair_cell(*pair) for pair in pairs))
        least = 2 if self.between_devices and not self.diagonal else 1
        if len(fabric.devices) < least:
            reason = f"needs two devices; of {fabric.backend}, {len(fabric.devices)} is selected"
            return self._benchmark(fabric.backend, (), fabric.reason or reason)
        all_pairs = len(fabric.devices) ** 2
        if all_pairs > MOST_PAIRS and self.uses_all_pairs:
            raise InputError(
                f"{self.name}: {len(fabric.devices):,} devices are {all_pairs:,} pairs, more "
                "than a run can hold: choose benchmarks without them, such as --prefix nodes_"
            )
        match self.layout:
            case Layout.PAIRS:
                cells = self._pair_cells(fabric.memories)
            case Layout.TOGETHER:
                cells = self._cell_of_all(fabric.memories)
            case Layout.HALVES:
                cells = self._half_cells(fabric.memories)
            case _:
                cells = self._device_cells(fabric.with_near)
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

    def _device_cells(self, devices: Sequence[tuple[Memory, Memory]]) -> Iterator[Cell]:
        def others(memory: Memory) -> Iterator[dict[str, Memory]]:
            # The host of a transfer is the node near its own device.
            return ({"h": its, "d": memory, "e": e} for e, its in devices if e is not memory)

        for memory, near in devices:
            own = ({"h": near, "d": memory},)
            placed = [
                _place(transfer, places)
                for transfer in _template(self.cell)
                for places in (others(memory) if "e" in _letters(transfer) else own)
            ]
            yield self._cell(HOST_ROW, memory.label, placed)

    def _pair_cells(self, memories: Sequence[Memory]) -> Iterator[Cell]:
        for row, column in product(memories, repeat=2):
            if row != column or self.diagonal:
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
    """A benchmark whose columns are, for example, sizes or numbers of threads. `size` is in bytes.
    `reason` is shown if there are no cells. `left_out` returns text to append to the title."""

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
    """The only backend that measures this benchmark. None stands for all backends."""

    @property
    def ranks_with(self) -> tuple[str, ...]:
        """The backends that the processes of a run must open; empty if any backend will do."""
        return ()

    def over(
        self, fabrics: Sequence[DeviceSet], of_host: Sequence[DeviceSet]
    ) -> Sequence[DeviceSet]:
        return of_host if self.on_host else fabrics

    def lay_out(self, fabric: DeviceSet) -> Benchmark:
        cells = tuple(self.cells(fabric))
        title = self.title + (self.left_out(fabric) if self.left_out else "")
        size = self.size(fabric) if callable(self.size) else self.size
        backend, reason = "host", self.reason
        if not self.on_host:
            backend, reason = fabric.backend, fabric.reason or self.reason
        elif size is None:
            size = fabric.buffer
        reason = None if cells else reason
        named = self.name, title, backend
        return Benchmark(*named, cells, self.unit, sweep=True, size=size, reason=reason)


class OnDevices(Sweep, frozen=True):
    on_host: ClassVar[bool] = False


def _by_flags(transfer: Transfer) -> Transfer:
    owner = transfer.engine.owner
    return transfer.by(Engine(owner, "rma")) if owner.is_host else transfer


@cache
def _template(cell: str) -> tuple[Transfer, ...]:
    # Each letter becomes a memory whose index is the letter's character code.

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
    # The next memory comes first, so that not all devices use the same one at once.
    own = memories[at]
    if "o" in letters:
        yield {"d": own, "o": _opposite(memories, at)}
    elif "p" in letters:
        yield from ({"d": own, "p": other} for other in memories[at ^ 1 : (at ^ 1) + 1])
    else:
        yield from ({"d": own, "e": other} for other in (*memories[at + 1 :], *memories[:at]))


def _place(transfer: Transfer, places: Mapping[str, Memory]) -> Transfer:
    def at(letter: Memory) -> Memory:
        if letter.is_null:
            return NULL
        place = places[chr(letter.index or 0)]
        if letter.kind == place.kind:
            return place  # thousands of transfers share it
        return Memory(place.space, place.index, letter.kind, place.rank)

    placed = transfer.placed(at)
    engine = placed.engine
    if engine.owner.is_host and engine.kind in _BETWEEN_HOSTS:
        return placed.by(Engine(engine.owner, _BETWEEN_HOSTS[engine.kind]))
    return placed
