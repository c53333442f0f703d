"""A member with a GPU: other ranks of its machine open its memory by CUDA IPC, those of its NVLink
domain by fabric handles. What no engine reaches, NCCL sends and receives."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

from linkgauge.backends.cuda import CudaBackend, fabric
from linkgauge.backends.cuda.collectives import ENGINE
from linkgauge.backends.cuda.flags import Answerer, AnsweringGroup, FlagGroup
from linkgauge.backends.cuda.ipc import OutOfReach, export, open_handle
from linkgauge.backends.cuda.memory import address_in, ours
from linkgauge.backends.member import Allocate, BackendMember, Lent, Prepared, SharedCopy
from linkgauge.backends.protocol import Backend, Buffer, Copy, Pattern
from linkgauge.backends.rules import check_flags
from linkgauge.machine.launch import Launch, host_name
from linkgauge.model.collective import Collective
from linkgauge.model.errors import Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.operation import OperationName, named
from linkgauge.model.transfer import Engine, Transfer

from .collectives import Passage

_WORD = 8
"""Bytes of a flag."""
BY_IPC = "memory of another process, by CUDA IPC"
BY_FABRIC = "memory of another machine, by fabric handles"
BY_NCCL = "moved by NCCL send and receive: no shared memory between these machines"


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
        self._machine = host_name()
        self._gpu = backend.device_of(parse_memory(self._device.memory))
        self._flags: FlagGroup | AnsweringGroup | None = None
        self._flag: Buffer | None = None
        """This side's flag, while flags bounce."""
        self._ways: dict[Transfer, str] = {}
        """How the copies prepared last reach the other process."""

    @cached_property
    def _domain(self) -> str | None:
        return self.backend.sensors.domain(self._gpu.index)

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        if transfer.engine.kind == ENGINE:
            return super().remarks(transfer)
        way = self._ways.get(transfer, BY_IPC)
        if way == BY_NCCL:  # which has no settings of engines
            return (way, *self.backend.collectives.remarks())
        return (*super().remarks(transfer), way)

    def allocated(self, memory: Memory, engine: Engine, command: Allocate) -> Buffer:
        if command.abroad:
            with suppress(Unsupported):  # then no engine of another machine reaches it
                return fabric.allocate(memory, command.size, self._gpu)
        return super().allocated(memory, engine, command)

    def handle(self, buffer: Buffer) -> bytes:
        own = ours(buffer)
        if not own.is_exported:
            return b""
        return export(own, self._machine, None if own.fabric is None else self._domain)

    def opened(self, lent: Lent | None) -> Buffer | None:
        if lent is None or lent.memory.rank == self.rank:
            return super().opened(lent)
        if lent.number not in self.buffers:
            self.buffers[lent.number] = open_handle(
                lent.handle, self._machine, lent.memory, lent.size, self._gpu, self._domain
            )
        return self.buffers[lent.number]

    def copy(self, copy: SharedCopy) -> Copy:
        made = super().copy(copy)
        ends = [ours(end) for end in (made.source, made.destination) if end is not None]
        by_fabric = any(end.fabric is not None for end in ends)
        self._ways[copy.transfer] = BY_FABRIC if by_fabric else BY_IPC
        return made

    def reach(self, copies: Sequence[SharedCopy]) -> tuple[str | None, ...]:
        return tuple(map(self._why_apart, copies))

    def _why_apart(self, copy: SharedCopy) -> str | None:
        try:
            self.opened(copy.source)
            self.opened(copy.destination)
        except OutOfReach as why:
            return str(why)
        return None

    def prepare(
        self, copies: Sequence[SharedCopy], operation: OperationName, tokens: Sequence[bytes] = ()
    ) -> Prepared:
        if named(operation).from_one:
            raise Unsupported("stores to several GPUs at once need multicast memory (NVLS)")
        if isinstance(operation, Collective):
            return self._collective(copies, operation, tokens)
        self._ways.clear()
        if named(operation).by_flags:
            self.close_group()
            return self._bounce(copies[0])
        if any(tokens):
            return self._beside_passages(copies, tokens)
        return super().prepare(copies, operation)

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

    def _beside_passages(self, copies: Sequence[SharedCopy], tokens: Sequence[bytes]) -> Prepared:
        """This rank's part of copies of which NCCL carries out those that have a token. Whichever
        ranks two copies have in common make their calls for them in the same order."""
        self.close_group()
        mine: list[Copy] = []
        passages: dict[int, Passage] = {}
        timed: list[tuple[int, int]] = []
        for place, (copy, token) in enumerate(zip(copies, tokens, strict=True)):
            ranks = [memory.rank for memory in copy.transfer.memories]
            if self.is_mine(copy):
                timed.append((place, len(mine)))
            if token and self.rank in ranks:
                passages[len(mine)] = self.backend.collectives.passage(
                    token, ranks.index(self.rank), self._gpu
                )
                mine.append(self._side(copy))
                self._ways[copy.transfer] = BY_NCCL
            elif self.is_mine(copy):
                mine.append(self.copy(copy))
        if not mine:
            return Prepared()
        group = self.backend.prepare_with(mine, None, passages=passages)
        self._timed = tuple(timed)
        prepared = self.use(group)
        return prepared if timed else Prepared(most_loops=group.most_loops)

    def _side(self, copy: SharedCopy) -> Copy:
        """The copy with the buffer of this rank alone, by its own GPU."""
        transfer = self.transfer(copy.transfer)
        own = Engine(parse_memory(self._device.memory), transfer.engine.kind)
        source, destination = (
            self.buffers[lent.number] if lent and lent.memory.rank == self.rank else None
            for lent in (copy.source, copy.destination)
        )
        return Copy(
            transfer.by(own), source, destination, copy.size, copy.seed, warm_ups=copy.warm_ups
        )

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
