"""Decides which cells are equivalent: their figures vary in the same way between repetitions."""

from __future__ import annotations

from collections.abc import Hashable

from linkgauge.model.documents.result import BenchmarkTable
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Cell


def class_of(table: BenchmarkTable, cell: Cell) -> Hashable:
    """Returns a key that equivalent cells share: they have the same figure, and transfers by the
    same kinds of engines between the same kinds of memories. Devices and directions may differ."""
    scales = not cell.does.follows_pointers
    shapes = tuple(
        [
            (
                transfer.engine.bare,
                *sorted((_kind(transfer.source), _kind(transfer.destination))),
                transfer.source.place == transfer.destination.place,
                transfer.both_ways,
                transfer.scale if scales else 1,
            )
            for transfer in cell.transfers
        ]
    )
    figure = table.unit, cell.report, cell.operation, cell.workload
    return table.backend, table.size, *figure, shapes


def _kind(memory: Memory) -> tuple[str, str]:
    return memory.space, memory.kind
