"""Collectives: operations of all accelerators together."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.model.transfer import Cell

from .table import DeviceSet, Sweep

_NO_BYTES = 0


def _none(_fabric: DeviceSet) -> Iterator[Cell]:
    return iter(())


COLLECTIVES: tuple[Sweep, ...] = (
    Sweep(
        "all_reduce",
        "AllReduce over all accelerators by size(column)",
        _none,
        size=_NO_BYTES,
        reason="linkgauge measures no collectives yet",
        profiles=(),
    ),
)
