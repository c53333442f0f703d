"""Changes benchmarks: other host memory, another engine for copies, or graphs for launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from linkgauge.model.errors import InputError
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Benchmark, Cell, Engine, Transfer

from .request import DeviceEngine


def rewritten(
    benchmarks: Sequence[Benchmark], memory: str, engine: DeviceEngine | None, graphs: bool
) -> tuple[Benchmark, ...]:
    """Returns the benchmarks changed as asked. Raises InputError if a change affects no cell."""
    found = tuple(benchmarks)
    if memory:
        found = in_memory(found, memory)
    if engine is not None:
        found = by_engine(found, engine)
    return as_graphs(found) if graphs else found


def in_memory(benchmarks: Sequence[Benchmark], kind: str) -> tuple[Benchmark, ...]:
    """Returns benchmarks with this host memory. Raises InputError if none uses pinned memory."""

    def placed(cell: Cell) -> Cell:
        return _with_transfers(cell, [_in_memory(one, kind) for one in cell.transfers])

    nothing = f"{kind} memory has no effect: no transfer uses pinned host memory"
    memories = (m for b in benchmarks for c in b.cells for t in c.transfers for m in t.memories)
    return _rewritten(benchmarks, placed, nothing, changes=any(map(_is_pinned, memories)))


def _in_memory(one: Transfer, kind: str) -> Transfer:
    source, destination = (
        replace(memory, kind=kind) if _is_pinned(memory) else memory
        for memory in (one.source, one.destination)
    )
    return Transfer(source, destination, one.engine, one.scale, one.both_ways, one.load)


def _is_pinned(memory: Memory) -> bool:
    return memory.is_host and not memory.kind


def by_engine(benchmarks: Sequence[Benchmark], kind: DeviceEngine) -> tuple[Benchmark, ...]:
    """Makes devices copy by this kind of engine. Removes the engine from names and titles, and
    merges benchmarks that become equal. Raises InputError if no device copies."""

    def driven(cell: Cell) -> Cell:
        if not cell.does.is_copy:
            return cell
        return _with_transfers(cell, [_by_engine(one, kind) for one in cell.transfers])

    copies = (t for b in benchmarks for c in b.cells if c.does.is_copy for t in c.transfers)
    nothing = "--engine has no effect: no device copies"
    found = _rewritten(benchmarks, driven, nothing, changes=any(map(_is_device_copy, copies)))
    by_name: dict[tuple[str, str], Benchmark] = {}
    for own in found:
        plain = _without_engine(own)
        same = by_name.setdefault((plain.name, plain.backend), plain)
        if same.cells != plain.cells:  # what kernels do in another way keeps its name
            by_name[own.name, own.backend] = own
    return tuple(by_name.values())


def _by_engine(one: Transfer, kind: DeviceEngine) -> Transfer:
    if not _is_device_copy(one):
        return one
    return one.by(Engine(one.engine.owner, kind))


def _is_device_copy(one: Transfer) -> bool:
    return one.engine.owner.is_device and len(one.memories) == 2


def _without_engine(benchmark: Benchmark) -> Benchmark:
    name, title = benchmark.name, benchmark.title
    if any(_is_device_copy(t) for c in benchmark.cells for t in c.transfers):
        for kind in ("ce", "sm"):
            name = name.removesuffix(f"_{kind}")
            title = title.replace(f"memcpy {kind.upper()} ", "memcpy ")
    return replace(benchmark, name=name, title=title)


def as_graphs(benchmarks: Sequence[Benchmark]) -> tuple[Benchmark, ...]:
    """Returns benchmarks that launch graphs. Raises InputError if none launched kernels before."""

    def launched(cell: Cell) -> Cell:
        graph = cell.does.as_graph
        return cell if graph is None else replace(cell, operation=graph)

    nothing = "--graph has no effect: only latency_launch launches kernels"
    launches = (cell.does.as_graph for benchmark in benchmarks for cell in benchmark.cells)
    return _rewritten(benchmarks, launched, nothing, changes=any(launches))


def _rewritten(
    benchmarks: Sequence[Benchmark], change: Callable[[Cell], Cell], nothing: str, *, changes: bool
) -> tuple[Benchmark, ...]:
    if not changes:
        why = next((one.reason for one in benchmarks if one.reason), None)
        has_none = not any(benchmark.cells for benchmark in benchmarks)
        raise InputError(f"nothing to measure: {why}" if has_none and why else nothing)
    return tuple(_with_cells(benchmark, change) for benchmark in benchmarks)


def _with_cells(benchmark: Benchmark, change: Callable[[Cell], Cell]) -> Benchmark:
    cells = tuple(map(change, benchmark.cells))
    titles = {str(old): str(new) for old, new in zip(benchmark.cells, cells, strict=True)}
    return replace(benchmark, cells=cells, title=titles.get(benchmark.title, benchmark.title))


def _with_transfers(cell: Cell, transfers: Sequence[Transfer]) -> Cell:
    return replace(cell, transfers=tuple(transfers))
