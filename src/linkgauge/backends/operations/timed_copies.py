"""Single copies by a copy engine, timed by the device."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.iterations import single_iterations
from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_alone, check_copy_engine
from linkgauge.backends.threaded import ThreadedGroup
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    check_alone(copies)
    group = on.moving([check_copy_engine(copies[0])], does)
    if not isinstance(group, ThreadedGroup):  # whose copies the host times, many at once
        group.pace = single_iterations(1)
    return group
