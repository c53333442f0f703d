"""The backend `torch`: all devices that torch supports, such as `torch:cuda:0` (also AMD's), and
the CPU. `ce` copies a tensor, `sm` computes on tensors. A vendor's own backend measures more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from linkgauge.backends import rules
from linkgauge.backends.amd import AmdTelemetry
from linkgauge.backends.iterations import ThreadedGroup
from linkgauge.backends.offering import Holding, imported
from linkgauge.backends.protocol import Backend, Buffer, Copy, Group
from linkgauge.model.errors import NoPeerAccess, Unsupported
from linkgauge.model.hardware.inventory import Accelerator, Telemetry
from linkgauge.model.hardware.machine import Device, Host, Node
from linkgauge.model.memory import STAGING, Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.operation import ARRAYS, PEAK_NAMES, PRODUCT_NAMES, Operation
from linkgauge.model.operations.workload import Workload
from linkgauge.model.settings import EngineSettings
from linkgauge.model.transfer import Engine, Transfer
from linkgauge.registry import operation

from .buffer import TorchBuffer, allocate, own
from .gated import NO_READS, GatedGroup, GatedWork, by_kernel, copying, streams_of, threaded
from .matmul import TorchProductWork
from .runtime import TorchDevice, TorchFacts, discover


def create(engines: EngineSettings, host: Host) -> Backend:
    """Opens the backend. Raises Unsupported if torch is missing or cannot be loaded."""
    return TorchBackend(discover(imported("torch", "ai")), host.nodes, engines)


class TorchBackend(Holding[TorchBuffer]):
    name = "torch"
    carried = ("copy", *(name for name in PEAK_NAMES if ARRAYS[name].written), *PRODUCT_NAMES)

    def __init__(
        self,
        units: Sequence[TorchDevice],
        nodes: Sequence[Node],
        engines: EngineSettings = EngineSettings(),  # noqa: B008
    ) -> None:
        super().__init__()
        self._engines = engines
        self._units = {unit.memory: unit for unit in units}
        self._nodes = {node.index: node for node in nodes}
        self.sensors = AmdTelemetry(self.devices())
        self._workloads: Any = None

    def inventory(self) -> tuple[Accelerator, ...]:
        """Returns facts about AMD's GPUs only, because the backend `cuda` reports NVIDIA's GPUs."""
        return tuple(
            replace(one, **self._units[parse_memory(one.memory)].supported())
            for one in self.sensors.inventory()
        )

    def sense(self, devices: Sequence[Memory]) -> tuple[Telemetry, ...]:
        return self.sensors.sense(devices)

    def devices(self) -> tuple[Device, ...]:
        return tuple(unit.facts.device for unit in self._units.values())

    def refusal(self, transfer: Transfer) -> rules.Reason | None:
        return rules.refused(self._rules(transfer))

    def _rules(self, transfer: Transfer) -> Iterator[tuple[object, rules.Reason]]:
        engine, ends = transfer.engine, transfer.memories
        yield from rules.of_places(transfer, "torch", self._units, self._nodes)
        yield from rules.of_copy_engine(transfer)
        own = "kernels of torch reach the memory of their own device alone: use ce"
        by_kernel = engine.kind == "sm" and engine.owner.is_device
        one_way = "torch copies one way at a time: join two transfers with '&' instead"
        yield transfer.both_ways, one_way
        yield by_kernel and any(memory.place != engine.owner for memory in ends), own
        yield from rules.of_ends(transfer, "a device of torch")
        several = "mpiexec -n 2 linkgauge run all_reduce --backend torch"
        for_each = f"collectives by torch take a process for each device: {several}"
        yield engine.kind not in ("ce", "sm"), for_each
        yield len(ends) == 1 and transfer.destination.is_null, NO_READS
        owner = self._units[engine.owner].facts
        for memory in ends:
            if memory.is_host:
                yield from _host_rules(memory, owner, len(self._nodes))
        if len({memory.place for memory in ends if memory.is_device}) == 2:
            yield from _pair_rules(transfer, owner.peers)

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        return tuple(self._remarks(transfer))

    def _remarks(self, transfer: Transfer) -> Iterator[str]:
        if not self._is_gated(transfer):
            yield "timed by the host's clock, until the device has finished: its calls count"
        if not transfer.memories:
            notes = self._units[transfer.engine.owner].facts.device.notes
            yield f"products by torch.matmul ({notes[0]})"
        yield from rules.one_dram((memory.place for memory in transfer.memories), self.devices())

    def _is_gated(self, transfer: Transfer) -> bool:
        """Whether copies can wait at a gate (start signal). Copies of pageable memory cannot."""
        pageable = any(memory.kind == "pageable" for memory in transfer.memories)
        return self._units[transfer.engine.owner].facts.gated and not pageable

    def reach(self, memory: Memory, engine: Engine) -> object:
        """Returns a key. Engines of devices of one type have equal keys and share buffers."""
        return memory, engine.owner.space

    def allocate(self, memory: Memory, size: int, engine: Engine) -> Buffer:
        unit = self._units[memory if memory.is_device else engine.owner]
        node = self._nodes.get(memory.index or 0) if memory.is_host else None
        if memory.is_host and node is None:
            raise Unsupported(f"no node {memory.place} on this machine")
        return self.held(allocate(unit, memory, size, node, len(self._nodes) == 1))

    def own(self, buffer: Buffer | None) -> TorchBuffer:
        return own(buffer)

    def begin(self, copies: Sequence[Copy], does: Operation) -> None:
        hosts = [m.index or 0 for copy in copies for m in copy.transfer.memories if m.is_host]
        self._settle(copies[0].transfer.engine.owner, *hosts)

    def _settle(self, owner: Memory, *nodes: int) -> None:
        unit = self._units[owner]
        if self._engines.affinity and not unit.is_cpu:
            rules.settle(self._nodes, (*nodes, unit.facts.device.near)[0])

    def moving(self, copies: Sequence[Copy], does: Operation) -> Group:
        return self._group(copies, [self._work(copy, does) for copy in copies])

    def multiplying(
        self, copies: Sequence[Copy], does: Operation
    ) -> tuple[Group, TorchProductWork]:
        rules.check_alone(copies)
        unit = self._units[copies[0].transfer.engine.owner]
        work = TorchProductWork(unit, copies[0], does.name)
        return self._group(copies, [GatedWork((unit,), work.enqueue)]), work

    def carry_out(self, transfer: Transfer, workload: Workload) -> Group:
        """Prepares an AI workload. Raises Unsupported if it exceeds the device's memory."""
        unit = self._units[transfer.engine.owner]
        self._settle(unit.memory)
        self._workloads = self._workloads or operation("torch.workload")(unit.torch)
        group: Group = self._workloads.group(unit.device, unit.memory, workload)
        return self.kept(group)

    def _group(self, copies: Sequence[Copy], works: Sequence[GatedWork]) -> Group:
        if all(self._is_gated(copy.transfer) for copy in copies):
            return self.kept(GatedGroup(works))
        each = zip(works, streams_of(works), strict=True)
        return self.kept(ThreadedGroup([threaded(*one) for one in each]))

    def _work(self, copy: Copy, does: Operation) -> GatedWork:
        owner = copy.transfer.engine.owner
        if copy.transfer.engine.kind == "sm":
            return by_kernel(self._units[owner], copy, does)
        places = dict.fromkeys((owner, *copy.transfer.memories))
        return copying([self._units[place] for place in places if place.is_device], copy)

    def unit(self, memory: Memory) -> TorchDevice:
        return self._units[memory]

    def close(self) -> None:
        super().close()
        if self._workloads is not None:
            self._workloads.close()


def _host_rules(memory: Memory, owner: TorchFacts, nodes: int) -> Iterator[rules.Rule]:
    kind = memory.kind
    yield kind not in ("", "pageable", "huge", STAGING), f"torch has no {kind} host memory"
    if not owner.binds and kind != "pageable":
        itself = f"torch allocates pinned memory for {owner.type} itself"
        yield kind != "", f"{itself}: use host:N or host:N/pageable"
        problem = f"torch cannot bind pinned memory for {owner.type}"
        yield rules.unbound(problem, memory, owner.device, nodes)


def _pair_rules(transfer: Transfer, peers: Sequence[str]) -> Iterator[tuple[object, rules.Reason]]:
    source, destination = transfer.source, transfer.destination
    separate = source.space != destination.space
    yield separate, f"torch copies from {source} to {destination} by way of the host"
    alone = f"torch copies between devices on a stream of the source ({source}): a write alone"
    yield transfer.engine.owner != source, alone
    unreached = f"no peer access from {source} to {destination}: torch uses the host"
    yield str(destination) not in peers, NoPeerAccess(unreached)
