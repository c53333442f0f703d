"""First touch: how fast Linux provides new, zeroed memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeGuard

from linkgauge import _native
from linkgauge.backends.native import native_errors
from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Buffer, Copy, Gated, Pace, Timing
from linkgauge.backends.rules import check_alone
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.operation import Operation
from linkgauge.model.transfer import Transfer

KINDS = ("pageable", "base", "thp", "hugetlb")
"""Kinds of host memory whose pages are not locked, so that they can be returned to the kernel."""


class Touchable(Protocol):
    """A buffer whose pages can be given back to Linux."""

    size: int
    address: int

    def touched(self) -> None:
        """Checks whether the buffer's new pages are of its kind. Raises Unsupported if they are
        not."""


class TouchGroup(Gated):
    """Threads on `cpus` that touch all pages of a buffer. Before each sample, the pages are given
    back to Linux, so the buffer's content is lost."""

    pace = Pace(loops=1)

    def __init__(self, transfer: Transfer, buffer: Buffer | None, cpus: Sequence[int]) -> None:
        if not transfer.source.is_null or not _is_touchable(buffer, transfer):
            kinds = ", ".join(KINDS)
            problem = f"a first touch writes to unlocked host memory ({kinds})"
            raise Unsupported(f"{transfer}: {problem}: write null -> host:0/base by cpu")
        self._buffer = buffer
        self._cpus = tuple(cpus)

    def wait(self) -> Timing:
        """Waits until all pages are touched. Raises BackendError if new memory is not zero, or if
        pages cannot be given back. Raises Unsupported if the new pages are of the wrong kind."""
        loops, laps = self.pass_gate()
        buffer = self._buffer
        with native_errors("touch fresh memory"):
            times = _native.first_touch(buffer.address, buffer.size, self._cpus, loops, laps)
        buffer.touched()
        return Timing((times[-1],), times[-1], (None,), (tuple(times),))


def _is_touchable(buffer: Buffer | None, transfer: Transfer) -> TypeGuard[Touchable]:
    return hasattr(buffer, "touched") and transfer.destination.kind in KINDS


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> TouchGroup:
    check_alone(copies)
    return TouchGroup(copies[0].transfer, copies[0].destination, on.threads(copies)[0])
