"""Flags between two sides. The source's side stores a value. The destination's side polls for the
value and then stores a value back."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_flags
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a group of flags between the ends of the first copy. The other copies load the
    link."""
    first, *loads = copies
    check_flags(first)
    return on.beside(on.bouncing(first), loads)
