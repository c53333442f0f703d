"""Flags that bounce between two devices, or between the host and one: each side stores in the
other's flag and polls its own."""

from __future__ import annotations

import ctypes
import time
from contextlib import ExitStack, suppress
from typing import Any

from linkgauge import _native
from linkgauge.backends.iterations import WARM_UPS, IteratedGroup, single_iterations
from linkgauge.backends.protocol import Gated, Timing
from linkgauge.model.errors import BackendError, TookTooLong, Unsupported

from .device import CudaDevice, Launch

LIMIT = 2.0
"""Seconds after which a side gives up that hears nothing."""
APART = 128
"""Bytes between the flags of two sides in one memory: no cache line holds both."""
BYTES = 2 * APART
"""Bytes of the host's memory that hold the flags of both sides."""
MOST = 1 << 16
"""Most round trips of one launch."""
_CALL = "flag ping-pong"
_WORD, _HEAD = 8, 3
"""Bytes of a word; words of a report before its times."""
_NANO = 1e-9


class Side:
    """A kernel of one thread that stores at `theirs` and polls `mine`. It begins if it has a
    `report`, an address of its device; else it answers."""

    def __init__(self, device: CudaDevice, mine: int, theirs: int, report: int = 0) -> None:
        self._device = device
        self._first, self._count = ctypes.c_uint64(0), ctypes.c_uint64(0)
        arguments = (mine, theirs, self._first, self._count, int(LIMIT / _NANO), report)
        self._launch = Launch(device, device.kernel("flags", "bounce"), (1, 1), arguments)
        # A kernel is loaded as it is first launched, which would wait for the other side.
        self.start(device.stream(0), 0, 0)

    def start(self, stream: Any, first: int, count: int) -> None:
        """Bounces `count` values from `first` on."""
        self._first.value, self._count.value = first, count
        self._device.enter()
        self._launch.enqueue(stream)


class FlagGroup(Gated):
    """A flag from one device to another and back, a loop, by the first device's clock. Each side's
    flag is in its own memory: the addresses `mine` and `theirs`."""

    most_loops = MOST
    pace = single_iterations(2)

    def __init__(self, device: CudaDevice, partner: CudaDevice, mine: int, theirs: int) -> None:
        self._device, self._partner = device, partner
        # On one device, the sides run beside each other.
        self._streams = device.stream(0), partner.stream(1 if partner is device else 0)
        self._next = _unused()
        self._answers = Side(partner, theirs, mine)
        size = (_HEAD + 1 + WARM_UPS + MOST) * _WORD
        self._report = int(device.call("cuMemAlloc", size))
        try:
            self._begins = Side(device, mine, theirs, self._report)
            self._await_ends()
        except BaseException:
            self.close()
            raise

    def wait(self) -> Timing:
        """Raises TookTooLong if a flag does not come back."""
        loops, laps = self.pass_gate()
        if loops * laps > MOST:
            raise Unsupported(f"{loops * laps} round trips at once: at most {MOST} are recorded")
        count = WARM_UPS + loops * laps
        self._answers.start(self._streams[1], self._next, count)
        self._begins.start(self._streams[0], self._next, count)
        self._next += count
        self._await_ends()
        raw = bytearray((_HEAD + 1 + count) * _WORD)
        self._device.call("cuMemcpyDtoH", raw, self._report, len(raw))
        came, nanoseconds, ticks, *times = memoryview(raw).cast("Q")
        if came < count:
            silent = f"cuda:{self._partner.index}"
            raise TookTooLong(_CALL, _unanswered(silent, f" ({came} of {count} round trips)"))
        tick = nanoseconds * _NANO / ticks
        own = tuple((time - times[WARM_UPS]) * tick for time in times[WARM_UPS::loops])
        return Timing((own[-1],), own[-1], (None,), (own,))

    def _await_ends(self) -> None:
        for device, stream in zip((self._device, self._partner), self._streams, strict=True):
            device.call("cuStreamSynchronize", stream)

    def close(self) -> None:
        """Waits until both sides have ended or given up; idempotent."""
        super().close()
        report, self._report = self._report, 0
        if report:
            with suppress(BackendError):  # a lost device has already been reported
                self._await_ends()
                self._device.call("cuMemFree", report)


def host_flags(device: CudaDevice, flags: int) -> IteratedGroup:
    """A flag from the host to a device and back, a loop, by the host's clock. Both flags are in the
    host's memory, at `flags`: the device polls its own over the link."""
    mine, theirs = flags, flags + APART
    value = ctypes.c_uint64(_unused())
    side = Side(device, theirs, mine)
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
    """A value that no flag has from an earlier ping-pong in the same memory."""
    return time.monotonic_ns()


def _unanswered(silent: str, details: str = "") -> str:
    return f"no answer from {silent} within {LIMIT:g} s{details}"
