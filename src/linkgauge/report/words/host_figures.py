"""Names of figures of the host's memory and CPUs, in words: `read, one thread`, `copy, all 2
CPUs`."""

from __future__ import annotations

from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.transfer import Transfer
from linkgauge.model.units import count_of, unit_of

_PEAK = " by the fastest kernel"


def in_words(result: Result, cell: CellResult) -> str:
    """Empty for figures that are not of the host's own memory or CPUs."""
    if result.backend != "host" or not cell.transfers:
        return ""
    does, first = cell.does, cell.transfers[0]
    if does.array is not None:
        how = _PEAK if does.mode == "peak" else ""
        return f"{does.array.kind}{how}, {_threads(cell)}{_place(result, cell)}"
    if does.name == "primes":
        return f"primes up to 10,000, {_threads(cell)}"
    if does.name == "ping-pong":
        alone = len(result.cells) == 1
        return f"latency between {'two cores' if alone else f'CPUs {cell.row} and {cell.column}'}"
    if does.follows_pointers and cell.transfers == (first,) and _is_of_memory(first):
        return f"latency of memory{_from(result, cell)}"
    return ""


def unit_in_words(result: Result, cell: CellResult) -> str:
    """A CPU finds all primes so many times in a second; once is an event of sysbench."""
    return "times/s" if cell.does.name == "primes" else unit_of(result.unit).shown


def _is_of_memory(transfer: Transfer) -> bool:
    """Points of a curve over sizes have a scale."""
    return transfer.source.is_host and transfer.scale == 1


def _threads(cell: CellResult) -> str:
    """Threads without a number are one for each CPU, and so are those of the primes unless there is
    only one."""
    counts = [transfer.engine.count for transfer in cell.transfers]
    known = sum(count or 0 for count in counts)
    if known == 1:
        return "one thread"
    if None in counts or cell.does.fills_time:
        alone = "the only CPU" if cell.column == "1" else f"all {cell.column} CPUs"
        return alone if cell.column.isdecimal() else "all CPUs"
    return count_of(known, "thread")


def _from(result: Result, cell: CellResult) -> str:
    threads, memory = _nodes(cell.transfers[0])
    return f" of node {memory}, CPU of node {threads}" if _place(result, cell) else ""


def _place(result: Result, cell: CellResult) -> str:
    several = len({node for one in result.cells for t in one.transfers for node in _nodes(t)}) > 1
    if not several or len(cell.transfers) > 1:
        return ""
    threads, memory = _nodes(cell.transfers[0])
    return f" of node {threads}" + ("" if threads == memory else f" on memory of node {memory}")


def _nodes(transfer: Transfer) -> tuple[int, int]:
    threads = transfer.engine.owner.index or 0
    memories = [memory.index for memory in transfer.memories if memory.index is not None]
    return threads, memories[0] if memories else threads
