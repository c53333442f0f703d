"""How flags bounce between two memories: a kernel or the host polls one and writes the other."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from linkgauge import _native
from linkgauge.backends.iterations import WARM_UPS, IteratedGroup
from linkgauge.backends.protocol import Gated, Timing, single_iterations
from linkgauge.model.errors import BackendError, TookTooLong, Unsupported

from .device import CudaDevice, KernelLaunch, device_memory

LIMIT = 2.0
"""Seconds after which a side gives up if the other side does not answer."""
APART = 128
"""The distance of two flags in bytes, so that they share no cache line."""
BYTES = 2 * APART
"""The size of host memory for both flags, in bytes."""
MOST = 1 << 16
"""The largest number of round trips in one launch."""
_CALL = "flag ping-pong"
_WORD, _HEAD = 8, 3
"""The bytes of a word, and the number of words before the times in a report."""
_NANO = 1e-9


class FlagKernel:
    """A kernel that waits for the flag at address `mine` and then writes the flag at `theirs`. If
    `report` is not 0, it stores the times of the round trips at this address."""

    def __init__(
        self, device: CudaDevice, mine: int, theirs: int, report: int = 0, stream: int = 0
    ) -> None:
        self.device, self.stream = device, device.stream(stream)
        self._first, self._count = ctypes.c_uint64(0), ctypes.c_uint64(0)
        arguments = (mine, theirs, self._first, self._count, int(LIMIT / _NANO), report)
        self._launch = KernelLaunch(device, "flags.bounce", (1, 1), arguments)
        # A kernel is loaded as it is first launched, which would wait for the other side.
        self.start(0, 0)

    def start(self, first: int, count: int) -> None:
        self._first.value, self._count.value = first, count
        self.device.enter()
        self._launch.enqueue(self.stream)

    def settle(self) -> None:
        self.device.call("cuStreamSynchronize", self.stream)


class FlagGroup(Gated):
    """A ping-pong of a flag between two kernels. `begins` sends the flag, `answers` sends it back,
    and `begins` stores the times of the round trips at the address `report`. A kernel that runs in
    another process is None here; `clear` then sets this process's flag to 0."""

    most_loops = MOST
    policy = single_iterations(2)
    clear: Callable[[], None] | None = None

    def __init__(
        self,
        begins: FlagKernel | None,
        answers: FlagKernel | None,
        report: int = 0,
        made: ExitStack | None = None,
    ) -> None:
        self._begins, self._answers, self._report = begins, answers, report
        self.next = _unused()
        """The next value of the flag, which is never 0."""
        self._made = made or ExitStack()
        self._made.callback(self._settle)

    def arm(self, loops: int, batches: int = 1) -> None:
        if self.clear is not None:
            self.clear()
            self.next = 1
        super().arm(loops, batches)

    def wait(self) -> Timing:
        """Returns the round trips' times. Raises TookTooLong if a flag does not return, Unsupported
        for more round trips than it can record."""
        loops, batches = self.pass_gate()
        if loops * batches > MOST:
            raise Unsupported(
                f"{loops * batches} round trips at once: at most {MOST} can be recorded"
            )
        count = WARM_UPS + loops * batches
        first, self.next = self.next, self.next + count
        for side in filter(None, (self._answers, self._begins)):
            side.start(first, count)
        self._settle()
        if self._begins is None:
            return Timing((), 0.0)
        raw = bytearray((_HEAD + 1 + count) * _WORD)
        self._begins.device.call("cuMemcpyDtoH", raw, self._report, len(raw))
        came, nanoseconds, ticks, *times = memoryview(raw).cast("Q")
        if came < count:
            other = self._answers
            silent = "the other rank" if other is None else f"cuda:{other.device.index}"
            raise TookTooLong(_CALL, _unanswered(silent, f" ({came} of {count} round trips)"))
        tick = nanoseconds * _NANO / ticks
        return Timing.of_one([time * tick for time in times[WARM_UPS::loops]])

    def _settle(self) -> None:
        for side in filter(None, (self._begins, self._answers)):
            side.settle()

    def close(self) -> None:
        super().close()
        with suppress(BackendError):  # a lost device has already been reported
            self._made.close()


def beginning(
    device: CudaDevice, mine: int, theirs: int, answers: FlagKernel | None = None
) -> FlagGroup:
    with ExitStack() as made:
        report = device_memory(device, (_HEAD + 1 + WARM_UPS + MOST) * _WORD, made)
        begins = FlagKernel(device, mine, theirs, report)
        begins.settle()
        if answers is not None:
            answers.settle()
        return FlagGroup(begins, answers, report, made.pop_all())


def device_flags(device: CudaDevice, partner: CudaDevice, mine: int, theirs: int) -> FlagGroup:
    # On one device, the sides run at the same time as each other.
    stream = 1 if partner is device else 0
    return beginning(device, mine, theirs, FlagKernel(partner, theirs, mine, stream=stream))


def host_flags(device: CudaDevice, flags: int) -> IteratedGroup:
    """Returns a ping-pong that the host times. Both flags lie in the host's memory."""
    mine, theirs = flags, flags + APART
    value = ctypes.c_uint64(_unused())
    side = FlagKernel(device, theirs, mine)
    at = ctypes.addressof(value)
    calls = (
        (_native.STORE_WORD, (theirs, at)),
        (_native.AWAIT_WORD, (mine, at, int(LIMIT / _NANO))),
    )

    def begin(count: int) -> None:
        side.settle()  # after a failure, the kernel may still wait for values that never come
        value.value += 1
        side.start(value.value, count)

    def error_of(status: int, failed: int) -> BackendError:
        return TookTooLong(_CALL, _unanswered(f"cuda:{device.index}"))

    def end() -> None:
        with suppress(BackendError):  # a lost device has already been reported
            side.settle()

    made = ExitStack()
    made.callback(end)
    return IteratedGroup(calls, 2, error_of, begin, made)


def _unused() -> int:
    return time.monotonic_ns()


def _unanswered(silent: str, details: str = "") -> str:
    return f"no answer from {silent} within {LIMIT:g} s{details}"
