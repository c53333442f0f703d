"""Ping-pongs of copies. A copy engine copies there and back, and the host waits for each copy."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_copy_engine
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a group of round trips of the first copy. All other copies load the link."""
    first, *loads = copies
    return on.beside(on.returning(check_copy_engine(first)), loads)
