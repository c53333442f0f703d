"""Buffers kept between cells: allocating, touching and pinning cost more than a sample."""

from __future__ import annotations

from collections import OrderedDict

from linkgauge.backends.protocol import Backend, Buffer
from linkgauge.model.errors import AllocationError
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Engine

_Key = tuple[str, Memory, object, int, int]
SETS = 4
"""Sets of buffers that visits rotate through: where memory lies partly decides its speed."""


class BufferPool:
    """Lends buffers to one cell at a time, and frees the least recently used when room is short.

    `budget` is how many bytes of host memory it may hold before it frees idle buffers (None: until
    an allocation fails). Devices' own memory does not count.
    """

    def __init__(self, budget: int | None = None) -> None:
        self._budget = budget
        self._idle: OrderedDict[_Key, list[Buffer]] = OrderedDict()
        """Idle buffers by what they can be used for, least recently used first."""
        self._on_host: dict[Memory, bool] = {}
        """Whether each memory's bytes are the host's."""
        self._shares_host: dict[str, dict[str, bool]] = {}
        """The same of each backend's devices."""
        self._idle_bytes = 0
        """Idle bytes of host memory."""
        self._lent: list[tuple[_Key, Buffer]] = []

    def lend(
        self, backend: Backend, memory: Memory, size: int, engine: Engine, visit: int = 0
    ) -> Buffer:
        """A buffer of exactly `size` bytes that no other transfer of the cell uses, nor the `SETS`
        - 1 visits before and after this one."""
        key = (backend.name, memory, backend.reach(memory, engine), size, visit % SETS)
        if memory not in self._on_host:
            if backend.name not in self._shares_host:
                own = {one.memory: one.shares_host_memory for one in backend.devices()}
                self._shares_host[backend.name] = own
            of_device = self._shares_host[backend.name].get(str(memory.place))
            self._on_host[memory] = of_device is not False
        buffer = self._unused(key) or self._allocate(backend, memory, size, engine)
        self._lent.append((key, buffer))
        return buffer

    def _unused(self, key: _Key) -> Buffer | None:
        """Takes an idle buffer out of the pool."""
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
        """Ends the cell: its buffers may be lent again."""
        for key, buffer in self._lent:
            self._idle.setdefault(key, []).append(buffer)
            self._idle.move_to_end(key)
            self._idle_bytes += self._host_bytes(buffer)
        self._lent.clear()

    def free_idle(self) -> None:
        while self._idle:
            self._free_one(next(iter(self._idle)))

    def _trim(self, keep_bytes: int) -> None:
        """Frees idle buffers of host memory, least recently used first, until they hold at most
        this much."""
        for key in tuple(self._idle):
            while self._on_host[key[1]] and key in self._idle:
                if self._idle_bytes <= keep_bytes:
                    return
                self._free_one(key)

    def _free_one(self, key: _Key) -> None:
        buffer = self._unused(key)
        if buffer is not None:
            buffer.free()

    def _host_bytes(self, buffer: Buffer) -> int:
        return buffer.size if self._on_host[buffer.memory] else 0
