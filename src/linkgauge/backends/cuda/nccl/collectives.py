"""How NCCL carries out collectives. As in nccl-tests, one thread of each process makes all calls in
one NCCL group, in native code. The host's clock runs until all streams have finished."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from ctypes import c_int, c_size_t, c_void_p
from functools import partial
from typing import Any, NamedTuple

from linkgauge.backends.cuda.device import CudaDevice
from linkgauge.backends.cuda.memory import CudaBuffer, address_in, ours
from linkgauge.backends.cuda.work import StreamWork, warm_ups
from linkgauge.backends.protocol import Copy
from linkgauge.backends.rules import Reason, of_part
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.operations.collective import Collective
from linkgauge.model.transfer import Transfer

from .calls import CollectivePart
from .group import NcclGroup
from .library import Nccl, open_nccl

# Copies between GPUs of two processes that share no memory: NCCL sends and receives.
#
# Each of the two devices has a work of its own: ncclSend where the source is, ncclRecv where the
# destination is. It waits behind the gate of its own process, and events time it, as other copies.

SOURCE = 0
"""The rank of the source in a communicator of two ranks."""
RANKS = 2
_BYTE = 0
"""NCCL's constant ncclInt8."""
_ENTRIES = 4
"""The queue entries of one NCCL call: a kernel and events."""


class Passage(NamedTuple):
    nccl: Nccl
    communicator: Any
    rank: int


def passing(passage: Passage, copy: Copy) -> StreamWork:
    """Returns this process's part of a copy by NCCL: to send or to receive."""
    sends = passage.rank == SOURCE
    name = "ncclSend" if sends else "ncclRecv"
    buffer = ours(copy.source if sends else copy.destination)
    device, call = buffer.home, passage.nccl.call
    words = (
        c_void_p(buffer.address), c_size_t(copy.size), c_int(_BYTE),
        c_int(RANKS - 1 - passage.rank), c_void_p(passage.communicator.ptr),
    )  # fmt: skip

    def enqueue(streams: Sequence[Any], loops: int) -> None:
        device.enter()
        stream = c_void_p(int(streams[0]))
        for _ in range(loops):
            call(name, *words, stream)

    # One copy before any gate is used: NCCL then connects the devices and loads kernels, which a
    # closed gate would block.
    enqueue([device.stream(0)], 1)
    device.call("cuStreamSynchronize", device.stream(0))
    passage.nccl.check(passage.communicator)
    # The warm-up fills NCCL's buffers: timed loops then put in as many bytes as they take out.
    return StreamWork(device, "nccl", enqueue, (_ENTRIES, 0), warm_up=warm_ups(copy))


ENGINE = "ccl"
_VARIABLES = "NCCL_"
_OLDEST_OF_EIGHT_BITS = 90
"""The lowest compute capability at which NCCL reduces 8-bit floating-point numbers."""


class NcclCommunicators:
    def __init__(self, device_of: Callable[[Memory], CudaDevice]) -> None:
        self._device_of = device_of
        self._nccl: Nccl | None = None
        self._refusal: Unsupported | None = None
        self._joined: dict[object, list[Any]] = {}

    @property
    def nccl(self) -> Nccl:
        """NCCL, loaded at the first use. Raises Unsupported if NCCL is missing."""
        if self._refusal is not None:
            raise self._refusal
        if self._nccl is None:
            try:
                self._nccl = open_nccl()
            except Unsupported as refusal:
                self._refusal = refusal
                raise
        return self._nccl

    def rules(self, transfer: Transfer) -> Iterator[tuple[object, Reason]]:
        yield of_part(transfer)
        try:
            self.nccl  # noqa: B018  # loads it
        except Unsupported as refusal:
            yield True, refusal

    def remarks(self) -> tuple[str, ...]:
        if self._nccl is None:
            return ()
        named = sorted(name for name in os.environ if name.startswith(_VARIABLES))
        own = [f"{name}={os.environ[name]}" for name in named]
        return (f"NCCL {self._nccl.version} ({self._nccl.path})", *own)

    def allocate(self, memory: Memory, size: int) -> CudaBuffer:
        """Allocates device memory by NCCL, as nccl-tests does."""
        nccl, device = self.nccl, self._device_of(memory)
        address = nccl.allocate(device, size)
        free = partial(nccl.free, address)
        return CudaBuffer(memory, size, address, device, free, is_exported=False)

    def token(self) -> bytes:
        return self.nccl.token()

    def group(
        self, copies: Sequence[Copy], work: Collective, tokens: Sequence[bytes] = ()
    ) -> NcclGroup:
        """Returns a collective. Between processes, `tokens` has an NCCL id for each group of ranks.
        Raises Unsupported if NCCL or a device does not support the collective."""
        parts: list[CollectivePart] = []
        for number, ranks in enumerate(work.groups(len(copies))):
            here = [place for place in ranks if copies[place].destination is not None]
            if here:
                token = tokens[number] if tokens else None
                parts += self._parts(copies, work, ranks, here, token)
        return NcclGroup(self.nccl, parts, work, len(copies))

    def _parts(
        self,
        copies: Sequence[Copy],
        work: Collective,
        ranks: Sequence[int],
        here: Sequence[int],
        token: bytes | None,
    ) -> list[CollectivePart]:
        devices = [self._device_of(copies[place].transfer.engine.owner) for place in here]
        _check(work, devices)
        numbered = [(ranks.index(p), d) for p, d in zip(here, devices, strict=True)]
        joined = self._join(token, len(ranks), numbered)
        parts = []
        for place, (rank, device), own in zip(here, numbered, joined, strict=True):
            copy, count = copies[place], len(ranks)
            receive = address_in(copy.destination)
            send = receive if copy.source is None else address_in(copy.source)
            part = place, rank, count, device, own, send, receive, work, copy.size
            parts.append(CollectivePart(*part))
        return parts

    def _join(
        self, token: bytes | None, ranks: int, here: Sequence[tuple[int, CudaDevice]]
    ) -> list[Any]:
        key = token or tuple(device.index for _, device in here)
        if key not in self._joined:
            self._joined[key] = self.nccl.join(token or self.nccl.token(), ranks, here)
        return self._joined[key]

    def passage(self, token: bytes, rank: int, device: CudaDevice) -> Passage:
        """Connects two processes that give the same NCCL id, `token`. Waits for the other one."""
        (joined,) = self._join(token, RANKS, [(rank, device)])
        return Passage(self.nccl, joined, rank)

    def close(self) -> None:
        for joined in self._joined.values():
            with suppress(BackendError):  # a lost device has already been reported
                if self._nccl is not None:
                    self._nccl.leave(joined)
        self._joined.clear()


def _check(work: Collective, devices: Sequence[CudaDevice]) -> None:
    if len({device.index for device in devices}) < len(devices):
        raise Unsupported("ranks share a GPU: NCCL needs one for each")
    oldest = min(device.capability for device in devices)
    if work.type in ("f8e4m3", "f8e5m2") and oldest < _OLDEST_OF_EIGHT_BITS:
        raise Unsupported(f"{work.type} needs compute capability 9.0: the oldest device has less")
