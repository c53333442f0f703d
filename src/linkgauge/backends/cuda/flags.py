"""Flags that bounce between two devices, or between the host and a device. Each side stores into
the other side's flag and polls its own flag."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from linkgauge import _native
from linkgauge.backends.iterations import WARM_UPS, IteratedGroup, single_iterations
from linkgauge.backends.protocol import Gated, Timing
from linkgauge.model.errors import BackendError, TookTooLong, Unsupported

from .device import CudaDevice, KernelLaunch

LIMIT = 2.0
"""The seconds after which a side gives up if the other side does not answer."""
APART = 128
"""The bytes between the flags of two sides in one memory: the flags share no cache line."""
BYTES = 2 * APART
"""Bytes of the host's memory that hold the flags of both sides."""
MOST = 1 << 16
"""Most round trips of one launch."""
_CALL = "flag ping-pong"
_WORD, _HEAD = 8, 3
"""The bytes of a word, and the words of a report before its times."""
_NANO = 1e-9


class FlagKernel:
    """A kernel of one thread that stores at address `theirs` and polls address `mine`. If `report`
    is an address of the kernel's device, the kernel stores first. Without `report`, the kernel
    answers."""

    def __init__(self, device: CudaDevice, mine: int, theirs: int, report: int = 0) -> None:
        self._device = device
        self._first, self._count = ctypes.c_uint64(0), ctypes.c_uint64(0)
        arguments = (mine, theirs, self._first, self._count, int(LIMIT / _NANO), report)
        self._launch = KernelLaunch(device, device.kernel("flags", "bounce"), (1, 1), arguments)
        # A kernel is loaded as it is first launched, which would wait for the other side.
        self.start(device.stream(0), 0, 0)

    def start(self, stream: Any, first: int, count: int) -> None:
        """Launches the kernel, which bounces `count` values, starting with `first`."""
        self._first.value, self._count.value = first, count
        self._device.enter()
        self._launch.enqueue(stream)


class Answerer:
    """The answering side of a ping-pong, on a stream of a device. The other side may belong to
    another process."""

    def __init__(self, device: CudaDevice, mine: int, theirs: int, stream: int = 0) -> None:
        self.device = device
        self._stream = device.stream(stream)
        self._side = FlagKernel(device, mine, theirs)

    def start(self, first: int, count: int) -> None:
        self._side.start(self._stream, first, count)

    def settle(self) -> None:
        """Waits until the kernel has answered all values or given up."""
        self.device.call("cuStreamSynchronize", self._stream)


class _Restarted(Gated):
    """Base of both sides of a ping-pong. `next` is the next value of the flag. If the other side
    belongs to another process, `clear` sets this side's flag to 0 before every sample. 0 is never a
    value of the flag."""

    most_loops = MOST
    pace = single_iterations(2)
    clear: Callable[[], None] | None = None

    def __init__(self) -> None:
        self.next = _unused()

    def arm(self, loops: int, laps: int = 1) -> None:
        if self.clear is not None:
            self.clear()
            self.next = 1
        super().arm(loops, laps)


class FlagGroup(_Restarted):
    """A ping-pong of flags that a device begins. A loop sends a flag from the device to the other
    side and back, timed by the device's clock. Each side's flag is in that side's own memory, at
    the addresses `mine` and `theirs`. The other side is `answerer`, or belongs to another
    process."""

    def __init__(
        self, device: CudaDevice, mine: int, theirs: int, answerer: Answerer | None = None
    ) -> None:
        super().__init__()
        self._device = device
        self._stream = device.stream(0)
        self._answerer = answerer
        size = (_HEAD + 1 + WARM_UPS + MOST) * _WORD
        self._report = int(device.call("cuMemAlloc", size))
        try:
            self._begins = FlagKernel(device, mine, theirs, self._report)
            self._settle()
        except BaseException:
            self.close()
            raise

    def wait(self) -> Timing:
        """Waits for all loops. Raises TookTooLong if a flag does not return."""
        loops, laps = self.pass_gate()
        if loops * laps > MOST:
            raise Unsupported(f"{loops * laps} round trips at once: at most {MOST} can be recorded")
        count = WARM_UPS + loops * laps
        if self._answerer is not None:
            self._answerer.start(self.next, count)
        self._begins.start(self._stream, self.next, count)
        self.next += count
        self._settle()
        raw = bytearray((_HEAD + 1 + count) * _WORD)
        self._device.call("cuMemcpyDtoH", raw, self._report, len(raw))
        came, nanoseconds, ticks, *times = memoryview(raw).cast("Q")
        if came < count:
            detail = f" ({came} of {count} round trips)"
            raise TookTooLong(_CALL, _unanswered(self._silent, detail))
        tick = nanoseconds * _NANO / ticks
        own = tuple((time - times[WARM_UPS]) * tick for time in times[WARM_UPS::loops])
        return Timing((own[-1],), own[-1], (None,), (own,))

    @property
    def _silent(self) -> str:
        if self._answerer is None:
            return "the other rank"
        return f"cuda:{self._answerer.device.index}"

    def _settle(self) -> None:
        self._device.call("cuStreamSynchronize", self._stream)
        if self._answerer is not None:
            self._answerer.settle()

    def close(self) -> None:
        """Waits until all kernels of this process have ended or given up; idempotent."""
        super().close()
        report, self._report = self._report, 0
        if report:
            with suppress(BackendError):  # a lost device has already been reported
                self._settle()
                self._device.call("cuMemFree", report)


class AnsweringGroup(_Restarted):
    """The side that answers a `FlagGroup` of another process. The first value to answer is
    `next`."""

    def __init__(self, answerer: Answerer) -> None:
        super().__init__()
        self._answerer = answerer

    def wait(self) -> Timing:
        loops, laps = self.pass_gate()
        count = WARM_UPS + loops * laps
        self._answerer.start(self.next, count)
        self.next += count
        self._answerer.settle()
        return Timing((), 0.0)

    def close(self) -> None:
        """Waits until this side has answered all values or given up; idempotent."""
        super().close()
        with suppress(BackendError):
            self._answerer.settle()


def device_flags(device: CudaDevice, partner: CudaDevice, mine: int, theirs: int) -> FlagGroup:
    """Returns a group of flags between two devices of this process. Both flags are given by
    address."""
    # On one device, the sides run beside each other.
    answerer = Answerer(partner, theirs, mine, stream=1 if partner is device else 0)
    return FlagGroup(device, mine, theirs, answerer)


def host_flags(device: CudaDevice, flags: int) -> IteratedGroup:
    """Returns a group whose loops send a flag from the host to a device and back, timed by the
    host's clock. Both flags are in the host's memory, at address `flags`. The device polls its flag
    over the link."""
    mine, theirs = flags, flags + APART
    value = ctypes.c_uint64(_unused())
    side = FlagKernel(device, theirs, mine)
    stream, at = device.stream(0), ctypes.addressof(value)
    calls = (
        (_native.STORE_WORD, (theirs, at)),
        (_native.AWAIT_WORD, (mine, at, int(LIMIT / _NANO))),
    )

    def begin(count: int) -> None:
        # After a failure, the kernel may still wait for values that never come.
        device.call("cuStreamSynchronize", stream)
        value.value += 1
        side.start(stream, value.value, count)

    def error_of(status: int, failed: int) -> BackendError:
        return TookTooLong(_CALL, _unanswered(f"cuda:{device.index}"))

    def end() -> None:
        with suppress(BackendError):  # a lost device has already been reported
            device.call("cuStreamSynchronize", stream)

    made = ExitStack()
    made.callback(end)
    return IteratedGroup(calls, 2, error_of, begin, made)


def _unused() -> int:
    """Returns a value that no earlier ping-pong has left in this memory."""
    return time.monotonic_ns()


def _unanswered(silent: str, details: str = "") -> str:
    return f"no answer from {silent} within {LIMIT:g} s{details}"
