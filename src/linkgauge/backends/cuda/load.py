"""How a kernel loads a link at a share of its full rate while other operations are timed."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from linkgauge.backends.protocol import Copy, Group, Timing
from linkgauge.model.errors import BackendError, TookTooLong, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import FULL_LOAD

from .device import CudaDevice, KernelLaunch, device_memory, pinned_words
from .memory import span_of

THREADS, UNIT = 512, 16
TILE = THREADS * UNIT
"""The bytes that a block copies at a time."""
LIMIT = 3.0
"""Seconds after which a load ends by itself."""
_WHOLE = 0.02
"""Seconds for which the full rate of a load is measured."""
_LEAST = 0.005
"""The shortest time of a load in seconds. A shorter load has no exact rate."""
_STREAM = 2
"""The number of the first stream for loads. Lower numbers are for the measured group."""
_WORD, _NANO = 8, 1e-9


class KernelLoad:
    """A kernel that keeps a link busy with copies. `number` is the load's index in its group.
    Raises Unsupported if the transfer cannot be a load."""

    def __init__(self, device: CudaDevice, copy: Copy, number: int = 0) -> None:
        transfer = copy.transfer
        if transfer.engine.kind != "sm" or len(transfer.memories) < 2 or transfer.both_ways:
            raise Unsupported(f"{transfer}: a load is a copy one way by a kernel (sm)")
        if copy.size < TILE or copy.size % TILE:
            raise Unsupported(f"{transfer}: a load's size is a multiple of {TILE} bytes")
        self._device = device
        self._stream = device.stream(_STREAM + number)
        # What is measured at the same time as it finds multiprocessors of its own.
        self._blocks = max(1, device.multiprocessors * 3 // 4)
        self._pace = ctypes.c_uint64(0)
        with ExitStack() as made:
            self._signals = pinned_words(device, ctypes.c_uint64, 2)
            signals = ctypes.addressof(self._signals)
            made.callback(device.call, "cuMemFreeHost", signals)
            self._done = device_memory(device, 4 * _WORD, made)
            made.callback(self.stop)
            ends = span_of(copy)[:2]
            limit = int(LIMIT / _NANO)
            arguments = (*ends, copy.size // TILE, self._pace, signals, limit, self._done)
            self._launch = KernelLaunch(device, "load.load", (self._blocks, THREADS), arguments)
            self._run(0.0)  # loads the kernel
            share = transfer.load / FULL_LOAD
            if transfer.load != FULL_LOAD:
                # On a busy host, it may have begun late.
                full = self._run(_WHOLE) or self._run(10 * _WHOLE)
                if not full:
                    raise BackendError("load", "nothing was copied")
                self._pace.value = round(self._blocks * TILE / (full * share) / _NANO)
            self._made = made.pop_all()

    def _run(self, seconds: float) -> float:
        self.start()
        time.sleep(seconds)
        return self.stop()

    def start(self) -> None:
        device = self._device
        self._signals[0] = self._signals[1] = 0
        device.enter()
        device.driver.call("cuMemsetD8Async", self._done, 0, 4 * _WORD, self._stream)
        self._launch.enqueue(self._stream)
        deadline = time.monotonic() + LIMIT
        while not self._signals[0]:
            if time.monotonic() > deadline:
                raise TookTooLong("load", f"did not start within {LIMIT:g} s")

    def stop(self) -> float:
        """Ends the load. Returns its rate in bytes/s, or 0 if the kernel had already ended."""
        self._signals[1] = 1
        self._device.call("cuStreamSynchronize", self._stream)
        raw = bytearray(4 * _WORD)
        self._device.call("cuMemcpyDtoH", raw, self._done, len(raw))
        _, tiles, began, ended = memoryview(raw).cast("Q")
        return tiles * TILE / ((ended - began) * _NANO) if ended > began else 0.0

    def close(self) -> None:
        with suppress(BackendError):  # a lost device has already been reported
            self._made.close()


class LoadedGroup:
    def __init__(self, group: Group, loads: list[KernelLoad], sizes: list[int]) -> None:
        self._group, self._loads, self._sizes = group, loads, sizes
        self.policy = group.policy
        self.most_loops, self.open = group.most_loops, group.open
        self._count = 0

    def arm(self, loops: int, batches: int = 1) -> None:
        self._group.arm(loops, batches)
        self._count = loops * batches

    def wait(self) -> Timing:
        """Returns the group's times and, for each load, the seconds that all loops would take at
        the load's rate. Raises BackendError if a load ended too early."""
        begun: list[KernelLoad] = []
        begin = time.monotonic()
        try:
            for load in self._loads:
                load.start()
                begun.append(load)
            timing = self._group.wait()
            time.sleep(max(0.0, begin + _LEAST - time.monotonic()))
        finally:
            rates = [load.stop() for load in begun]
        if not all(rates):
            raise BackendError("load", "the load ended before what it loads")
        concurrent = tuple(
            size * self._count / rate for size, rate in zip(self._sizes, rates, strict=True)
        )
        return Timing(
            (*timing.seconds, *concurrent),
            timing.span,
            (*timing.checksums, *(None for _ in rates)),
            (*timing.progress, *((0.0, seconds) for seconds in concurrent)),
        )

    def close(self) -> None:
        self._group.close()
        loads, self._loads = self._loads, []
        for load in loads:
            load.close()


def loaded(device_of: Callable[[Memory], CudaDevice], group: Group, loads: Sequence[Copy]) -> Group:
    if not loads:
        return group
    with ExitStack() as opened:
        opened.callback(group.close)
        made = []
        for number, copy in enumerate(loads):
            made.append(load := KernelLoad(device_of(copy.transfer.engine.owner), copy, number))
            opened.callback(load.close)
        opened.pop_all()
    return LoadedGroup(group, made, [copy.size for copy in loads])
