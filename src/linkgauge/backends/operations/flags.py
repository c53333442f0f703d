"""Flags: the source's side stores a value that the destination's side polls for, which then stores
one back."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_flags
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """A group of the first copy's flags; the other copies load the link."""
    first, *loads = copies
    check_flags(first)
    return on.beside(on.bouncing(first), loads)
