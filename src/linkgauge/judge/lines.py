"""The line latency + size ÷ bandwidth of each path that a run measured at several sizes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from linkgauge.model.grouped import grouped
from linkgauge.model.result import CellResult, Result, Run
from linkgauge.model.stats.hockney import Timed, fit
from linkgauge.model.units import BANDWIDTH, STREAM

_Path = tuple[str, str, str, str | None]


def with_lines(run: Run) -> Run:
    """The run with the line of each path, in the order of the results."""
    paths = grouped(
        ((result.benchmark, result.backend, cell.row, column), point)
        for result in run.results
        for cell in result.cells
        for column, point in _points(result, cell)
    )
    lines = (fit(points, *path) for path, points in paths.items())
    return replace(run, lines=tuple(line for line in lines if line is not None))


def _points(result: Result, cell: CellResult) -> Iterator[tuple[str | None, Timed]]:
    """The cell as a point of its path, which has no column if the columns are sizes. Cells have
    none whose figure is not the time of moving their bytes."""
    figure = cell.headline
    if not figure or cell.kind == "wrong-bytes":
        return
    if cell.does.is_single and cell.does.of_sizes:
        size = cell.transfers[0].bytes_moved(result.size)
        yield None, Timed(size, size, figure)
    elif result.unit in (BANDWIDTH.symbol, STREAM.symbol) and cell.bytes and not _is_staged(cell):
        yield cell.column, Timed(result.size, cell.bytes, cell.bytes / figure)


def _is_staged(cell: CellResult) -> bool:
    """Whether host threads run for as long as the others do: more bytes then take no longer."""
    return any(m.is_staging for transfer in cell.transfers for m in transfer.memories)
