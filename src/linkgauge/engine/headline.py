"""A cell's figure of one sample, by what it reports."""

from __future__ import annotations

from linkgauge.backends.base import Timing
from linkgauge.model.transfer import Cell, Report


def headline(cell: Cell, size: int, timing: Timing, loops: int) -> float:
    """The bandwidth of one sample, in bytes/s."""
    if cell.report is Report.FIRST:
        return cell.transfers[0].bytes_each_way(size) * loops / timing.seconds[0]
    if cell.report is Report.TOTAL:
        return cell.bytes_reported(size) * loops / timing.span
    return sum(
        transfer.bytes_moved(size) * loops / seconds
        for transfer, seconds in zip(cell.transfers, timing.seconds, strict=True)
    )
