"""A rank with a GPU. Ranks on one machine access each other's memory by CUDA IPC, and ranks in one
NVLink domain by fabric handles. Between all other ranks, NCCL copies."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property, partial

from linkgauge.backends import GPUS, open_backend
from linkgauge.backends.cuda.backend import CudaBackend
from linkgauge.backends.cuda.flags import FlagGroup, FlagKernel, beginning
from linkgauge.backends.cuda.ipc import OutOfReach, allocate_fabric, export, open_handle
from linkgauge.backends.cuda.memory import address_in, ours
from linkgauge.backends.cuda.nccl.collectives import ENGINE, Passage
from linkgauge.backends.protocol import Backend, Buffer, Copy, Group, Pattern
from linkgauge.backends.rank import IdlePart, OfProcess, OwnCopies, crosses, spanned
from linkgauge.backends.rules import check_flags
from linkgauge.machine.host import read_host
from linkgauge.machine.processes.launch import Launch
from linkgauge.model.errors import Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import OperationName, named
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Engine, Transfer

_WORD = 8
"""The bytes of a flag."""
BY_IPC = "memory of another process, by CUDA IPC"
BY_FABRIC = "memory of another machine, by fabric handles"
BY_NCCL = "moved by NCCL send and receive: no shared memory between these machines"


class GpuOfRank(OfProcess):
    """A rank with one GPU, chosen by the rank's number on its machine. Ranks may share a GPU."""

    backend: CudaBackend

    def __init__(self, launch: Launch, backend: Backend) -> None:
        if not isinstance(backend, CudaBackend):
            raise TypeError(f"not the cuda backend: {backend!r}")
        devices = backend.devices()
        super().__init__(launch.rank, backend, devices[launch.local_rank % len(devices)])
        self.place = parse_memory(self._device.memory)
        self.home = backend.device_of(self.place)


class CudaRank(GpuOfRank):
    def __init__(self, launch: Launch, backend: Backend, hosts: Sequence[str]) -> None:
        super().__init__(launch, backend)
        self._hosts = hosts
        self._machine = hosts[launch.rank]
        self._ways: dict[Transfer, str] = {}
        """The way in which each of the last prepared copies reaches the other process."""

    @cached_property
    def _domain(self) -> str | None:
        return self.backend.sensors.domain(self.home.index)

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        if transfer.engine.kind == ENGINE:
            return super().remarks(transfer)
        way = self._ways.get(transfer, BY_IPC)
        if way == BY_NCCL:  # which has no settings of engines
            return (way, *self.backend.collectives.remarks())
        return (*super().remarks(transfer), way)

    def reach(self, memory: Memory, engine: Engine) -> object:
        return super().reach(memory, engine), crosses(self._hosts, memory, engine)

    def allocate(self, memory: Memory, size: int, engine: Engine) -> Buffer:
        if crosses(self._hosts, memory, engine):  # of another machine
            with suppress(Unsupported):  # then no engine of another machine reaches it
                return allocate_fabric(self.local(memory), size, self.home)
        return super().allocate(memory, size, engine)

    def handle(self, buffer: Buffer) -> bytes:
        own = ours(buffer)
        if not own.is_exported:
            return b""
        return export(own, self._machine, None if own.fabric is None else self._domain)

    def opened(self, buffer: Buffer | None) -> Buffer | None:
        """Returns the buffer. Opens another rank's buffer, which the group of transfers closes."""
        if buffer is not None and buffer.memory.rank != self.rank:
            theirs = spanned(buffer)
            theirs.here = theirs.here or open_handle(
                theirs.handle, self._machine, theirs.memory, theirs.size, self.home, self._domain
            )
        return super().opened(buffer)

    def copy(self, copy: Copy) -> Copy:
        made = super().copy(copy)
        ends = [ours(end) for end in (made.source, made.destination) if end is not None]
        by_fabric = any(end.fabric is not None for end in ends)
        self._ways[copy.transfer] = BY_FABRIC if by_fabric else BY_IPC
        return made

    def separate(self, copies: Sequence[Copy]) -> tuple[str | None, ...]:
        return tuple(map(self._why_separate, copies))

    def _why_separate(self, copy: Copy) -> str | None:
        try:
            self.opened(copy.source)
            self.opened(copy.destination)
        except OutOfReach as why:
            return str(why)
        return None

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        if named(operation).from_one:
            raise Unsupported("stores to several GPUs at once need multicast memory (NVLS)")
        if isinstance(operation, Collective):
            return self._collective(copies, operation)
        self._ways.clear()
        if named(operation).by_flags:
            return self._bounce(copies[0])
        if any(self.tokens):
            return self._concurrent_passages(copies)
        return super().prepare(copies, operation)

    def token(self) -> bytes:
        return self.backend.collectives.token()

    def _collective(self, copies: Sequence[Copy], work: Collective) -> Group:
        mine = self.places(copies)
        if not mine:
            return IdlePart()
        known = [
            self.copy(copy)
            if place in mine
            else Copy(copy.transfer, None, None, copy.size, copy.seed)
            for place, copy in enumerate(copies)
        ]
        return OwnCopies(self.backend.collectives.group(known, work, self.tokens), mine)

    def _concurrent_passages(self, copies: Sequence[Copy]) -> Group:
        mine: list[Copy] = []
        passages: dict[int, Passage] = {}
        timed: list[int] = []
        for copy, token in zip(copies, self.tokens, strict=True):
            ranks = [memory.rank for memory in copy.transfer.memories]
            if self.is_mine(copy):
                timed.append(len(mine))
            if token and self.rank in ranks:
                passages[len(mine)] = self.backend.collectives.passage(
                    token, ranks.index(self.rank), self.home
                )
                mine.append(self._side(copy))
                self._ways[copy.transfer] = BY_NCCL
            elif self.is_mine(copy):
                mine.append(self.copy(copy))
        if not mine:
            return IdlePart()
        return OwnCopies(self.backend.prepare_with(mine, None, passages=passages), timed)

    def _side(self, copy: Copy) -> Copy:
        transfer = self.transfer(copy.transfer)
        source, destination = (
            self.opened(end) if end is not None and end.memory.rank == self.rank else None
            for end in (copy.source, copy.destination)
        )
        by_own = transfer.by(Engine(self.place, transfer.engine.kind))
        return Copy(by_own, source, destination, copy.size, copy.seed, warm_ups=copy.warm_ups)

    def _bounce(self, copy: Copy) -> Group:
        check_flags(self.copy(copy))
        ends = self.opened(copy.source), self.opened(copy.destination)
        mine, theirs = ends if self.is_mine(copy) else ends[::-1]
        addresses = address_in(mine), address_in(theirs)
        if self.is_mine(copy):
            group = beginning(self.home, *addresses)
        else:
            group = FlagGroup(None, FlagKernel(self.home, *addresses))
        group.clear = partial(self.backend.fill, ours(mine), _WORD, Pattern.CONSTANT, 0, False)
        return group


def create(launch: Launch, settings: Settings, hosts: Sequence[str], *, with_gpu: bool) -> CudaRank:
    return CudaRank(launch, open_backend(GPUS, settings.engines, read_host()), hosts)
