"""First touch: how fast the kernel provides fresh, zeroed memory."""

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
"""Kinds of host memory whose pages can be returned to the kernel, because the pages are not
locked."""


class Touchable(Protocol):
    """A buffer that can return its pages to the kernel."""

    size: int
    address: int

    def touched(self) -> None:
        """Reads again in which pages the buffer lies. Raises Unsupported if the pages are of the
        wrong kind."""


class TouchGroup(Gated):
    """Threads on `cpus` that touch all pages of a buffer for the first time. Between samples, the
    pages are returned to the kernel. The buffer's content is lost."""

    pace = Pace(loops=1)

    def __init__(self, transfer: Transfer, buffer: Buffer | None, cpus: Sequence[int]) -> None:
        if not transfer.source.is_null or not _is_touchable(buffer, transfer):
            kinds = ", ".join(KINDS)
            problem = f"a first touch writes to unlocked host memory ({kinds})"
            raise Unsupported(f"{transfer}: {problem}: write null -> host:0/base by cpu")
        self._buffer = buffer
        self._cpus = tuple(cpus)

    def wait(self) -> Timing:
        """Waits until all pages are touched. Raises BackendError if pages cannot be returned or
        fresh memory is not zero. Raises Unsupported if fresh pages have another size than the
        buffer's kind requires."""
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
