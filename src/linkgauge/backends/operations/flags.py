"""Flags that bounce between two sides. The source's side writes a value and waits. The
destination's side polls until it sees the value, and writes it back."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_flags
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a group in which flags bounce between the ends of the first copy. All other copies
    load the link."""
    first, *loads = copies
    check_flags(first)
    return on.beside(on.bouncing(first), loads)
