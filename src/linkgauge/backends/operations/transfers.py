"""Operations that need only a backend's primitives for transfers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group, single_iterations
from linkgauge.backends.rules import check_alone, check_copy_engine, check_flags, lacking
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.operation import Operation


def copies(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a group of copies. Bulk copies must be by a kernel, one way, between two memories."""
    for copy in copies if does.name == "bulk-copy" else ():
        transfer = copy.transfer
        if transfer.engine.kind != "sm" or transfer.both_ways or len(transfer.memories) < 2:
            raise Unsupported(f"{transfer}: kernels make bulk copies, from one memory to another")
    return on.moving(copies, does)


def timed_copy(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a group of one copy by a copy engine, timed singly if the device's clock times it."""
    from linkgauge.backends.iterations import ThreadedGroup  # loaded where the host times copies

    check_alone(copies)
    group = on.moving([check_copy_engine(copies[0])], does)
    if not isinstance(group, ThreadedGroup):  # whose copies the host times, many at once
        group.policy = single_iterations(1)
    return group


def copy_ping_pong(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a ping-pong of the first copy by a copy engine. The other copies load the link."""
    first, *loads = copies
    return on.concurrent(on.returning(check_copy_engine(first)), loads)


def flag_ping_pong(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a flag ping-pong of the first copy. The other copies load the link."""
    first, *loads = copies
    check_flags(first)
    return on.concurrent(on.bouncing(first), loads)


def ping_pong(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    check_alone(copies)
    return on.exchanging(copies[0])


def enqueue(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    check_alone(copies)
    return on.enqueuing(copies[0])


def hand_over(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a group that times what `does` hands to the first copy's device, such as a kernel,
    until the host knows of its end. The other copies load the link meanwhile."""
    from linkgauge.backends.iterations import iterated  # loaded where the host times copies

    first, *loads = copies
    with ExitStack() as made:
        queue = on.queue(first.transfer.engine.owner, made)
        named = list(getattr(queue, str(does.name).replace("-", "_"))())
        group = iterated(queue, named, 1, made.pop_all())
    return on.concurrent(group, loads)


def chase(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a pointer chase by the first copy. The other copies keep the memory busy."""
    chase = copies[0].transfer
    if chase.source.is_null or not chase.destination.is_null:
        how = f"write MEMORY -> null by {chase.engine}"
        raise Unsupported(f"{chase}: a chase only reads: {how}")
    return on.chasing(copies, does)


def arrays(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    for copy in copies:
        if on.has_own_arrays:
            _check_own(on.name, copy, does)
        _check(copy, does)
    return on.moving(copies, does)


def _check(copy: Copy, does: Operation) -> None:
    work, transfer = does.array, copy.transfer
    ends = transfer.source, transfer.destination
    if work and [end.is_null for end in ends] != [not work.read, not work.written]:
        raise Unsupported(f"{transfer}: {does.name} is another operation ({work.formula})")
    if copy.source and copy.source.size < copy.size * does.source_arrays:
        raise Unsupported(f"{transfer}: the source of {does.name} holds two arrays")


def _check_own(name: str, copy: Copy, does: Operation) -> None:
    transfer = copy.transfer
    if transfer.engine.kind != "sm":
        raise lacking(name, does.name)
    if any(memory != transfer.engine.owner for memory in transfer.memories):
        raise Unsupported(f"{transfer}: a kernel's arrays are in its own device's memory")
