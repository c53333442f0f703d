"""A store by the source's side that the destination's polls for, and one back."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_flags
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Copies after the first load the link."""
    first, *loads = copies
    check_flags(first)
    return on.beside(on.bouncing(first), loads)
