"""Latencies of giving work to a device: from the host's call until the host knows that the work is
done."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from linkgauge.backends.iterations import iterated
from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a group that repeats the calls of one operation on a queue. A loop is one latency,
    from before the first call until after the last. The device is that of the first copy. All other
    copies load the link."""
    first, *loads = copies
    with ExitStack() as made:
        queue = on.queue(first.transfer.engine.owner, made)
        named = list(getattr(queue, str(does.name).replace("-", "_"))())
        group = iterated(queue, named, 1, made.pop_all())
    return on.beside(group, loads)
