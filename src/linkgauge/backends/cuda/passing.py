"""Copies between GPUs of two processes that share no memory: NCCL sends and receives.

Each of the two devices has a work of its own: ncclSend where the source is, ncclRecv where the
destination is. It waits behind the gate of its own process, and events time it, as other copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int, c_size_t, c_void_p
from typing import Any, NamedTuple

from linkgauge.backends.protocol import Copy

from .memory import ours
from .nccl import Nccl
from .work import StreamWork, warm_ups

SOURCE, DESTINATION = 0, 1
"""Their ranks in a communicator."""
RANKS = 2
_BYTE = 0
"""ncclInt8."""
_ENTRIES = 4
"""Entries of the driver's queues that a call of NCCL takes: its kernel, and events around it."""


class Passage(NamedTuple):
    """One side of a copy: the communicator of its two ranks, in which this process is `rank`."""

    nccl: Nccl
    communicator: Any
    rank: int


class PassingWork(StreamWork):
    """One side's calls. The warm-up fills what NCCL buffers: from the start event to the end event
    as many bytes leave it as enter it."""

    def __init__(self, passage: Passage, copy: Copy) -> None:
        buffer = ours(copy.source if passage.rank == SOURCE else copy.destination)
        super().__init__(buffer.home)
        self.warm_up = warm_ups(copy)
        self._nccl = passage.nccl
        self._communicator = passage.communicator
        self._name = "ncclSend" if passage.rank == SOURCE else "ncclRecv"
        self._words = (
            c_void_p(buffer.address), c_size_t(copy.size), c_int(_BYTE),
            c_int(RANKS - 1 - passage.rank), c_void_p(passage.communicator.ptr),
        )  # fmt: skip
        self._connect()

    def _connect(self) -> None:
        """The first copy, while nothing holds the device back: NCCL then connects the two devices,
        and loads its kernels, for which either waits."""
        stream = self.device.stream(0)
        self.enqueue([stream], 1)
        self.device.call("cuStreamSynchronize", stream)
        self._nccl.check(self._communicator)

    def operations(self, loops: int) -> int:
        return loops * _ENTRIES

    def enqueue(self, streams: Sequence[Any], loops: int) -> None:
        self.device.enter()
        stream = c_void_p(int(streams[0]))
        for _ in range(loops):
            self._nccl.call(self._name, *self._words, stream)
