"""Works that run at the same time: enqueued behind a gate, started by one event, timed by events.

Every stream waits at its own gate kernel, all of which spin on one flag in host memory. Behind it
stands a warm-up, then the first stream's start event; the other streams wait for that event, so
that all start together, and record their own. Behind its copies each stream records an end event;
the first stream waits for all of these and records the end of the whole (the order of
nvbandwidth's doMemcpyCore). All waiting is for events recorded earlier in the order of
enqueueing, so streams that share a hardware queue cannot wait for each other in a circle.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import pairwise, starmap
from typing import Any

from linkgauge.backends.base import Pace, Timing
from linkgauge.model.errors import BackendError

from .device import CudaDevice, Launch
from .driver import Driver
from .launches import gate_launch
from .settings import IN_PLACE_LOOPS
from .work import Interference, Work

GATE_SECONDS = 10.0
"""A gate opens by itself after this long: the sample is lost, the device is not."""
QUEUE = 480
"""How many operations may wait behind a closed gate on one device. The driver's queues hold about
1024; a call that finds one full blocks until the device moves on, which it does not before the
gate opens, and the call that would open it never comes."""
_OVERHEAD = 8
"""Entries beside a work's own: gate, start and end events, waits."""
_UNBOUNDED = 1 << 30
SAMPLE_SECONDS = 0.008
"""Events tell half a microsecond."""
LAPS = 32
"""Samples behind one gate: as long as the host may be kept waiting."""
_MILLISECONDS = 1e-3


class Gate:
    """A flag in pinned host memory, and the kernels that spin on it."""

    def __init__(self, driver: Driver, devices: Sequence[CudaDevice]) -> None:
        self._driver = driver
        self._home = devices[0]
        self._home.enter()
        flags = driver.enums.CU_MEMHOSTALLOC_PORTABLE | driver.enums.CU_MEMHOSTALLOC_DEVICEMAP
        size = 2 * ctypes.sizeof(ctypes.c_uint32)
        self._address: int | None = int(driver.call("cuMemHostAlloc", size, flags))
        self._state = (ctypes.c_uint32 * 2).from_address(self._address)
        limit = int(GATE_SECONDS * 1e9)
        try:
            self._launches: dict[int, Launch] = {
                device.index: gate_launch(device, self._address, limit) for device in devices
            }
        except BaseException:
            self.free()
            raise

    def enqueue(self, device: CudaDevice, stream: Any) -> None:
        self._launches[device.index].enqueue(stream)

    def shut(self) -> None:
        self._state[0] = self._state[1] = 0

    def open(self) -> None:
        self._state[0] = 1

    @property
    def gave_up(self) -> bool:
        return bool(self._state[1])

    def free(self) -> None:
        address, self._address = self._address, None
        if address is not None:
            self._home.enter()
            self._driver.call("cuMemFreeHost", address)


class Track:
    """A work with its streams, and the events of its start and its end."""

    def __init__(self, work: Work, streams: Sequence[Any], start: Any, end: Any) -> None:
        self.work = work
        self.streams = streams
        self.device = work.device
        self.start = start
        self.end = end

    def enqueue(self, loops: int) -> None:
        self.device.enter()
        self.work.enqueue(self.streams, loops)

    def close(self) -> None:
        # On a lost device these fail, too: what was lost has been told.
        with suppress(BackendError):
            self.work.close()


class CudaGroup:
    """A prepared group. Groups share their devices' streams: arm one at a time."""

    def __init__(self, driver: Driver, works: Sequence[Work]) -> None:
        self._driver = driver
        self._made = ExitStack()
        """What is to be given back, also where making the rest fails."""
        try:
            self._tracks = [
                Track(work, own, self._event(work.device), self._event(work.device))
                for work, own in zip(works, streams_of(works), strict=True)
            ]
            self._first = self._tracks[0]
            self._total = self._event(self._first.device)
            self._gate = Gate(driver, [track.device for track in self._tracks])
        except BaseException:
            self._made.close()
            raise
        self._loops = self._rest = 0
        self._laps: list[Any] = []
        """The event at the end of each lap of what is armed, where there are several."""
        self._spare: list[Any] = []
        """Events for laps."""
        self._armed = False
        self._closed = False
        self.most_loops = most_loops(works)
        least = max(work.least_loops for work in works)
        self.pace = Pace(SAMPLE_SECONDS, least, LAPS if least < IN_PLACE_LOOPS else 1)

    def arm(self, loops: int) -> None:
        """Enqueues warm-up, events and copies behind the shut gate. Loops beyond `most_loops`
        are enqueued once it is open, and may then be paced by the host."""
        self._arm(loops, [])

    def arm_laps(self, loops: int, laps: int) -> None:
        """arm() for all laps; behind each of the first copy's stands an event."""
        while len(self._spare) < laps:
            self._spare.append(self._event(self._first.device))
        self._arm(loops * laps, self._spare[:laps])

    def _arm(self, loops: int, laps: list[Any]) -> None:
        if self._closed:
            raise BackendError("arm", "the group is closed")
        self._gate.shut()
        self._armed = True
        try:
            for track in self._tracks:
                track.device.enter()
                self._gate.enqueue(track.device, track.streams[0])
                if track.work.warm_up:
                    track.enqueue(track.work.warm_up)
            self._record_starts()
            now = min(loops, self.most_loops)
            self._enqueue_first(now, laps)
            for track in self._tracks[1:]:
                track.enqueue(now)
            self._loops, self._rest, self._laps = loops, loops - now, laps
            if self._rest == 0:
                self._record_ends()
        except BackendError:
            self._abandon()
            raise

    def _enqueue_first(self, loops: int, laps: Sequence[Any]) -> None:
        if not laps:
            self._first.enqueue(loops)
        for event in laps:
            self._first.enqueue(loops // len(laps))
            self._driver.call("cuEventRecord", event, self._first.streams[0])

    def open(self) -> None:
        if not self._armed:
            raise BackendError("open", "the group is not armed")
        self._gate.open()
        while self._rest > 0:
            now = min(self._rest, self.most_loops)
            for track in self._tracks:
                track.enqueue(now)
            self._rest -= now
            if self._rest == 0:
                self._record_ends()

    def wait(self) -> Timing:
        """Seconds by CUDA events. Raises BackendError if a device failed or the gate gave up."""
        if not self._armed:
            raise BackendError("wait", "the group is not armed")
        self._first.device.enter()
        self._driver.call("cuEventSynchronize", self._total)
        self._armed = False
        if self._gate.gave_up:
            raise BackendError("gate", f"not opened within {GATE_SECONDS:g} s")
        seconds = self._settled([self._elapsed(track.start, track.end) for track in self._tracks])
        if seconds is None:
            self._arm(self._loops, self._laps)
            self.open()
            return self.wait()
        return Timing(
            seconds=seconds,
            span=self._elapsed(self._first.start, self._total),
            checksums=tuple(track.work.checksum() for track in self._tracks),
            laps=tuple(starmap(self._elapsed, pairwise((self._first.start, *self._laps)))),
        )

    def _settled(self, seconds: Sequence[float]) -> tuple[float, ...] | None:
        """Seconds of all loops of each track; None where interference ended too early."""
        settled = [
            track.work.settle(self._loops, own, seconds[0])
            if isinstance(track.work, Interference)
            else own
            for track, own in zip(self._tracks, seconds, strict=True)
        ]
        whole = tuple(own for own in settled if own is not None)
        return whole if len(whole) == len(settled) else None

    def close(self) -> None:
        """Opens the gate if it is shut, waits for what is enqueued and frees all; idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._armed:
            self._abandon()
        for track in self._tracks:
            track.close()
        with suppress(BackendError):
            self._gate.free()
        self._made.close()

    def _event(self, device: CudaDevice) -> Any:
        """An event of the device, destroyed with the group."""

        def destroy() -> None:
            with suppress(BackendError):
                device.enter()
                self._driver.call("cuEventDestroy", event)

        device.enter()
        flags = self._driver.enums.CUevent_flags.CU_EVENT_DEFAULT
        event = self._driver.call("cuEventCreate", flags)
        self._made.callback(destroy)
        return event

    def _record_starts(self) -> None:
        first = self._first
        for track in self._tracks:
            track.device.enter()
            if track is not first:
                self._driver.call("cuStreamWaitEvent", track.streams[0], first.start, 0)
            self._driver.call("cuEventRecord", track.start, track.streams[0])

    def _record_ends(self) -> None:
        first = self._first
        for track in self._tracks:
            track.device.enter()
            self._driver.call("cuEventRecord", track.end, track.streams[0])
        first.device.enter()
        for track in self._tracks[1:]:
            self._driver.call("cuStreamWaitEvent", first.streams[0], track.end, 0)
        self._driver.call("cuEventRecord", self._total, first.streams[0])

    def _elapsed(self, start: Any, end: Any) -> float:
        return float(self._driver.call("cuEventElapsedTime", start, end)) * _MILLISECONDS

    def _abandon(self) -> None:
        """Lets what is enqueued run out; its failures were reported or no longer matter."""
        self._gate.open()
        self._armed = False
        self._rest = 0
        for track in self._tracks:
            with suppress(BackendError):
                track.device.enter()
                for stream in track.streams:
                    self._driver.call("cuStreamSynchronize", stream)


def streams_of(works: Sequence[Work]) -> list[list[Any]]:
    """For each work, streams of its device that no other work of the group has."""
    used: Counter[int] = Counter()
    streams = []
    for work in works:
        first = used[work.device.index]
        used[work.device.index] += work.streams
        streams.append([work.device.stream(first + i) for i in range(work.streams)])
    return streams


def most_loops(works: Sequence[Work]) -> int:
    """How many loops fit behind the gate on every device, warm-up included; at least one."""
    return min(
        _loops_within(QUEUE, [work for work in works if work.device is device])
        for device in {id(work.device): work.device for work in works}.values()
    )


def _loops_within(room: int, works: Sequence[Work]) -> int:
    def operations(loops: int) -> int:
        return sum(work.operations(loops) for work in works)

    each = operations(2) - operations(1)
    if each == 0:
        return _UNBOUNDED
    fixed = operations(1) - each + len(works) * _OVERHEAD
    warm_up = sum(work.operations(work.warm_up) for work in works if work.warm_up)
    return max(1, (room - fixed - warm_up) // each)
