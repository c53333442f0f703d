"""The work of one transfer on CUDA streams: copies by copy engines or kernels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from typing import Any

from linkgauge.backends.protocol import Copy
from linkgauge.backends.threaded import Worked

from .device import CudaDevice, KernelLaunch
from .launches import Marks, copy_launch, read_launch, write_launch
from .settings import IN_KERNEL_LOOPS, IN_PLACE_LOOPS, LEAST_IN_KERNEL, CopySettings
from .verify import new_word, read_word

ALIGNMENT = 4096
"""The parts of a copy start at multiples of this number of bytes."""
PIECE = 128 << 20
"""The approximate bytes of one part of an interfering copy. They take milliseconds."""
MARGIN = 1.1
"""Interfering copies should run this many times as long as the measured copy."""


class StreamWork(ABC):
    """The work of one transfer on CUDA streams.

    `streams` is the number of streams, including helpers.
    `warm_up` is the number of loops before the start event.
    `least_loops` is the smallest number of loops in a sample."""

    streams = 1
    warm_up = 0
    least_loops = 1

    def __init__(self, device: CudaDevice) -> None:
        self.device = device

    def operations(self, loops: int) -> int:
        """Returns how many entries of the driver's queues these loops take, over all streams."""
        return loops

    @abstractmethod
    def enqueue(self, streams: Sequence[Any], loops: int) -> None:
        """Enqueues the loops. The work on the other streams starts and ends with the first stream.
        The device's context must be current."""

    def checksum(self) -> int | None:
        """Returns the xor of all words that were read, or None if the work does not only read. The
        work must have ended."""
        return None

    def close(self) -> None:  # noqa: B027
        """Frees the resources of this work. Kernels stay, because they belong to the device."""


class EngineCopy(StreamWork):
    """A copy by copy engines. The bytes are split evenly over streams."""

    def __init__(
        self,
        device: CudaDevice,
        destination: int,
        source: int,
        size: int,
        streams: int,
        warm_up: int = 1,
    ) -> None:
        super().__init__(device)
        self.warm_up = warm_up
        self._slices = slices(destination, source, size, streams)
        self.streams = len(self._slices)
        device.enter()
        flags = device.driver.enums.CUevent_flags.CU_EVENT_DISABLE_TIMING
        self._joins: list[Any] = []
        try:
            for _ in self._slices[1:]:
                self._joins.append(device.driver.call("cuEventCreate", flags))
        except BaseException:
            self.close()
            raise

    def operations(self, loops: int) -> int:
        return self.streams * (loops + 4)

    def enqueue(self, streams: Sequence[Any], loops: int) -> None:
        call = self.device.driver.call
        for stream, event in zip(streams[1:], self._joins, strict=True):
            call("cuEventRecord", event, streams[0])
            call("cuStreamWaitEvent", stream, event, 0)
        for _ in range(loops):
            for stream, copy in zip(streams, self._slices, strict=True):
                call("cuMemcpyAsync", *copy, stream)
        for stream, event in zip(streams[1:], self._joins, strict=True):
            call("cuEventRecord", event, stream)
            call("cuStreamWaitEvent", streams[0], event, 0)

    def close(self) -> None:
        self.device.enter()
        for event in self._joins:
            self.device.driver.call("cuEventDestroy", event)
        self._joins.clear()


class PeerCopy(StreamWork):
    """A copy by the driver between devices without peer access. The bytes go through the host. A
    call may wait for the device. There is no warm-up, as in p2pBandwidthLatencyTest. `ends` are the
    arguments of cuMemcpyPeerAsync, without the stream."""

    def __init__(self, device: CudaDevice, ends: tuple[Any, ...]) -> None:
        super().__init__(device)
        self._ends = ends

    def enqueue(self, streams: Sequence[Any], loops: int) -> None:
        for _ in range(loops):
            self.device.driver.call("cuMemcpyPeerAsync", *self._ends, streams[0])


def blocking(work: StreamWork, streams: Sequence[Any]) -> Worked:
    """Returns work that runs in its own thread. The driver copies pageable host memory in the
    calling thread, so calls may return only when the bytes have arrived."""

    def run(loops: int) -> None:
        work.enqueue(streams, loops)
        work.device.driver.call("cuStreamSynchronize", streams[0])

    return Worked(run, work.device.enter, work.checksum, work.close)


Piece = Callable[[Any], object]
"""A function that enqueues a part of a copy on a stream."""


def engine_pieces(device: CudaDevice, destination: int, source: int, size: int) -> list[Piece]:
    """Returns functions that each enqueue a part of a copy by a copy engine."""
    copy = partial(device.driver.call, "cuMemcpyAsync")
    return [partial(copy, *part) for part in slices(destination, source, size, size // PIECE)]


def kernel_pieces(
    device: CudaDevice, destination: int, source: int, size: int, settings: CopySettings
) -> list[Piece]:
    """Returns functions that each launch a part of a copy by a kernel."""
    return [
        copy_launch(device, *part, settings, both_ways=False).enqueue
        for part in slices(destination, source, size, size // PIECE)
    ]


class InPieces(StreamWork):
    """Work that is done in several parts, one after another. There is no warm-up, as in
    nvbandwidth."""

    def __init__(self, device: CudaDevice, pieces: Sequence[Piece]) -> None:
        super().__init__(device)
        self._pieces = pieces

    def operations(self, loops: int) -> int:
        return loops * len(self._pieces)

    def enqueue(self, streams: Sequence[Any], loops: int) -> None:
        for _ in range(loops):
            for piece in self._pieces:
                piece(streams[0])


class Interference(InPieces):
    """A copy that disturbs the measured copy, and must run longer than it. Only a `share` of its
    loops is enqueued, as more would only take time."""

    def __init__(self, device: CudaDevice, pieces: Sequence[Piece]) -> None:
        super().__init__(device, pieces)
        self._enqueued = 0
        self.share = 1.0

    def enqueue(self, streams: Sequence[Any], loops: int) -> None:
        # Every byte at least once: all are compared at the end.
        count = max(len(self._pieces), math.ceil(self.operations(loops) * self.share))
        for _, piece in zip(range(count), cycle(self._pieces), strict=False):
            piece(streams[0])
        self._enqueued += count

    def settle(self, loops: int, seconds: float, measured: float) -> float | None:
        """Returns the seconds that all loops would take, computed from the loops that ran. Returns
        None if the measured copy ran longer, because the sample then does not count. Also sets
        `share` for the next sample."""
        enqueued, self._enqueued = self._enqueued, 0
        whole = seconds * self.operations(loops) / enqueued
        if seconds < measured and self.share < 1:
            self.share = 1.0
            return None
        self.share = min(1.0, MARGIN * measured / whole)
        return whole


class CudaKernelWork(StreamWork):
    """A copy or a write by a kernel. With `in_kernel`, one launch does all loops; otherwise each
    loop is a launch."""

    def __init__(
        self,
        device: CudaDevice,
        kernel: KernelLaunch,
        in_kernel: bool,
        warm_up: int = 1,
        least_loops: int = 1,
    ) -> None:
        super().__init__(device)
        self.warm_up = warm_up
        self.least_loops = least_loops
        self.kernel = kernel
        self._in_kernel = in_kernel

    def operations(self, loops: int) -> int:
        return 1 if self._in_kernel else loops

    def enqueue(self, streams: Sequence[Any], loops: int) -> None:
        self.kernel.varying.value = loops if self._in_kernel else 1
        for _ in range(self.operations(loops)):
            self.kernel.enqueue(streams[0])


class RecordedWork(CudaKernelWork):
    """A copy by a kernel that can record its progress. One launch does all loops. `recording` is
    the launch that records in `marks`."""

    def __init__(self, plain: CudaKernelWork, recording: KernelLaunch, marks: Marks) -> None:
        super().__init__(plain.device, plain.kernel, True, plain.warm_up, plain.least_loops)
        self.marks = marks
        self._recording = recording

    def enqueue_recorded(self, streams: Sequence[Any], loops: int) -> None:
        self._recording.varying.value = loops
        self._recording.enqueue(streams[0])

    def close(self) -> None:
        self.marks.free()


def warm_ups(copy: Copy) -> int:
    """Returns the number of loops before each sample. It is 1 between devices, because the first
    copy after a pause is slower. It is 0 to or from the host, where a warm-up has no effect."""
    if copy.warm_ups is not None:
        return copy.warm_ups
    return 0 if any(memory.is_host for memory in copy.transfer.memories) else 1


def copying(
    device: CudaDevice, copy: Copy, ends: tuple[int, int], settings: CopySettings
) -> StreamWork:
    """Returns the work for a copy between two memories. `ends` are the addresses of destination and
    source."""
    if copy.transfer.engine.kind == "ce":
        if copy.interference and settings.streams == 1:
            return Interference(device, engine_pieces(device, *ends, copy.size))
        return EngineCopy(device, *ends, copy.size, settings.streams, warm_ups(copy))
    if copy.interference and not copy.transfer.both_ways:
        return Interference(device, kernel_pieces(device, *ends, copy.size, settings))
    return kernel_copy(device, copy, ends, settings)


def kernel_copy(
    device: CudaDevice, copy: Copy, ends: tuple[int, int], settings: CopySettings
) -> CudaKernelWork:
    """Returns the work for a copy by a kernel. If the copy is `tracked` and is one launch, the
    kernel records its progress."""
    how = *ends, copy.size, settings, copy.transfer.both_ways
    kernel, warm_up = copy_launch(device, *how), warm_ups(copy)
    if copy.size < IN_KERNEL_LOOPS:
        return CudaKernelWork(device, kernel, False, warm_up)
    # The number of in-place repeats of a step determines how many of them caches serve.
    least_loops = IN_PLACE_LOOPS if settings.in_place else LEAST_IN_KERNEL
    work = CudaKernelWork(device, kernel, True, warm_up, least_loops)
    if not copy.tracked:
        return work
    marks = Marks(device)
    try:
        recording = copy_launch(device, *how, marks)
    except BaseException:
        marks.free()
        raise
    return RecordedWork(work, recording, marks)


class ReadWork(CudaKernelWork):
    """A read by a kernel. `word` is the device address of the checksum."""

    def __init__(
        self, device: CudaDevice, kernel: KernelLaunch, word: int, in_kernel: bool
    ) -> None:
        super().__init__(device, kernel, in_kernel)
        self._word = word

    def operations(self, loops: int) -> int:
        return super().operations(loops) + 1

    def enqueue(self, streams: Sequence[Any], loops: int) -> None:
        launches = super().operations(loops)
        self.kernel.varying.value = loops if self._in_kernel else 1
        for launch in range(launches):
            if launch == launches - 1:
                # Each launch xors what it read into the word: an even number of them would yield 0.
                self.device.driver.call("cuMemsetD8Async", self._word, 0, 8, streams[0])
            self.kernel.enqueue(streams[0])

    def checksum(self) -> int | None:
        return read_word(self.device, self._word)

    def close(self) -> None:
        self.device.call("cuMemFree", self._word)


def writing(device: CudaDevice, destination: int, copy: Copy) -> StreamWork:
    """Returns the work for a transfer that only writes."""
    kernel = write_launch(device, destination, copy.size, copy.seed)
    return CudaKernelWork(device, kernel, copy.size >= IN_KERNEL_LOOPS)


def reading(device: CudaDevice, source: int, copy: Copy) -> StreamWork:
    """Returns the work for a transfer that only reads."""
    word = new_word(device)
    try:
        kernel = read_launch(device, source, copy.size, word)
    except BaseException:
        device.driver.call("cuMemFree", word)
        raise
    return ReadWork(device, kernel, word, copy.size >= IN_KERNEL_LOOPS)


def slices(destination: int, source: int, size: int, count: int) -> list[tuple[int, int, int]]:
    """Splits a copy into at most `count` parts of about the same size. A part is destination,
    source and length. Parts begin at aligned offsets, and none is empty."""
    length = -(-size // max(1, count))
    return cut(destination, source, size, -(-length // ALIGNMENT) * ALIGNMENT)


def cut(destination: int, source: int, size: int, length: int) -> list[tuple[int, int, int]]:
    """Splits a copy into parts of `length` bytes. The last part may be shorter."""
    return [
        (destination + offset, source + offset, min(length, size - offset))
        for offset in range(0, size, length)
    ]
