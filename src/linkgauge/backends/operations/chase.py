"""Pointer chases: one thread follows pointers through the whole source buffer."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a group for a pointer chase. All other copies run until the chase has ended."""
    chase = copies[0].transfer
    if chase.source.is_null or not chase.destination.is_null:
        how = f"write MEMORY -> null by {chase.engine}"
        raise Unsupported(f"{chase}: a chase only reads: {how}")
    return on.chasing(copies, does)
