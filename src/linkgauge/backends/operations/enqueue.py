"""Measures how long the host's calls that enqueue copies take, while a gate holds the device
back."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_alone
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    check_alone(copies)
    return on.enqueuing(copies[0])
