"""What memory of another node costs host threads that work on arrays, in percent of the figure
with their own."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from linkgauge.model.arrays import ARRAYS
from linkgauge.model.memory import Memory
from linkgauge.model.result import CellResult, Result

from .blocks import Line, Span, line
from .sentences import NAMED


def remote_lines(result: Result) -> Iterator[Line]:
    """A line for each row with cells of remote memory: `remote 0 stream: host:1 -48.3%`. Nothing
    where the row has no cell of local memory to compare with."""
    local: dict[Hashable, float] = {}
    remote: dict[str, list[tuple[CellResult, Memory, float]]] = {}
    for cell in result.cells:
        place = _memory_of(cell)
        if place is None or cell.summary is None:
            continue
        figure = cell.summary.median
        if place == cell.transfers[0].engine.owner:
            local[_work(cell)] = figure
        else:
            remote.setdefault(cell.row, []).append((cell, place, figure))
    for row, cells in remote.items():
        parts = [
            f"{place} {figure / local[_work(cell)] - 1:+.1%}"
            for cell, place, figure in cells
            if local.get(_work(cell))
        ]
        if parts:
            rest = [f"{len(parts) - NAMED} more"] if len(parts) > NAMED else []
            named = ", ".join((*parts[:NAMED], *rest))
            yield line(Span("remote", "name"), f" {row}: {named}")


def _memory_of(cell: CellResult) -> Memory | None:
    """The one node whose memory the cell's one transfer by host threads is of."""
    if cell.operation not in ARRAYS or len(cell.transfers) != 1:
        return None
    places = {memory.place for memory in cell.transfers[0].memories if memory.is_host}
    return places.pop() if len(places) == 1 else None


def _work(cell: CellResult) -> Hashable:
    """Equal for cells that differ in nothing but where their memory is."""
    (transfer,) = cell.transfers
    kinds = tuple((memory.space, memory.kind) for memory in transfer.memories)
    return cell.operation, transfer.engine, kinds, transfer.source.is_null, transfer.scale
