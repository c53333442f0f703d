"""Copies that run at the same time. A transfer may also only read or only write, unless a kernel
copies by the GPU's bulk copy unit."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    for transfer in (copy.transfer for copy in copies if does.name == "bulk-copy"):
        if transfer.engine.kind != "sm" or transfer.both_ways or len(transfer.memories) < 2:
            raise Unsupported(f"{transfer}: kernels make bulk copies, from one memory to another")
    return on.moving(copies, does)
