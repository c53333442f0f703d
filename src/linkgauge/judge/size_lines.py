"""Fits latency + size ÷ bandwidth to the times of each path measured at several sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linkgauge.model.curves import SizeLine
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.grouped import grouped
from linkgauge.model.stats.hockney import LEAST, Timed, fit
from linkgauge.model.units import BANDWIDTH, STREAM


def lines_of(run: Run) -> tuple[SizeLine, ...]:
    sized = at_sizes(run.results, LEAST)
    paths = grouped(
        ((result.benchmark, result.backend, cell.row, column), point)
        for result in run.results
        for cell in result.cells
        if (result.benchmark, result.backend) in sized or cell.does.of_sizes
        for column, point in _points(result, cell)
    )
    lines = (fit(points, *path) for path, points in paths.items())
    return tuple(line for line in lines if line is not None)


def at_sizes(results: Iterable[Result], least: int) -> set[tuple[str, str]]:
    sizes = grouped(((one.benchmark, one.backend), one.size) for one in results)
    return {of for of, own in sizes.items() if len(set(own)) >= least}


def _points(result: Result, cell: CellResult) -> Iterator[tuple[str | None, Timed]]:
    """Yields a cell's column (None if columns are sizes) and time, if its bytes take the time."""
    figure = cell.headline
    if not figure or cell.kind == "wrong-bytes":
        return
    if cell.does.is_single and cell.does.of_sizes:
        size = cell.transfers[0].bytes_moved(result.size)
        yield None, Timed(size, size, figure)
    elif result.unit in (BANDWIDTH.symbol, STREAM.symbol) and cell.bytes and not _is_staged(cell):
        yield cell.column, Timed(result.size, cell.bytes, cell.bytes / figure)


def _is_staged(cell: CellResult) -> bool:
    """Whether a staging buffer is used, so that a sample's time does not depend on its bytes."""
    return any(m.is_staging for transfer in cell.transfers for m in transfer.memories)
