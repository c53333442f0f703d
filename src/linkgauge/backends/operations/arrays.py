"""STREAM's operations on arrays."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import lacking
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Returns a group of operations on arrays. Raises Unsupported if the transfers do not have the
    arrays that the operation needs."""
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
    """Raises Unsupported if an array is not in the memory of the device that uses it."""
    transfer = copy.transfer
    if transfer.engine.kind != "sm":
        raise lacking(name, does.name)
    if any(memory != transfer.engine.owner for memory in transfer.memories):
        raise Unsupported(f"{transfer}: a kernel's arrays are in its own device's memory")
