"""Members whose network interfaces move bytes between their hosts' memories, by TCP or UCX, and
those of their GPUs, by UCX.

By TCP, the engine's rank times: from before its first call until the last byte is there, of which
the destination's word is the proof if the source has the engine. A copy of several streams has as
many connections, each for a part of the buffer.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ctypes import c_void_p
from pathlib import Path

import msgspec

from linkgauge.backends import GPUS
from linkgauge.backends.member import (
    Allocate,
    Allocated,
    Begin,
    Ended,
    Member,
    Prepared,
    SharedCopy,
    await_time,
)
from linkgauge.backends.protocol import Pace, Pattern
from linkgauge.backends.rules import check_alone, lacking
from linkgauge.machine.interfaces import from_device, read_interfaces
from linkgauge.machine.launch import Launch
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.inventory import Interface, Inventory
from linkgauge.model.machine import Device
from linkgauge.model.memory import NETWORK, Memory
from linkgauge.model.operation import OperationName, named
from linkgauge.model.ranks import nic_ends
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import NIC_ENGINES, Transfer

from .links import SILENT_SECONDS, Door, Key, decode, is_by_tcp, keys_of
from .memory import NetGpu, NetMemory, open_gpu
from .outside import Call, Outside, Tool
from .streams import Bounce, Stream, carry_out
from .tools import tool_of
from .ucx import NO_RDMA, Worker, lacks_rdma, library, version
from .ucx_copies import BY_UCX, Copies, Part, Workers

PACE = Pace(seconds=0.02, loops=2)


class NetMember(Member):
    """This process, its host's memory, its `gpu` if it measures with one, and the interfaces `nics`
    of its network namespace. Nobody is waited for who is `silent` for so many seconds."""

    def __init__(
        self,
        launch: Launch,
        nics: Sequence[Interface],
        silent: float = SILENT_SECONDS,
        gpu: NetGpu | None = None,
        lacks_gpu: str | None = None,
    ) -> None:
        self._rank = launch.rank
        self._memory = NetMemory(launch.rank, gpu)
        self.gpu = None if gpu is None else gpu.device()
        self.lacks_gpu = lacks_gpu
        self.nics = nics
        self._silent = silent
        self._door = Door(nics, silent)
        self._workers = Workers(nics, with_gpu=gpu is not None)
        self._mapped: dict[int, tuple[Worker, c_void_p]] = {}
        """What UCX lets other ranks reach, by the buffer's number."""
        self._parts: list[Part] = []
        self._connections: dict[Key, socket.socket] = {}
        self._streams: list[Stream] = []
        self._bounce: Bounce | None = None
        self._outside: Outside | None = None
        self._loops = 0

    def device(self) -> Device:
        return self._memory.host.device("TCP, UCX")

    def look(self) -> Inventory:
        return Inventory() if self._memory.gpu is None else self._memory.gpu.look()

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        """What no interfaces do. Whether these can is rank 0's to say, which knows both ends."""
        if transfer.engine.kind not in NIC_ENGINES or transfer.both_ways:
            return f"{transfer}: network interfaces move bytes one way, by {', '.join(NIC_ENGINES)}"
        by_ucx = transfer.engine.kind in BY_UCX
        if not all(_is_joined(memory, by_ucx) for memory in transfer.memories):
            more = f" and memory of GPUs ({GPUS})" if by_ucx else ""
            return f"{transfer}: {transfer.engine.kind} joins pinned host memory{more}"
        if by_ucx:
            try:
                library()
            except Unsupported as missing:
                return missing
            if transfer.engine.kind == "rdma" and lacks_rdma():
                return Unsupported(NO_RDMA)
        return None

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        if transfer.engine.kind not in BY_UCX:
            return ()
        pushes = transfer.engine.owner.rank == transfer.source.rank
        return (f"by {version()}: {'ucp_put_nbx' if pushes else 'ucp_get_nbx'}",)

    def allocate(self, command: Allocate) -> Allocated:
        allocated = self._memory.allocate(command)
        mapped = None
        if command.engine.kind in BY_UCX:
            self._memory.enter()
            worker = self._workers.of_engine(command.engine, self._rank)
            address, space = self._memory.address(command.number), command.memory.space
            handle, mapped = worker.map(address, command.size, space)
            self._mapped[command.number] = worker, handle
        return msgspec.structs.replace(allocated, handle=self._door.handle(mapped))

    def free(self, number: int) -> None:
        if number in self._mapped:
            self._memory.enter()
            worker, handle = self._mapped.pop(number)
            worker.unmap(handle)
        self._memory.free(number)

    def fill(self, number: int, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        self._memory.fill(number, size, pattern, seed, inverted)

    def first_mismatch(self, number: int, size: int, pattern: Pattern, seed: int) -> int | None:
        return self._memory.first_mismatch(number, size, pattern, seed)

    def checksum(self, number: int, size: int) -> int:
        return self._memory.checksum(number, size)

    def prepare(
        self, copies: Sequence[SharedCopy], operation: OperationName, tokens: Sequence[bytes] = ()
    ) -> Prepared:
        """Connects. Raises BackendError where that fails. Other ranks may have connected before."""
        self._hang_up()
        does = named(operation)
        if does.outside is not None:
            return self._prepare_outside(copies, tool_of(does.outside))
        if not (does.is_copy or does.by_flags):
            raise lacking(NETWORK, operation)
        if does.by_flags and not all(map(is_by_tcp, copies)):
            raise Unsupported("flags bounce over networks by tcp")
        self._connections = self._door.connected(copies, self._rank)
        own = [
            (place, copy)
            for place, copy in enumerate(copies)
            if self._rank in (copy.transfer.source.rank, copy.transfer.destination.rank)
        ]
        self._streams = [
            stream
            for place, copy in own
            if is_by_tcp(copy)
            for stream in self._streams_of(place, copy)
        ]
        self._parts = [self._part(place, copy) for place, copy in own if not is_by_tcp(copy)]
        if does.by_flags:
            check_alone(copies)  # type: ignore[arg-type]  # counts them
            self._bounce = Bounce(self._streams[0])
            return Prepared(self._bounce.pace if self._streams[0].times else None)
        times = [stream.times for stream in self._streams]
        times += [part.moves for part in self._parts]
        return Prepared(PACE if any(times) else None)

    def _prepare_outside(self, copies: Sequence[SharedCopy], tool: Tool) -> Prepared:
        """Another tool's part at this rank: it has buffers of its own."""
        check_alone(copies)  # type: ignore[arg-type]  # counts them
        (copy,) = copies
        near, far = nic_ends(copy.transfer)
        is_client = near.rank == self._rank
        own = self.nics[near.nic if is_client else far.nic]
        host, port = None, self._door.outside
        if is_client:
            host, port = self._door.outside_of(copy)
        by_rdma = copy.transfer.engine.kind == "rdma"
        call = Call(copy.size, 1, copy.transfer.engine.count or 1, own.rdma if by_rdma else None,
                    host, port, Path())  # fmt: skip
        self._outside = Outside(tool, copy.transfer, 0, call, self._silent)
        return Prepared(tool.pace if is_client else None)

    def _part(self, place: int, copy: SharedCopy) -> Part:
        """This rank's part of a copy by UCX."""
        transfer, source, destination = copy.transfer, copy.source, copy.destination
        if source is None or destination is None:
            raise Unsupported(f"{transfer}: moves nothing between ranks")
        sends = transfer.source.rank == self._rank
        own, other = (source, destination) if sends else (destination, source)
        there = decode(other.handle).mapped
        if there is None:
            raise BackendError("UCX", f"{transfer}: buffer {other.number} is not mapped")
        worker, handle = self._mapped[own.number]
        memory = (self._memory.address(own.number), copy.size, handle.value or 0)
        moves = transfer.engine.owner.rank == self._rank
        tag = source.number << 32 | place
        return Part(place, transfer, worker, *memory, there, sends, moves, tag)

    def _streams_of(self, place: int, copy: SharedCopy) -> list[Stream]:
        """This rank's ends of a copy's streams, each of which has a part of its bytes."""
        transfer = copy.transfer
        sends = transfer.source.rank == self._rank
        lent = copy.source if sends else copy.destination
        if lent is None:
            raise Unsupported(f"{transfer}: moves nothing between ranks")
        address = self._memory.address(lent.number)
        keys = list(keys_of(place, copy))
        if copy.size < len(keys):
            raise Unsupported(f"{transfer}: {copy.size} bytes are fewer than streams")
        bounds = [copy.size * at // len(keys) for at in range(len(keys) + 1)]
        times = transfer.engine.owner.rank == self._rank
        return [
            Stream(
                place, transfer, self._connections[key], address + begin, end - begin, sends, times
            )
            for key, begin, end in zip(keys, bounds[:-1], bounds[1:], strict=True)
        ]

    def arm(self, loops: int, laps: int) -> None:
        self._loops = loops * laps
        if self._outside is not None:
            self._outside.arm(self._loops)
        if self._bounce is not None:
            self._bounce.arm(loops, laps)

    def begin(self, command: Begin) -> Ended:
        if self._outside is not None:
            return self._outside.run(command.at)
        if self._bounce is not None:
            return self._bounce.run(await_time(command.at))
        try:
            opened, ends = self._move(command.at)
        except BaseException:
            self._hang_up()  # so that the other ends notice
            raise
        return Ended(opened, {place: end - opened for place, end in ends.items()})

    def _move(self, at: float | None) -> tuple[float, dict[int, float]]:
        """UCX is used by this thread alone, and connections beside it by others."""
        if not self._parts:
            return carry_out(self._streams, self._loops, at)
        self._memory.enter()
        copies = Copies(self._parts, self._loops, self._silent)
        if not self._streams:
            return await_time(at), copies.run()
        with ThreadPoolExecutor(1) as beside:
            by_tcp = beside.submit(carry_out, self._streams, self._loops, at)
            opened = await_time(at)
            ends = copies.run()
            begun, others = by_tcp.result()
            return min(opened, begun), ends | others

    def close_group(self) -> None:
        self._hang_up()
        self._door.turn_away()

    def _hang_up(self) -> None:
        for connection in self._connections.values():
            connection.close()
        if self._outside is not None:
            self._outside.close()
        self._connections = {}
        self._streams, self._parts, self._bounce, self._outside = [], [], None, None

    def close(self) -> None:
        self.close_group()
        for number in tuple(self._mapped):
            self.free(number)
        with suppress(BackendError):  # of a GPU that is lost
            self._memory.enter()
        self._workers.close()
        self._memory.close()
        self._door.close()


def _is_joined(memory: Memory, by_ucx: bool) -> bool:
    return not memory.kind and (memory.is_host or (by_ucx and memory.space == GPUS))


def open_net(launch: Launch, settings: Settings, *, with_gpu: bool = False) -> NetMember:
    """The time that an answer may take, if it was given, is the time that silence may."""
    silent = min(settings.timeout or SILENT_SECONDS, SILENT_SECONDS)
    gpu, lacks = None, None
    if with_gpu:
        try:
            gpu = open_gpu(launch, settings)
        except Unsupported as why:
            lacks = str(why)
    nics = read_interfaces()
    if gpu is not None:
        nics = from_device(nics, gpu.device().pci)
    return NetMember(launch, nics, silent, gpu, lacks)
