"""What it takes the host to hand work over to a device and to hear that it is done."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from linkgauge.backends.iterations import iterated
from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """The calls of one operation on a queue of the first copy's device, each iteration from before
    the first until after the last; one is one latency. Copies after the first load the link."""
    first, *loads = copies
    with ExitStack() as made:
        queue = on.queue(first.transfer.engine.owner, made)
        named = list(getattr(queue, str(does.name).replace("-", "_"))())
        group = iterated(queue, named, 1, made.pop_all())
    return on.beside(group, loads)
