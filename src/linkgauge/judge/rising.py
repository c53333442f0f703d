"""Spares collectives whose curve still rises at its largest size: it shows its best only at larger
sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from linkgauge.model.documents.result import CellResult
from linkgauge.model.grouped import grouped

from .expected.healthy import START

RISING = 1.05
"""The ratio by which the rate at the largest size exceeds that at the one before. Rates of healthy
machines differ by 4 % from 512 MiB to 1 GiB, and by 2 % beyond (`healthy.yml`)."""
NEAR = 4
"""The most by which the two sizes differ: curves over larger steps always rise."""


def spared(cells: Sequence[CellResult]) -> tuple[CellResult, ...]:
    """What is low at the largest size of a curve that still rises is perhaps low."""
    rows = grouped((one.row, one) for one in cells if one.does.collective and one.bytes)
    ends = [sorted(own, key=_size)[-2:] for own in rows.values()]
    risen = {
        large.place
        for before, large in (end for end in ends if len(end) == 2)
        if _size(large) <= NEAR * _size(before) and _rate(large) > RISING * _rate(before)
    }
    return tuple(
        replace(one, verdict="perhaps low") if one.verdict == "low" and one.place in risen else one
        for one in cells
    )


def _size(cell: CellResult) -> int:
    return cell.bytes or 0


def _rate(cell: CellResult) -> float:
    """In bytes/s, without what starting takes."""
    moving = (cell.headline or math.inf) - START
    return _size(cell) / moving if moving > 0 else math.inf
