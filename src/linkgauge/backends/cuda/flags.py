"""Measures flags that bounce between two devices, or between the host and a device. Each side
writes the other side's flag, and polls its own."""

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
    """A kernel with one thread that plays one side of a ping-pong of flags. `mine` is the address
    of the flag that it polls. `theirs` is the address of the flag that it writes. `report` is the
    address for the measured times; a side without it only answers."""

    def __init__(self, device: CudaDevice, mine: int, theirs: int, report: int = 0) -> None:
        self._device = device
        self._first, self._count = ctypes.c_uint64(0), ctypes.c_uint64(0)
        arguments = (mine, theirs, self._first, self._count, int(LIMIT / _NANO), report)
        self._launch = KernelLaunch(device, "flags.bounce", (1, 1), arguments)
        # A kernel is loaded as it is first launched, which would wait for the other side.
        self.start(device.stream(0), 0, 0)

    def start(self, stream: Any, first: int, count: int) -> None:
        """Launches the kernel for `count` values of the flag. `first` is the first value."""
        self._first.value, self._count.value = first, count
        self._device.enter()
        self._launch.enqueue(stream)


class Answerer:
    """The side of a ping-pong that answers. The other side may be in another process."""

    def __init__(self, device: CudaDevice, mine: int, theirs: int, stream: int = 0) -> None:
        self.device = device
        self._stream = device.stream(stream)
        self._side = FlagKernel(device, mine, theirs)

    def start(self, first: int, count: int) -> None:
        self._side.start(self._stream, first, count)

    def settle(self) -> None:
        """Waits until the kernel has answered all values or has given up."""
        self.device.call("cuStreamSynchronize", self._stream)


class _Restarted(Gated):
    """The common part of both sides of a ping-pong. `next` is the next value of the flag, which is
    never 0. If the other side is in another process, `clear` sets this side's flag to 0 before each
    sample."""

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
    """The side of a ping-pong that begins, and measures the time. A loop sends a flag to the other
    side and back. `mine` and `theirs` are the addresses of both sides' flags. `answerer` is the
    other side, or None if it is in another process."""

    def __init__(
        self, device: CudaDevice, mine: int, theirs: int, answerer: Answerer | None = None
    ) -> None:
        super().__init__()
        self._device = device
        self._stream = device.stream(0)
        self._answerer = answerer
        size = (_HEAD + 1 + WARM_UPS + MOST) * _WORD
        with ExitStack() as made:
            self._report = device_memory(device, size, made)
            made.callback(self._settle)
            self._begins = FlagKernel(device, mine, theirs, self._report)
            self._settle()
            self._made = made.pop_all()

    def wait(self) -> Timing:
        """Waits until all loops are done. Raises TookTooLong if a flag does not come back."""
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
        """Waits until all kernels of this process have ended or given up. May be called again."""
        super().close()
        with suppress(BackendError):  # a lost device has already been reported
            self._made.close()


class AnsweringGroup(_Restarted):
    """The answering side of a ping-pong that another process begins."""

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
        """Waits until this side has answered all values or given up. May be called again."""
        super().close()
        with suppress(BackendError):
            self._answerer.settle()


def device_flags(device: CudaDevice, partner: CudaDevice, mine: int, theirs: int) -> FlagGroup:
    """Returns a ping-pong between two devices of this process. `mine` and `theirs` are the
    addresses of their flags."""
    # On one device, the sides run beside each other.
    answerer = Answerer(partner, theirs, mine, stream=1 if partner is device else 0)
    return FlagGroup(device, mine, theirs, answerer)


def host_flags(device: CudaDevice, flags: int) -> IteratedGroup:
    """Returns a ping-pong between the host and a device, timed by the host. Both flags are in host
    memory at the address `flags`, so the device polls over the link."""
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
    """Returns a flag value that was never used before."""
    return time.monotonic_ns()


def _unanswered(silent: str, details: str = "") -> str:
    return f"no answer from {silent} within {LIMIT:g} s{details}"
