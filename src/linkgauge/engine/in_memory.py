"""Benchmarks with another kind of host memory than they name."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from linkgauge.model.errors import InputError
from linkgauge.model.transfer import Benchmark, Cell, Memory, Transfer


def in_memory(benchmarks: Sequence[Benchmark], kind: str) -> tuple[Benchmark, ...]:
    """The benchmarks with host memory of this kind wherever it is pinned ("": as they are). Raises
    InputError if nowhere it is."""
    if not kind:
        return tuple(benchmarks)
    memories = (m for b in benchmarks for c in b.cells for t in c.transfers for m in t.memories)
    if not any(map(_is_pinned, memories)):
        raise InputError(f"{kind} memory changes nothing: no transfer has pinned host memory")
    return tuple(
        replace(benchmark, cells=tuple(_cell(cell, kind) for cell in benchmark.cells))
        for benchmark in benchmarks
    )


def _cell(cell: Cell, kind: str) -> Cell:
    return replace(cell, transfers=tuple(_transfer(one, kind) for one in cell.transfers))


def _transfer(one: Transfer, kind: str) -> Transfer:
    source, destination = (
        replace(memory, kind=kind) if _is_pinned(memory) else memory
        for memory in (one.source, one.destination)
    )
    return Transfer(source, destination, one.engine, one.scale, one.both_ways, one.load)


def _is_pinned(memory: Memory) -> bool:
    return memory.is_host and not memory.kind
