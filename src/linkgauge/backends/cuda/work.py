"""How one transfer runs on CUDA streams: a copy by a copy engine or a kernel, a read or a write."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import cycle
from typing import Any, Literal, NamedTuple

import msgspec

from linkgauge.backends.iterations import Worked, nothing
from linkgauge.backends.protocol import Copy
from linkgauge.model.settings import MOST_STREAMS, Pieces

from .device import CudaDevice, KernelLaunch, new_word, read_word
from .launches import LOOPS, Marks, Span, copy_launch, read_launch, write_launch
from .settings import IN_KERNEL_LOOPS, IN_PLACE_LOOPS, LEAST_IN_KERNEL, CopySettings

PIECE = 128 << 20
"""The approximate bytes of one part of an interfering copy. A part takes milliseconds."""
MARGIN = 1.1
"""Interfering copies should run this many times as long as the measured copy."""

Enqueue = Callable[[Sequence[Any], int], object]
"""A function that enqueues a number of loops on streams. The work on the other streams starts and
ends with the first stream. The device's context must be current."""
Piece = Callable[[Any], object]
"""A function that enqueues a part of a copy on a stream."""


class Recorder(NamedTuple):
    marks: Marks
    enqueue: Enqueue


class StreamWork(msgspec.Struct, eq=False):
    """The work of a transfer on a device. `kind` is `driver` if calls may wait for the device, and
    `graph` if a loop does not fit into a queue. `entries` has two numbers: the queue entries for
    each loop, and the further entries for all loops together. `warm_up` is the number of loops
    before the start event. `checksum` returns the xor of all words read, or None if the work also
    writes. `close` frees all resources except kernels, which belong to the device. `recorder` does
    the same work and records its progress. Only a copy that disturbs the measured copy has
    `settle`: it takes the loops, this copy's seconds and the measured copy's seconds, and returns
    this copy's seconds for all loops, or None to repeat a sample that was too short."""

    device: CudaDevice
    kind: Literal["engine", "kernel", "pieces", "driver", "graph", "nccl"]
    enqueue: Enqueue
    entries: tuple[int, int] = (1, 0)
    streams: int = 1
    warm_up: int = 0
    least_loops: int = 1
    checksum: Callable[[], int | None] = nothing
    close: Callable[[], object] = nothing
    recorder: Recorder | None = None
    settle: Callable[[int, float, float], float | None] | None = None

    def operations(self, loops: int) -> int:
        each, further = self.entries
        return each * loops + further


def engine_copy(device: CudaDevice, span: Span, streams: int, warm_up: int = 1) -> StreamWork:
    parts, call = span.slices(streams), device.driver.call
    flags = device.driver.enums.CUevent_flags.CU_EVENT_DISABLE_TIMING
    joins: list[Any] = []
    with ExitStack() as made:
        for _ in parts[1:]:
            joins.append(device.call("cuEventCreate", flags))
            made.callback(device.call, "cuEventDestroy", joins[-1])
        close = made.pop_all().close

    def enqueue(streams: Sequence[Any], loops: int) -> None:
        for stream, event in zip(streams[1:], joins, strict=True):
            call("cuEventRecord", event, streams[0])
            call("cuStreamWaitEvent", stream, event, 0)
        for _ in range(loops):
            for stream, part in zip(streams, parts, strict=True):
                call("cuMemcpyAsync", *part, stream)
        for stream, event in zip(streams[1:], joins, strict=True):
            call("cuEventRecord", event, stream)
            call("cuStreamWaitEvent", streams[0], event, 0)

    count = len(parts)
    entries = count, 4 * count
    return StreamWork(device, "engine", enqueue, entries, count, warm_up, close=close)


def blocking(work: StreamWork, streams: Sequence[Any]) -> Worked:
    """Returns work for a thread of its own, as the driver's calls for pageable memory may wait."""

    def run(loops: int) -> None:
        work.enqueue(streams, loops)
        work.device.driver.call("cuStreamSynchronize", streams[0])

    return Worked(run, work.device.enter, work.checksum, work.close)


def parts_of(device: CudaDevice, span: Span, settings: CopySettings | None = None) -> list[Piece]:
    """Splits a copy into parts, made by a copy engine or, with `settings`, by a kernel."""
    parts = span.slices(span.size // PIECE)
    if settings is None:
        return [partial(device.driver.call, "cuMemcpyAsync", *part) for part in parts]
    return [copy_launch(device, part, settings).enqueue for part in parts]


def in_pieces(device: CudaDevice, pieces: Sequence[Piece]) -> StreamWork:
    """Returns work that runs parts one by one without a warm-up, as in nvbandwidth."""

    def enqueue(streams: Sequence[Any], loops: int) -> None:
        for _ in range(loops):
            for piece in pieces:
                piece(streams[0])

    return StreamWork(device, "pieces", enqueue, (len(pieces), 0))


def peer_copy(device: CudaDevice, ends: tuple[Any, ...]) -> StreamWork:
    """Returns a copy through the host by cuMemcpyPeerAsync, as in p2pBandwidthLatencyTest."""
    work = in_pieces(device, [partial(device.driver.call, "cuMemcpyPeerAsync", *ends)])
    work.kind = "driver"
    return work


def interference(device: CudaDevice, pieces: Sequence[Piece]) -> StreamWork:
    """Returns a copy that disturbs the measured copy, with just enough loops to outlast it."""
    share, enqueued = 1.0, 0

    def enqueue(streams: Sequence[Any], loops: int) -> None:
        nonlocal enqueued
        # Every byte at least once: all are compared at the end.
        count = max(len(pieces), math.ceil(loops * len(pieces) * share))
        for _, piece in zip(range(count), cycle(pieces), strict=False):
            piece(streams[0])
        enqueued += count

    def settle(loops: int, seconds: float, measured: float) -> float | None:
        """Returns this copy's seconds for all loops; None to repeat a sample that was too short."""
        nonlocal enqueued, share
        whole, enqueued = seconds * (loops * len(pieces)) / enqueued, 0
        if seconds < measured and share < 1:
            share = 1.0
            return None
        share = min(1.0, MARGIN * measured / whole)
        return whole

    return StreamWork(device, "pieces", enqueue, (len(pieces), 0), settle=settle)


def kernel_work(
    device: CudaDevice, launch: KernelLaunch, in_kernel: bool, warm_up: int = 1, word: int = 0
) -> StreamWork:
    """Returns a kernel's work. If `in_kernel` is true, one launch does all loops, else each loop is
    a launch. `word` is the address of the kernel's checksum, or 0 for none."""

    def enqueue(streams: Sequence[Any], loops: int) -> None:
        launches, launch.varying.value = (1, loops) if in_kernel else (loops, 1)
        for _ in range(launches - 1):
            launch.enqueue(streams[0])
        if word:
            # Each launch xors what it read into the word: an even number of them would yield 0.
            device.driver.call("cuMemsetD8Async", word, 0, 8, streams[0])
        launch.enqueue(streams[0])

    entries = int(not in_kernel), int(in_kernel) + bool(word)
    read = partial(read_word, device, word) if word else nothing
    return StreamWork(device, "kernel", enqueue, entries, warm_up=warm_up, checksum=read)


def reading_work(
    device: CudaDevice, launch_with: Callable[[int], KernelLaunch], in_kernel: bool
) -> StreamWork:
    """Returns work whose kernel stores a checksum at the address given to `launch_with`."""
    with ExitStack() as made:
        word = new_word(device, made)
        work = kernel_work(device, launch_with(word), in_kernel, word=word)
        work.close = made.pop_all().close
    return work


def warm_ups(copy: Copy) -> int:
    """Returns the number of warm-ups, by default 1 between devices and 0 with the host."""
    if copy.warm_ups is not None:
        return copy.warm_ups
    return 0 if any(memory.is_host for memory in copy.transfer.memories) else 1


def copying(device: CudaDevice, copy: Copy, span: Span, settings: CopySettings) -> StreamWork:
    if copy.transfer.engine.kind == "ce":
        if copy.interference and settings.streams == 1:
            return interference(device, parts_of(device, span))
        return engine_copy(device, span, settings.streams, warm_ups(copy))
    if copy.interference and not copy.transfer.both_ways:
        return interference(device, parts_of(device, span, settings))
    return kernel_copy(device, copy, span, settings)


def kernel_copy(device: CudaDevice, copy: Copy, span: Span, settings: CopySettings) -> StreamWork:
    """Returns a copy by a kernel. If one launch does all loops, a tracked copy records progress."""
    how = span, settings, copy.transfer.both_ways
    in_kernel = copy.size >= IN_KERNEL_LOOPS
    work = kernel_work(device, copy_launch(device, *how), in_kernel, warm_ups(copy))
    if in_kernel:
        # The number of in-place repeats of a step determines how many of them caches serve.
        work.least_loops = IN_PLACE_LOOPS if settings.in_place else LEAST_IN_KERNEL
    if in_kernel and copy.tracked:
        with ExitStack() as made:
            marks = Marks(device, made)
            recording = kernel_work(device, copy_launch(device, *how, marks), in_kernel)
            work.recorder = Recorder(marks, recording.enqueue)
            work.close = made.pop_all().close
    return work


def writing(device: CudaDevice, destination: int, copy: Copy) -> StreamWork:
    kernel = write_launch(device, destination, copy.size, copy.seed)
    return kernel_work(device, kernel, copy.size >= IN_KERNEL_LOOPS)


def reading(device: CudaDevice, source: int, copy: Copy) -> StreamWork:
    launch_with = partial(read_launch, device, source, copy.size)
    return reading_work(device, launch_with, copy.size >= IN_KERNEL_LOOPS)


_MOST_THREADS = 1024
_LANES = 32


def pieces_launch(device: CudaDevice, span: Span, pieces: Pieces) -> KernelLaunch:
    """Returns the launch of a copy kernel. Its warps each access 128, 256 or 512 bytes at once.
    Addresses must be multiples of 16."""
    threads = min(pieces.size // (pieces.payload // _LANES), _MOST_THREADS)
    arguments = (*span, LOOPS)
    defines = {"PIECE": pieces.size, "PAYLOAD": pieces.payload}
    return KernelLaunch(device, "pieces.copy", (pieces.streams, threads), arguments, defines)


def piece_copies(device: CudaDevice, span: Span, pieces: Pieces) -> StreamWork:
    """Returns copies in pieces. A loop launches a CUDA graph with a chain of copies for each
    stream, because a call for each piece would be too slow."""
    ends, call = span.cut(pieces.size), device.driver.call
    streams = min(pieces.streams, MOST_STREAMS, len(ends))
    with ExitStack() as made:
        graph = device.call("cuGraphCreate", 0)
        made.callback(device.call, "cuGraphDestroy", graph)
        for first in range(streams):
            before: list[Any] = []
            for part in ends[first::streams]:
                node = before or None, len(before), _copy_node(device.driver.enums, part)
                before = [call("cuGraphAddMemcpyNode", graph, *node, device.context)]
        ready = call("cuGraphInstantiate", graph, 0)
        made.callback(device.call, "cuGraphExecDestroy", ready)
        work = in_pieces(device, [partial(call, "cuGraphLaunch", ready)])
        work.kind, work.entries, work.close = "graph", (len(ends), 0), made.pop_all().close
    return work


def _copy_node(enums: Any, span: Span) -> Any:
    node = enums.CUDA_MEMCPY3D()
    node.srcMemoryType = node.dstMemoryType = enums.CUmemorytype.CU_MEMORYTYPE_UNIFIED
    node.srcDevice, node.dstDevice = span.source, span.destination
    node.WidthInBytes, node.Height, node.Depth = span.size, 1, 1
    return node
