"""The backend `cuda` itself: which transfers NVIDIA GPUs can carry out, and how each is set up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from linkgauge.backends.iterations import ThreadedGroup
from linkgauge.backends.offering import Filling
from linkgauge.backends.protocol import Buffer, Copy, Group
from linkgauge.backends.rules import Reason, check_alone, no_node, of_load, refused, settle
from linkgauge.model.errors import BackendError, NoPeerAccess, Unsupported
from linkgauge.model.hardware.inventory import Accelerator, Telemetry
from linkgauge.model.hardware.machine import Device, Node
from linkgauge.model.memory import Memory
from linkgauge.model.notes import STAGED
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import (
    COPY,
    HAND_OVERS,
    PEAK_NAMES,
    PRODUCT_NAMES,
    Operation,
    OperationName,
    named,
)
from linkgauge.model.settings import EngineSettings, Tried
from linkgauge.model.transfer import Engine, Transfer

from . import memory as cuda_memory
from .arrays import ArrayKernels, array_work
from .compiler import Compiler
from .compute import ComputeWork, chase, concurrent
from .device import CudaDevice, PeerAccess
from .driver import Driver
from .flags import device_flags, host_flags
from .group import CudaGroup, streams_of
from .load import loaded
from .matmul import CudaProductWork, Products
from .memory import HOST_KINDS, CudaBuffer, address_in, ours, span_of
from .nccl.collectives import ENGINE, NcclCommunicators, Passage, passing
from .nvml.library import NvmlTelemetry
from .queue import CudaQueue, EnqueuingGroup, by_the_driver, enqueued
from .settings import DEFAULT, CopySettings, chosen, defaults
from .work import (
    StreamWork,
    blocking,
    copying,
    kernel_work,
    peer_copy,
    piece_copies,
    pieces_launch,
    reading,
    writing,
)

UNGATED = frozenset({"pageable", "managed"})
"""Kinds of host memory for which a copy's call may wait until the copy is done."""


class CudaBackend(Filling[CudaBuffer]):
    name = "cuda"
    collects = True
    carried = (
        "copy", "bulk-copy", "chase", "bulk-chase", "enqueue", "copy-ping-pong", "flag-ping-pong",
        "timed-copy", "overlap", *HAND_OVERS, *PEAK_NAMES, *PRODUCT_NAMES,
    )  # fmt: skip

    def __init__(
        self,
        driver: Driver,
        nodes: Sequence[Node],
        engines: EngineSettings,
        compiler: Compiler | None = None,
    ) -> None:
        self._driver = driver
        self._nodes = {node.index: node for node in nodes}
        self._engines = engines
        compiler = compiler or Compiler()
        count = int(driver.call("cuDeviceGetCount"))
        self._devices = [CudaDevice(driver, index, compiler, engines) for index in range(count)]
        self._peers = PeerAccess(driver)
        self._products = Products(driver)
        self.collectives = NcclCommunicators(self.device_of)
        self._arrays = ArrayKernels(self._devices, engines, self._search)
        self.sensors = NvmlTelemetry(self._devices)
        driver.lost_device = self.sensors.lost_device

    def devices(self) -> tuple[Device, ...]:
        return tuple(device.describe() for device in self._devices)

    def inventory(self) -> tuple[Accelerator, ...]:
        return self.sensors.inventory()

    def sense(self, devices: Sequence[Memory]) -> tuple[Telemetry, ...]:
        return self.sensors.sense([device.index or 0 for device in devices])

    def refusal(self, transfer: Transfer) -> Reason | None:
        return refused(self._rules(transfer))

    def _rules(self, transfer: Transfer) -> Iterator[tuple[object, Reason]]:
        owner, kind, here = transfer.engine.owner, transfer.engine.kind, range(len(self._devices))
        absent = owner.space != self.name or (owner.index or 0) not in here
        yield absent, f"no {owner}: this machine has {len(here)} CUDA devices"
        if kind == ENGINE:
            yield from self.collectives.rules(transfer)
            return
        if kind != "sm":
            yield of_load(transfer)
        for memory in transfer.memories:
            yield from self._reach_rules(memory, transfer)
        if kind == "ce":
            one_way = "a copy engine copies one way: join two transfers with '&', or use sm"
            yield transfer.both_ways, one_way
            yield len(transfer.memories) < 2, "a copy engine cannot read or write alone: use sm"

    def _reach_rules(self, memory: Memory, transfer: Transfer) -> Iterator[tuple[object, Reason]]:
        owner, kind, here = transfer.engine.owner, transfer.engine.kind, range(len(self._devices))
        device = self.device_of(owner)
        if memory.is_host:
            yield no_node(memory, self._nodes)
            yield memory.kind not in HOST_KINDS, f"CUDA has no {memory.kind} host memory"
            by_kernel = memory.kind == "pageable" and kind == "sm"
            lacking = by_kernel and not device.attribute("PAGEABLE_MEMORY_ACCESS")
            yield lacking, f"kernels of {owner} do not reach pageable host memory"
            return
        yield memory.space != self.name, f"CUDA does not reach {memory}"
        if memory.rank is not None:  # whoever opens another process's memory finds out
            return
        absent = (memory.index or 0) not in here
        yield absent, f"no {memory}: this machine has {len(here)} CUDA devices"
        peer, access = self.device_of(memory), f"peer access from {owner} to {memory}"
        if peer is device:
            return
        if self._engines.peer_access:
            reaches = self._driver.call("cuDeviceCanAccessPeer", device.handle, peer.handle)
            yield not reaches, NoPeerAccess(f"no {access} (cuDeviceCanAccessPeer)")
        else:
            by_driver = kind == "ce" and device.index in _places(transfer)
            yield not by_driver, NoPeerAccess(f"{access} is not asked for")

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        if transfer.engine.kind == ENGINE:
            return self.collectives.remarks()
        remarks = [
            f"{kind} memory: the driver may copy on the calling thread, so the host's clock times "
            "the copy, with the host's share"
            for kind in sorted(UNGATED & {memory.kind for memory in transfer.memories})
        ]
        remarks += self._products.remarks(transfer)
        remarks += (on_arrays := self._arrays.remarks(transfer))
        if len(transfer.memories) < 2 or on_arrays:
            return tuple(remarks)  # pure reads, writes and chases have no settings
        if self._engines.pieces is not None and not transfer.both_ways:
            return (*remarks, self._engines.pieces.describe(transfer.engine.kind))
        if self._is_left_to_the_driver(transfer):
            return (*remarks, STAGED.text)
        settings = self.settings_of(transfer)
        if settings.in_place:
            remarks.append(
                "from 64 MiB on, every 512-byte chunk is copied for all loops before the next one, "
                "as nvbandwidth does: caches on the way may serve the repeats"
            )
        if settings != defaults(transfer):
            remarks.append(f"{transfer.engine}: {settings.describe(transfer.engine.kind)}")
        return tuple(remarks)

    def reach(self, memory: Memory, engine: Engine) -> object:
        if engine.kind == ENGINE:
            return memory, ENGINE
        # A managed buffer belongs to one device.
        return (memory, engine.owner) if memory.kind == "managed" else memory

    def allocate(self, memory: Memory, size: int, engine: Engine) -> CudaBuffer:
        if engine.kind == ENGINE:
            return self.collectives.allocate(memory, size)
        home = self.device_of(memory if memory.is_device else engine.owner)
        node = self._nodes.get(memory.index or 0) if memory.is_host else None
        alone = len(self._nodes) == 1
        return cuda_memory.allocate(memory, size, home, node, alone)

    def own(self, buffer: Buffer | None) -> CudaBuffer:
        return ours(buffer)

    def begin(self, copies: Sequence[Copy], does: Operation) -> None:
        self._arrays.forget()
        self._ready(copies)

    def moving(self, copies: Sequence[Copy], does: Operation) -> Group:
        if does.array is not None:
            self._arrays.prepare(copies, does)
        return self._gated(copies, DEFAULT if does.is_single else None, does)

    def concurrent(self, group: Group, loads: Sequence[Copy]) -> Group:
        return loaded(self.device_of, group, loads)

    def queue(self, owner: Memory, made: ExitStack) -> CudaQueue:
        return CudaQueue(self.device_of(owner), made)

    def chasing(self, copies: Sequence[Copy], does: Operation) -> CudaGroup:
        check_alone(copies)
        (copy,) = copies
        device = self.device_of(copy.transfer.engine.owner)
        bulk = does.name == "bulk-chase"
        return chase(self._driver, device, ours(copy.source), copy.size, bulk=bulk)

    def multiplying(
        self, copies: Sequence[Copy], does: Operation
    ) -> tuple[CudaGroup, CudaProductWork]:
        check_alone(copies)
        device = self.device_of(copies[0].transfer.engine.owner)
        return self._products.group(device, copies[0], does)

    def _search(self, copy: Copy, operation: OperationName) -> CopySettings | None:
        from .tune import Path, search

        return search(self, Path(copy.transfer, operation), copy)

    def prepare_with(
        self,
        copies: Sequence[Copy],
        settings: CopySettings | None,
        operation: OperationName = "copy",
        passages: Mapping[int, Passage] = {},
    ) -> Group:
        """Prepares copies. If `settings` is None, each copy uses the settings of its path.
        `passages` has the NCCL connections of copies between processes, by the copy's index."""
        self._ready(copies, passages)
        return self._gated(copies, settings, named(operation), passages)

    def _ready(self, copies: Sequence[Copy], passages: Collection[int] = ()) -> None:
        self._settle(copies)
        for place, copy in enumerate(copies):
            if place not in passages:
                self._connect(copy.transfer)

    def _gated(
        self,
        copies: Sequence[Copy],
        settings: CopySettings | None,
        does: Operation,
        passages: Mapping[int, Passage] = {},
    ) -> Group:
        works: list[StreamWork] = []
        try:
            for place, copy in enumerate(copies):
                if place in passages:
                    works.append(passing(passages[place], copy))
                    continue
                own = settings or self.settings_of(copy.transfer, does.name)
                works.append(self._work(copy, own, does))
            kinds = {memory.kind for copy in copies for memory in copy.transfer.memories}
            # The queues cannot hold a loop of pieces behind a gate.
            if kinds & UNGATED or any(work.kind == "graph" for work in works):
                each = zip(works, streams_of(works), strict=True)
                return ThreadedGroup([blocking(*one) for one in each])
            aligned = all(copy.warm_ups is None for copy in copies)
            return CudaGroup(self._driver, works, aligned=aligned, steady=not passages)
        except BaseException:
            for work in works:
                work.close()
            raise

    def computing(
        self, copies: Sequence[Copy], made: ExitStack
    ) -> tuple[ComputeWork, Group, Group, Group]:
        first, *others = copies
        copying = self._gated(others, None, COPY)
        made.callback(copying.close)
        device = self.device_of(first.transfer.engine.owner)
        return concurrent(self._driver, device, copying, made)

    def enqueuing(self, copy: Copy) -> EnqueuingGroup:
        transfer = copy.transfer
        if len(transfer.memories) < 2 or any(m.kind in UNGATED for m in transfer.memories):
            raise Unsupported(f"{transfer}: the driver does not enqueue such copies at once")
        device = self.device_of(transfer.engine.owner)
        if self._is_left_to_the_driver(transfer):
            return by_the_driver(device, self._peer_ends(copy))
        return enqueued(device, copy, self.settings_of(transfer))

    def bouncing(self, copy: Copy) -> Group:
        transfer, flags = copy.transfer, span_of(copy)
        partner = self.device_of(transfer.destination)
        if transfer.source.is_host:
            return host_flags(partner, flags.source)
        device = self.device_of(transfer.source)
        return device_flags(device, partner, flags.source, flags.destination)

    def collecting(self, copies: Sequence[Copy], work: Collective) -> Group:
        return self.collectives.group(copies, work)

    def tune(self, device: int, peer: int | None, report: Callable[[Tried], None]) -> None:
        """Finds and stores the best settings for the model of a device, in 30 to 40 s."""
        from .tune import tune

        try:
            tune(self, device, peer, tell=report)
        except OSError as error:
            raise BackendError("remember the settings", str(error)) from error
        for known in self._devices:
            known.recall()

    def close(self) -> None:
        self.sensors.close()
        self.collectives.close()
        self._products.close()
        self._peers.clear()
        for device in self._devices:
            device.close()

    def device_of(self, memory: Memory) -> CudaDevice:
        return self._devices[memory.index or 0]

    def settings_of(self, transfer: Transfer, operation: OperationName = "copy") -> CopySettings:
        device = self.device_of(transfer.engine.owner)
        return chosen(device.tuned, self._engines, transfer, operation)

    def _work(self, copy: Copy, settings: CopySettings, does: Operation) -> StreamWork:
        device = self.device_of(copy.transfer.engine.owner)
        if does.array is not None:
            return array_work(device, copy, does.array, settings)
        if copy.source is None:
            return writing(device, address_in(copy.destination), copy)
        if copy.destination is None:
            return reading(device, address_in(copy.source), copy)
        return self._copy(device, copy, settings)

    def _copy(self, device: CudaDevice, copy: Copy, settings: CopySettings) -> StreamWork:
        if self._is_left_to_the_driver(copy.transfer):
            return peer_copy(device, self._peer_ends(copy))
        span, pieces = span_of(copy), self._engines.pieces
        if pieces is not None and not copy.transfer.both_ways:
            if copy.transfer.engine.kind == "ce":
                return piece_copies(device, span, pieces)
            return kernel_work(device, pieces_launch(device, span, pieces), True)
        return copying(device, copy, span, settings)

    def _is_left_to_the_driver(self, transfer: Transfer) -> bool:
        return not self._engines.peer_access and len(_places(transfer)) > 1

    def _peer_ends(self, copy: Copy) -> tuple[Any, ...]:
        source, destination = (self.device_of(memory) for memory in copy.transfer.memories)
        into = address_in(copy.destination), destination.context
        return *into, address_in(copy.source), source.context, copy.size

    def _settle(self, copies: Sequence[Copy]) -> None:
        if self._engines.affinity:
            hosts = [m.index or 0 for copy in copies for m in copy.transfer.memories if m.is_host]
            near = hosts or [self.device_of(copies[0].transfer.engine.owner).near]
            settle(self._nodes, near[0])

    def _connect(self, transfer: Transfer) -> None:
        if self._engines.peer_access:
            places = (*transfer.memories, transfer.engine.owner)
            here = (m for m in places if m.is_device and m.rank is None)
            self._peers.connect(map(self.device_of, here))


def _places(transfer: Transfer) -> set[int]:
    return {memory.index or 0 for memory in transfer.memories if memory.is_device}
