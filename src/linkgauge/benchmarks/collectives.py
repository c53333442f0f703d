"""Collectives over all accelerators or processes, named and defined as in nccl-tests. A column is a
size in bytes: the largest buffer of a rank (`model/operations/collective.py`). A row is a number
type, with the reduction or root if any, in place or out of place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import ClassVar

from linkgauge.backends import ACROSS_RANKS
from linkgauge.model.hardware.machine import Device
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.collective import (
    Collective,
    CollectiveName,
    has_root,
    no_hypercube,
    reduces,
)
from linkgauge.model.transfer import Benchmark, Cell, Engine, Report, Transfer
from linkgauge.model.units import COLLECTIVE, format_size

from .table import COMPARISON, UNHURRIED, DeviceSet, OnDevices

COLLECTING = ("cuda", "torch", "sim", ACROSS_RANKS)
"""Backends that carry out collectives."""
LEAST = 8
"""The smallest size in bytes."""


def by_fours(largest: int) -> tuple[int, ...]:
    """Returns the sizes in bytes up to `largest`, each 4 times the previous one."""
    steps = (largest // LEAST).bit_length() // 2 + 1
    return tuple(size for step in range(steps) if (size := LEAST << 2 * step) <= largest)


SIZES: Mapping[str | None, tuple[int, ...]] = {
    "full": by_fours(8 << 30),
    COMPARISON: by_fours(1 << 30),
}
"""The sizes of each profile in bytes."""
FEW_SIZES = (8, 32 << 10, 1 << 20, 32 << 20, 512 << 20)
LARGEST_OF_HOSTS = 64 << 20
"""The largest size in bytes between hosts. Larger sizes show nothing new."""


def collecting(fabrics: Sequence[DeviceSet]) -> list[DeviceSet]:
    return [fabric for fabric in fabrics if fabric.backend in COLLECTING and fabric.devices]


class CollectiveSweep(OnDevices, frozen=True, kw_only=True):
    collective: CollectiveName

    across_ranks: ClassVar[bool] = True

    def over(
        self, fabrics: Sequence[DeviceSet], of_host: Sequence[DeviceSet]
    ) -> Sequence[DeviceSet]:
        return collecting(fabrics) or fabrics[:1] or of_host

    def lay_out(self, fabric: DeviceSet) -> Benchmark:
        reason = self._reason(fabric)
        cells = tuple(self._cells(fabric)) if reason is None else ()
        named = self.name, self.title, fabric.backend
        return Benchmark(*named, cells, self.unit, sweep=True, size=1, reason=reason)

    def _reason(self, fabric: DeviceSet) -> str | None:
        if fabric.backend in COLLECTING and len(fabric.devices) > 1:
            ranks, root = len(fabric.devices), max(fabric.collectives.roots)
            if has_root(self.collective) and root >= ranks:
                return f"no rank {root}: the ranks are 0 to {ranks - 1}"
            return no_hypercube(self.collective, ranks)
        several = f"or several processes: mpiexec -n 4 linkgauge run {self.name}"
        return f"needs two GPUs of one machine, {several}"

    def _cells(self, fabric: DeviceSet) -> Iterator[Cell]:
        for work, size in product(self.works(fabric), _sizes(fabric)):
            yield cell_of(work, fabric.devices, size, row_of(work), format_size(size))

    def works(self, fabric: DeviceSet) -> Iterator[Collective]:
        """Yields the collective for each number type, reduction and root, out of place and in
        place, if its result can be checked."""
        choice = fabric.collectives
        reductions = choice.reductions if reduces(self.collective) else (None,)
        roots = choice.roots if has_root(self.collective) else (None,)
        for number, reduction, root, in_place in product(
            choice.types, reductions, roots, (False, True)
        ):
            work = Collective(
                self.collective, number, reduction, root, in_place, choice.split,
                choice.aggregated, choice.blocking, choice.graphed, choice.registered,
            )  # fmt: skip
            if work.is_checked:
                yield work


def _sizes(fabric: DeviceSet) -> tuple[int, ...]:
    if fabric.sizes:
        return fabric.sizes
    sizes, largest = SIZES.get(fabric.profile, FEW_SIZES), fabric.collectives.largest
    if largest is not None:
        return tuple(s for s in sizes if s <= largest) if sizes is FEW_SIZES else by_fours(largest)
    if fabric.backend == ACROSS_RANKS:
        return tuple(size for size in sizes if size <= LARGEST_OF_HOSTS)
    return sizes


def row_of(work: Collective) -> str:
    """Returns the label of the operation's row, such as `float sum` or `float root 0 in place`."""
    root = "" if work.root is None else f"root {work.root}"
    parts = (work.type, work.reduction, root, "in place" if work.in_place else "")
    return " ".join(part for part in parts if part)


def cell_of(work: Collective, devices: Sequence[Device], size: int, row: str, column: str) -> Cell:
    memories = [parse_memory(device.memory) for device in devices]
    transfers = tuple(Transfer(m, m, Engine(m, "ccl"), size) for m in memories)
    return Cell(row, column, transfers, Report.TIME, operation=work)


# name, title
_TITLES: tuple[tuple[CollectiveName, str], ...] = (
    ("all_reduce", "data of all ranks, reduced, to all ranks"),
    ("all_gather", "data of each rank, to all ranks"),
    ("reduce_scatter", "data of all ranks, reduced, one share to each"),
    ("broadcast", "data of the root, to all ranks"),
    ("reduce", "data of all ranks, reduced, to the root"),
    ("alltoall", "one share of each rank's data, to each rank"),
    ("gather", "data of each rank, to the root"),
    ("scatter", "one share of the root's data, to each rank"),
    ("sendrecv", "data of each rank, to the next rank"),
    ("hypercube", "data of each rank, to all ranks, in steps between ranks that differ in one bit"),
)


COLLECTIVES: tuple[CollectiveSweep, ...] = tuple(
    CollectiveSweep(
        name,
        f"{title}, type(row) by size(column)",
        lambda _: iter(()),
        COLLECTIVE,
        collective=name,
        profiles=UNHURRIED if name == "all_reduce" else ("full",),
    )
    for name, title in _TITLES
)
