"""Computes the bandwidths of a collective from its time, as nccl-tests does (see collective.py)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from linkgauge.model.documents.result import CellResult

from .collective import Collective, bus_factor


class Bandwidths(msgspec.Struct, frozen=True):
    """The rates of a collective in bytes/s: `algorithm` (algbw) is size ÷ time, and `bus` (busbw)
    is the rate of each link."""

    algorithm: float
    bus: float


def bandwidths(cell: CellResult, seconds: float | None = None) -> Bandwidths | None:
    """Returns a collective's bandwidths, by default for its headline time; None for other cells."""
    seconds = seconds or cell.headline
    if not isinstance(cell.operation, Collective) or not seconds or cell.bytes is None:
        return None
    ranks = len(cell.operation.groups(len(cell.transfers))[0])
    algorithm = cell.bytes / seconds
    return Bandwidths(algorithm, algorithm * bus_factor(cell.operation.collective, ranks))


def average_bus(cells: Iterable[CellResult]) -> float | None:
    found = [own.bus for cell in cells if (own := bandwidths(cell)) is not None]
    return sum(found) / len(found) if found else None
