"""Measures how long the host takes to enqueue copies. The copies wait at a gate (start signal)
meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_alone
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    check_alone(copies)
    return on.enqueuing(copies[0])
