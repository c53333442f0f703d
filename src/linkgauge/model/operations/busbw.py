"""What a collective's seconds are as bandwidths, as nccl-tests counts them (collective.py)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from linkgauge.model.documents.result import CellResult

from .collective import Collective, bus_factor


class Bandwidths(msgspec.Struct, frozen=True):
    """Bytes/s: of the `algorithm`, and what of it a link carries (`bus`)."""

    algorithm: float
    bus: float


def bandwidths(cell: CellResult, seconds: float | None = None) -> Bandwidths | None:
    """Of the cell's headline figure, or of so many seconds; None of anything else than a collective
    with figures."""
    seconds = seconds or cell.headline
    if not isinstance(cell.operation, Collective) or not seconds or cell.bytes is None:
        return None
    ranks = len(cell.operation.groups(len(cell.transfers))[0])
    algorithm = cell.bytes / seconds
    return Bandwidths(algorithm, algorithm * bus_factor(cell.operation.collective, ranks))


def average_bus(cells: Iterable[CellResult]) -> float | None:
    """The mean of the bus bandwidths of all cells that have one, as nccl-tests gives it: a figure
    to compare runs of the same sizes by. None without any."""
    found = [own.bus for cell in cells if (own := bandwidths(cell)) is not None]
    return sum(found) / len(found) if found else None
