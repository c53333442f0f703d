"""Backend `net`: interfaces move bytes between ranks. With TCP, the rank whose interface is the
copy's engine measures the time to the last byte. If it sends, the destination confirms arrival."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from socket import socket
from typing import cast

from linkgauge.backends import GPUS, open_backend
from linkgauge.backends.cuda.rank import GpuOfRank
from linkgauge.backends.host_memory import HostRank
from linkgauge.backends.protocol import Addressed, Buffer, Copy, Group, Pattern
from linkgauge.backends.rank import RankBackend, held
from linkgauge.backends.rules import Reason, check_alone, lacking, refused
from linkgauge.machine.host import read_host
from linkgauge.machine.interfaces import from_device, read_interfaces
from linkgauge.machine.processes.launch import Launch
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.hardware.inventory import Interface, Inventory
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import NETWORK, Memory
from linkgauge.model.operations.operation import OperationName, named
from linkgauge.model.ranks import nic_ends
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import NIC_ENGINES, Engine, Transfer

from .group import NetGroup
from .links import SILENT_SECONDS, Door, Key, is_by_tcp, keys_of, reached
from .outside import Outside, Tool, ToolCall, tool_of
from .streams import TcpConnection, bounce
from .tcp_info import counts_of
from .ucx import NO_RDMA, Mapped, Worker, lacks_rdma, library, version
from .ucx_copies import BY_UCX, UcxPart, UcxWorkers


class NetBuffer:
    """A buffer of a rank. With UCX, this rank uses `handle`, and other ranks use `mapped`."""

    worker: Worker | None = None
    handle: int = 0
    mapped: Mapped | None = None

    def __init__(
        self, memory: Memory, inner: Buffer, number: int, by: HostRank | GpuOfRank
    ) -> None:
        self.memory, self.size, self.number = memory, inner.size, number
        self.inner, self.by, self.held = inner, by, ExitStack()
        self.address = cast("Addressed", inner).address
        self.warnings = inner.warnings

    def placement(self) -> Placement:
        return self.inner.placement()

    def free(self) -> None:
        self.held.close()
        self.inner.free()


class NetRank(RankBackend):
    """The backend of one rank. Ranks without a sign of life for `silent` seconds are lost."""

    name = NETWORK

    def __init__(
        self,
        launch: Launch,
        nics: Sequence[Interface],
        silent: float = SILENT_SECONDS,
        gpu: GpuOfRank | None = None,
        lacks_gpu: str | None = None,
    ) -> None:
        self.rank, self._ranks = launch.rank, launch.size
        self._host = HostRank(launch.rank, "TCP, UCX")
        self._made = 0
        self._counted: dict[str, int] = {}
        self._gpu = gpu
        self.gpu = None if gpu is None else gpu.devices()[0]
        self.lacks_gpu = lacks_gpu
        self.nics = nics
        self._silent = silent
        self._door = Door(nics, silent)
        self._workers = UcxWorkers(nics, with_gpu=gpu is not None)

    def devices(self) -> tuple[Device, ...]:
        return self._host.devices()

    def look(self) -> Inventory:
        return Inventory() if self._gpu is None else self._gpu.look()

    def counted(self) -> dict[str, int]:
        counted, self._counted = self._counted, {}
        return counted

    def _count(self, connections: Iterable[socket]) -> None:
        self._counted = counts_of(connections)

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        """Returns why this rank refuses a transfer. None leaves the decision to rank 0."""
        return refused(self._rules(transfer))

    def _rules(self, transfer: Transfer) -> Iterator[tuple[object, Reason]]:
        kind, by_ucx = transfer.engine.kind, transfer.engine.kind in BY_UCX
        one_way = f"network interfaces move bytes one way, by {', '.join(NIC_ENGINES)}"
        yield kind not in NIC_ENGINES or transfer.both_ways, f"{transfer}: {one_way}"
        joined = all(
            not one.kind and (one.is_host or (by_ucx and one.space == GPUS))
            for one in transfer.memories
        )
        more = f" and memory of GPUs ({GPUS})" if by_ucx else ""
        yield not joined, f"{transfer}: {kind} joins pinned host memory{more}"
        if by_ucx:
            try:
                library()
            except Unsupported as missing:
                yield True, missing
            yield kind == "rdma" and lacks_rdma(), Unsupported(NO_RDMA)

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        if transfer.engine.kind not in BY_UCX:
            return ()
        pushes = transfer.engine.owner.rank == transfer.source.rank
        return (f"by {version()}: {'ucp_put_nbx' if pushes else 'ucp_get_nbx'}",)

    def reach(self, memory: Memory, engine: Engine) -> object:
        """Returns a key: engines with equal keys can share a buffer. UCX maps memory for particular
        interfaces, so each UCX engine has a key of its own."""
        return memory, str(engine) if engine.kind in BY_UCX else None

    def _enter(self) -> None:
        """Makes the GPU's context current in this thread, because UCX uses the current one."""
        if self._gpu is not None:
            self._gpu.home.enter()

    def allocate(self, memory: Memory, size: int, engine: Engine) -> NetBuffer:
        """Allocates a buffer in this rank. Raises BackendError or Unsupported if that fails."""
        by: HostRank | GpuOfRank | None = self._host if memory.is_host else self._gpu
        if by is None or (by is self._gpu and by.local(memory) != by.place):
            raise BackendError("allocate", f"{memory} is not here")
        self._made += 1
        number = self._made * self._ranks + self.rank
        made = NetBuffer(memory, by.allocate(memory, size, engine), number, by)
        if engine.kind in BY_UCX:
            self._map(made, engine)
        return made

    def _map(self, buffer: NetBuffer, engine: Engine) -> None:
        self._enter()
        worker = self._workers.of_engine(engine, self.rank)
        handle, mapped = worker.map(buffer.address, buffer.size, buffer.memory.space)
        buffer.worker, buffer.handle, buffer.mapped = worker, handle.value or 0, mapped
        buffer.held.callback(worker.unmap, handle)
        buffer.held.callback(self._enter)  # before it

    def handle(self, buffer: Buffer) -> bytes:
        own = _own(buffer)
        return self._door.handle(own.number, own.mapped)

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        own = _own(buffer)
        own.by.fill(own.inner, size, pattern, seed, inverted)

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        own = _own(buffer)
        return own.by.first_mismatch(own.inner, size, pattern, seed)

    def checksum(self, buffer: Buffer, size: int) -> int:
        own = _own(buffer)
        return own.by.checksum(own.inner, size)

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        """Connects ranks, and returns the group that copies. Raises BackendError if that fails."""
        does = named(operation)
        if does.outside is not None:
            check_alone(copies)
            return self._outside(copies[0], tool_of(does.outside))
        if not (does.is_copy or does.by_flags):
            raise lacking(NETWORK, operation)
        if does.by_flags:
            check_alone(copies)
            if not all(map(is_by_tcp, copies)):
                raise Unsupported("flags bounce over networks by tcp")
        with ExitStack() as made:
            connections = self._door.connected(copies, self.rank)
            for connection in connections.values():
                made.enter_context(connection)
            made.callback(self._count, connections.values())
            own = [
                (place, copy)
                for place, copy in enumerate(copies)
                if self.rank in (copy.transfer.source.rank, copy.transfer.destination.rank)
            ]
            streams = [
                stream
                for place, copy in own
                if is_by_tcp(copy)
                for stream in self._streams_of(place, copy, connections)
            ]
            if does.by_flags:
                return bounce(streams[0], made.pop_all())
            parts = [self._part(place, copy) for place, copy in own if not is_by_tcp(copy)]
            return NetGroup(streams, parts, self._silent, self._enter, made.pop_all())

    def _outside(self, copy: Copy, tool: Tool) -> Outside:
        near, far = nic_ends(copy.transfer)
        is_client = near.rank == self.rank
        own = self.nics[near.nic if is_client else far.nic]
        host, port = None, self._door.outside
        if is_client:
            host, port = self._door.outside_of(copy)
        by_rdma = copy.transfer.engine.kind == "rdma"
        streams = copy.transfer.engine.count or 1
        call = ToolCall(copy.size, 1, streams, own.rdma if by_rdma else None, host, port, Path())
        return Outside(tool, copy.transfer, call, self._silent)

    def _part(self, place: int, copy: Copy) -> UcxPart:
        transfer, sends = copy.transfer, copy.transfer.source.rank == self.rank
        ends = copy.source, copy.destination
        own, other = ends if sends else ends[::-1]
        there, mine = reached(other).mapped, _own(held(own))
        if there is None or mine.worker is None:
            raise BackendError("UCX", f"{transfer}: a buffer is not mapped")
        moves = transfer.engine.owner.rank == self.rank
        memory = mine.address, copy.size, mine.handle
        tag = reached(copy.source).number << 32 | place
        return UcxPart(place, transfer, mine.worker, *memory, there, sends, moves, tag)

    def _streams_of(
        self, place: int, copy: Copy, connections: Mapping[Key, socket]
    ) -> list[TcpConnection]:
        transfer, sends = copy.transfer, copy.transfer.source.rank == self.rank
        address = _own(held(copy.source if sends else copy.destination)).address
        keys = list(keys_of(place, copy))
        if copy.size < len(keys):
            raise Unsupported(f"{transfer}: {copy.size} bytes are fewer than streams")
        bounds = [copy.size * at // len(keys) for at in range(len(keys) + 1)]
        times = transfer.engine.owner.rank == self.rank
        return [
            TcpConnection(
                place, transfer, connections[key], address + begin, end - begin, sends, times
            )
            for key, (begin, end) in zip(keys, pairwise(bounds), strict=True)
        ]

    def leave(self) -> None:
        self._door.turn_away()

    def close(self) -> None:
        with suppress(BackendError):  # of a GPU that is lost
            self._enter()
        self._workers.close()
        if self._gpu is not None:
            self._gpu.close()
        self._door.close()


def _own(buffer: Buffer) -> NetBuffer:
    if not isinstance(buffer, NetBuffer):
        raise TypeError(f"not a buffer that interfaces reach: {buffer!r}")
    return buffer


def create(launch: Launch, settings: Settings, hosts: Sequence[str], *, with_gpu: bool) -> NetRank:
    """Opens the backend. The settings' timeout also limits how long connections may be silent."""
    silent = min(settings.timeout or SILENT_SECONDS, SILENT_SECONDS)
    gpu, lacks = None, None
    if with_gpu:
        try:
            gpu = GpuOfRank(launch, open_backend(GPUS, settings.engines, read_host()))
        except Unsupported as why:
            lacks = str(why)
    nics = read_interfaces()
    if gpu is not None:
        nics = from_device(nics, gpu.devices()[0].pci)
    return NetRank(launch, nics, silent, gpu, lacks)
