"""What a transfer enqueues: a copy of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from linkgauge.backends.protocol import Copy
from linkgauge.backends.threaded import Worked

from .buffer import own
from .runtime import TorchDevice, calling, current

Streams = Sequence[tuple[TorchDevice, Any]]
"""A stream of each device that takes part (None: it has none), the owner's first."""


class Work(Protocol):
    """`units` are the devices that take part, the one that does the work first; `enqueue` puts
    loops on their current streams."""

    units: tuple[TorchDevice, ...]

    def enqueue(self, loops: int) -> None: ...


class CopyWork:
    """`copy_` of one tensor of bytes to another: torch makes a copy of memory of it. Between
    devices it has the destination's current stream wait for the copy, too, so that this takes a
    stream of both."""

    def __init__(self, units: Sequence[TorchDevice], copy: Copy) -> None:
        self.units = tuple(units)
        self._source = own(copy.source).tensor[: copy.size]
        self._destination = own(copy.destination).tensor[: copy.size]

    def enqueue(self, loops: int) -> None:
        move, source = self._destination.copy_, self._source
        with calling("Tensor.copy_"):
            for _ in range(loops):
                move(source, non_blocking=True)


def threaded(work: Work, streams: Streams) -> Worked:
    """A work that a thread of the host carries out to its end. Streams are chosen by each thread
    for itself, whenever it runs."""

    def run(loops: int) -> None:
        with current(streams):
            work.enqueue(loops)
        for unit, stream in streams:
            unit.finish(stream)

    return Worked(run)


def streams_of(works: Sequence[Work]) -> list[Streams]:
    """Streams for each work that no other work of the group uses."""
    used: dict[int, int] = {}
    found: list[Streams] = []
    for work in works:
        own_streams = []
        for unit in work.units:
            number = used.get(id(unit), 0)
            used[id(unit)] = number + 1
            own_streams.append((unit, unit.stream(number)))
        found.append(own_streams)
    return found
