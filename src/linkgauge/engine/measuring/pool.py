"""Keeps buffers between cells: allocating, touching and pinning them cost more than a sample."""

from __future__ import annotations

from collections import OrderedDict
from operator import attrgetter
from typing import NamedTuple

from linkgauge.backends.protocol import Backend, Buffer, Pattern
from linkgauge.model.errors import AllocationError
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Engine, Transfer

_Key = tuple[str, Memory, object, int, int]


class Content(NamedTuple):
    """The content of a buffer, as arguments of `Backend.fill`."""

    size: int
    pattern: Pattern
    seed: int
    inverted: bool


SETS = 4
"""The sets of buffers that repetitions rotate through, because the speed of memory partly depends
on its addresses."""


class BufferPool:
    """Lends buffers to one cell at a time. `budget` is in bytes of host memory; devices' memory
    does not count. If a new buffer would exceed the budget, the least recently used idle buffers
    are freed first. If `budget` is None, idle buffers are freed only when an allocation fails."""

    def __init__(self, budget: int | None = None) -> None:
        self._budget = budget
        self._idle: OrderedDict[_Key, list[Buffer]] = OrderedDict()
        """Idle buffers by what they can be used for, least recently used first."""
        self._on_host: dict[Memory, bool] = {}
        """Whether each memory's bytes are the host's."""
        self._shares_host: dict[str, dict[str, bool]] = {}
        """Whether each of a backend's devices shares the host's memory, by backend."""
        self._idle_bytes = 0
        """The idle bytes of host memory."""
        self._lent: list[tuple[_Key, Buffer]] = []
        self._before: dict[int, Content] = {}
        """The known contents of lent buffers before this repetition."""
        self._after: dict[int, Content] = {}
        """The known contents of buffers after their last repetition."""

    def lend(
        self, backend: Backend, memory: Memory, size: int, engine: Engine, repetition: int = 0
    ) -> Buffer:
        """Returns a buffer of exactly `size` bytes, which no other transfer of the cell uses.
        Repetitions use `SETS` buffers in turn."""
        key = (backend.name, memory, backend.reach(memory, engine), size, repetition % SETS)
        if memory not in self._on_host:
            if backend.name not in self._shares_host:
                own = map(attrgetter("memory", "shares_host_memory"), backend.devices())
                self._shares_host[backend.name] = dict(own)
            of_device = self._shares_host[backend.name].get(str(memory.place))
            self._on_host[memory] = of_device is not False
        buffer = self._unused(key) or self._allocate(backend, memory, size, engine)
        self._lent.append((key, buffer))
        if (content := self._after.pop(id(buffer), None)) is not None:
            self._before[id(buffer)] = content
        return buffer

    def is_held(self, buffer: Buffer, content: Content) -> bool:
        return self._before.get(id(buffer)) == content

    def know(self, buffer: Buffer, content: Content) -> None:
        """Remembers the content of a lent buffer after the repetition, until it is lent again."""
        self._after[id(buffer)] = content

    def _unused(self, key: _Key) -> Buffer | None:
        kept = self._idle.get(key)
        if not kept:
            return None
        buffer = kept.pop(0)
        self._idle_bytes -= self._host_bytes(buffer)
        if not kept:
            del self._idle[key]
        return buffer

    def _allocate(self, backend: Backend, memory: Memory, size: int, engine: Engine) -> Buffer:
        if self._budget is not None and self._on_host[memory]:
            # Allocating first and freeing after a failure would wake the OOM killer.
            lent = sum(self._host_bytes(buffer) for _, buffer in self._lent)
            self._trim(max(0, self._budget - lent - size))
        try:
            return backend.allocate(memory, size, engine)
        except AllocationError:
            if not self._idle:
                raise
            self.free_idle()
            return backend.allocate(memory, size, engine)

    def take_back(self) -> None:
        for key, buffer in self._lent:
            self._idle.setdefault(key, []).append(buffer)
            self._idle.move_to_end(key)
            self._idle_bytes += self._host_bytes(buffer)
        self._lent.clear()
        self._before.clear()

    def free_idle(self) -> None:
        while self._idle:
            self._free_one(next(iter(self._idle)))

    def _trim(self, keep_bytes: int) -> None:
        for key in tuple(self._idle):
            while self._on_host[key[1]] and key in self._idle:
                if self._idle_bytes <= keep_bytes:
                    return
                self._free_one(key)

    def _free_one(self, key: _Key) -> None:
        buffer = self._unused(key)
        if buffer is not None:
            self._after.pop(id(buffer), None)
            buffer.free()

    def _host_bytes(self, buffer: Buffer) -> int:
        return buffer.size if self._on_host[buffer.memory] else 0


def touches(transfer: Transfer) -> bool:
    return transfer.source.is_staging or transfer.destination.is_staging
