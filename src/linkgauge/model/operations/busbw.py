"""The bandwidths of a collective, computed from its seconds as in nccl-tests (collective.py)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from linkgauge.model.documents.result import CellResult

from .collective import Collective, bus_factor


class Bandwidths(msgspec.Struct, frozen=True):
    """Bytes/s: `algorithm` is size ÷ time (algbw), `bus` the rate of each link (busbw)."""

    algorithm: float
    bus: float


def bandwidths(cell: CellResult, seconds: float | None = None) -> Bandwidths | None:
    """Returns those of the headline figure or of `seconds`; None for other operations."""
    seconds = seconds or cell.headline
    if not isinstance(cell.operation, Collective) or not seconds or cell.bytes is None:
        return None
    ranks = len(cell.operation.groups(len(cell.transfers))[0])
    algorithm = cell.bytes / seconds
    return Bandwidths(algorithm, algorithm * bus_factor(cell.operation.collective, ranks))


def average_bus(cells: Iterable[CellResult]) -> float | None:
    """Returns the mean bus bandwidth of the cells that have one, which nccl-tests reports."""
    found = [own.bus for cell in cells if (own := bandwidths(cell)) is not None]
    return sum(found) / len(found) if found else None
