"""A member with a GPU: other ranks of its machine open its memory by CUDA IPC."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from linkgauge.backends.cuda import CudaBackend
from linkgauge.backends.cuda.collectives import ENGINE
from linkgauge.backends.cuda.flags import Answerer, AnsweringGroup, FlagGroup
from linkgauge.backends.cuda.ipc import export, open_handle
from linkgauge.backends.cuda.memory import address_in, ours
from linkgauge.backends.protocol import Backend, Buffer, Copy, Pattern
from linkgauge.backends.rules import check_flags
from linkgauge.model.collective import Collective
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Operation, Transfer

from .launch import Launch
from .member import BackendMember
from .messages import Lent, Prepared, SharedCopy

_WORD = 8
"""Bytes of a flag."""


def open_cuda(launch: Launch, backend: Backend) -> CudaMember:
    """The member of this rank: its GPU is the one of its number among the ranks of its machine; if
    there are fewer GPUs, ranks share them."""
    if not isinstance(backend, CudaBackend):
        raise TypeError(f"not the cuda backend: {backend!r}")
    return CudaMember(launch, backend)


class CudaMember(BackendMember):
    backend: CudaBackend

    def __init__(self, launch: Launch, backend: CudaBackend) -> None:
        devices = backend.devices()
        super().__init__(launch.rank, backend, devices[launch.local_rank % len(devices)])
        self._machine = socket.gethostname()
        self._gpu = backend.device_of(parse_memory(self._device.memory))
        self._flags: FlagGroup | AnsweringGroup | None = None
        self._flag: Buffer | None = None
        """This side's flag, while flags bounce."""

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        said = super().remarks(transfer)
        by_ipc = transfer.engine.kind != ENGINE
        return (*said, "memory of another process, by CUDA IPC") if by_ipc else said

    def handle(self, buffer: Buffer) -> bytes:
        own = ours(buffer)
        return export(own, self._machine) if own.is_exported else b""

    def opened(self, lent: Lent | None) -> Buffer | None:
        if lent is None or lent.memory.rank == self.rank:
            return super().opened(lent)
        if lent.number not in self.buffers:
            opened = open_handle(lent.handle, self._machine, lent.memory, lent.size, self._gpu)
            self.buffers[lent.number] = opened
        return self.buffers[lent.number]

    def prepare(
        self, copies: Sequence[SharedCopy], operation: Operation, tokens: Sequence[bytes] = ()
    ) -> Prepared:
        if operation == "broadcast":
            raise Unsupported("stores to several GPUs at once take multicast memory (NVLS)")
        if isinstance(operation, Collective):
            return self._collective(copies, operation, tokens)
        if operation != "flag-ping-pong":
            return super().prepare(copies, operation)
        self.close_group()
        return self._bounce(copies[0])

    def token(self) -> bytes:
        return self.backend.collectives.token()

    def _collective(
        self, copies: Sequence[SharedCopy], work: Collective, tokens: Sequence[bytes]
    ) -> Prepared:
        """This rank's part: the others' have no buffers here."""
        self.close_group()
        self._timed = tuple((n, n) for n, copy in enumerate(copies) if self.is_mine(copy))
        if not self._timed:
            return Prepared()
        known = [
            self.copy(copy)
            if self.is_mine(copy)
            else Copy(copy.transfer, None, None, copy.size, copy.seed)
            for copy in copies
        ]
        return self.use(self.backend.collectives.group(known, work, tokens))

    def _bounce(self, copy: SharedCopy) -> Prepared:
        """This side of a ping-pong. Raises Unsupported for what is none."""
        check_flags(self.copy(copy))
        begins = self.is_mine(copy)
        ends = self.opened(copy.source), self.opened(copy.destination)
        self._flag, theirs = ends if begins else ends[::-1]
        addresses = address_in(self._flag), address_in(theirs)
        if begins:
            self._timed = ((0, 0),)
            self._flags = FlagGroup(self._gpu, *addresses)
        else:
            self._flags = AnsweringGroup(Answerer(self._gpu, *addresses))
        prepared = self.use(self._flags)
        return prepared if begins else Prepared()

    def arm(self, loops: int, laps: int) -> None:
        if self._flags is not None and self._flag is not None:
            # Both sides begin with flags of 0, which is no value.
            self.backend.fill(self._flag, _WORD, Pattern.CONSTANT, 0, inverted=False)
            self._flags.next = 1
        super().arm(loops, laps)

    def close_group(self) -> None:
        super().close_group()
        self._flags = self._flag = None
