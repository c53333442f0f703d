"""The bandwidths of a collective, from its seconds, as nccl-tests counts them (collective.py)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from linkgauge.model.documents.result import CellResult

from .collective import Collective, bus_factor


class Bandwidths(msgspec.Struct, frozen=True):
    """The bandwidths of a collective in bytes/s: of its `algorithm`, and of each link (`bus`)."""

    algorithm: float
    bus: float


def bandwidths(cell: CellResult, seconds: float | None = None) -> Bandwidths | None:
    """The bandwidths of the cell's headline figure, or of these seconds; None for anything but a
    collective with figures."""
    seconds = seconds or cell.headline
    if not isinstance(cell.operation, Collective) or not seconds or cell.bytes is None:
        return None
    ranks = len(cell.operation.groups(len(cell.transfers))[0])
    algorithm = cell.bytes / seconds
    return Bandwidths(algorithm, algorithm * bus_factor(cell.operation.collective, ranks))


def average_bus(cells: Iterable[CellResult]) -> float | None:
    """The mean of the bus bandwidths of all cells that have one, as nccl-tests reports it, to
    compare runs of the same sizes; None without any."""
    found = [own.bus for cell in cells if (own := bandwidths(cell)) is not None]
    return sum(found) / len(found) if found else None
