"""Backend `torch`: all devices that torch supports, used through tensors, streams and events. These
are CUDA, ROCm, XPU, MPS, NPUs with a vendor's extension for torch, and torch's `cpu`.

Memories are named as in torch: `torch:cuda:0` (also for AMD's GPUs), `torch:xpu:1`, `torch:cpu:0`.
Host memories are `host:N` (pinned), `host:N/huge` and `host:N/pageable`. The engine `ce` is torch's
copy of a tensor. The engine `sm` stands for torch's operations on tensors. A backend for one
vendor's devices is better: it can use the engines of both ends, measures more operations, and needs
no torch. `refusals` says what torch cannot measure. `runtime` has the devices and translates
errors. `buffer` and `content` have the tensors. `gated` runs and times copies, `kernels` has
operations on tensors, and `matmul` matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from linkgauge.backends.amd import AmdTelemetry
from linkgauge.backends.offering import Holding, imported
from linkgauge.backends.protocol import Backend, Buffer, Copy, Group
from linkgauge.backends.rules import check_alone, settle
from linkgauge.backends.threaded import ThreadedGroup
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.inventory import Accelerator, Telemetry
from linkgauge.model.hardware.machine import Device, Host, Node
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.operation import ARRAYS, PEAK_NAMES, PRODUCT_NAMES, Operation
from linkgauge.model.operations.workload import Workload
from linkgauge.model.settings import EngineSettings
from linkgauge.model.transfer import Engine, Transfer
from linkgauge.registry import operation

from . import refusals
from .buffer import TorchBuffer, allocate, own
from .gated import GatedGroup, GatedWork, copying, streams_of, threaded
from .kernels import by_kernel
from .matmul import TorchProductWork
from .runtime import TorchDevice, discover


def create(engines: EngineSettings, host: Host) -> Backend:
    """Opens the backend for all devices of torch. Raises Unsupported if torch is missing or cannot
    be loaded."""
    return TorchBackend(discover(imported("torch", "ai")), host.nodes, engines)


class TorchBackend(Holding[TorchBuffer]):
    """The torch backend. `units` are the devices, and `nodes` the host's NUMA nodes."""

    name = refusals.SPACE
    carried = ("copy", *(name for name in PEAK_NAMES if ARRAYS[name].written), *PRODUCT_NAMES)

    def __init__(
        self,
        units: Sequence[TorchDevice],
        nodes: Sequence[Node],
        engines: EngineSettings = EngineSettings(),  # noqa: B008
    ) -> None:
        super().__init__()
        self._engines = engines
        self._facts = [unit.facts for unit in units]
        self._units = {unit.memory: unit for unit in units}
        self._nodes = {node.index: node for node in nodes}
        self.sensors = AmdTelemetry(self.devices())
        self._workloads: Any = None

    def inventory(self) -> tuple[Accelerator, ...]:
        """Returns facts about AMD's GPUs. Facts about NVIDIA's GPUs come from the backend
        `cuda`."""
        return tuple(
            replace(one, **self._units[parse_memory(one.memory)].supported())
            for one in self.sensors.inventory()
        )

    def sense(self, devices: Sequence[Memory]) -> tuple[Telemetry, ...]:
        return self.sensors.sense(devices)

    def devices(self) -> tuple[Device, ...]:
        return tuple(facts.device for facts in self._facts)

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        return refusals.refusal(transfer, self._facts, sorted(self._nodes))

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        return refusals.remarks(transfer, self._facts)

    def reach(self, memory: Memory, engine: Engine) -> object:
        """Returns a key. Engines with equal keys can use the same buffer. All devices of a kind can
        use the same pinned memory."""
        return memory, engine.owner.space

    def allocate(self, memory: Memory, size: int, engine: Engine) -> Buffer:
        """Allocates memory. Raises AllocationError if memory is short, and Unsupported if host
        memory cannot be placed on its node."""
        unit = self._units[memory if memory.is_device else engine.owner]
        node = self._nodes.get(memory.index or 0) if memory.is_host else None
        if memory.is_host and node is None:
            raise Unsupported(f"no node {memory.place} on this machine")
        buffer = allocate(unit, memory, size, node, len(self._nodes) == 1)
        return self.held(buffer)

    def own(self, buffer: Buffer | None) -> TorchBuffer:
        return own(buffer)

    def begin(self, copies: Sequence[Copy], does: Operation) -> None:
        self._settle(copies)

    def moving(self, copies: Sequence[Copy], does: Operation) -> Group:
        return self._group(copies, [self._work(copy, does) for copy in copies])

    def multiplying(
        self, copies: Sequence[Copy], does: Operation
    ) -> tuple[Group, TorchProductWork]:
        check_alone(copies)
        unit = self._units[copies[0].transfer.engine.owner]
        work = TorchProductWork(unit, copies[0], does.name)
        return self._group(copies, [GatedWork((unit,), work.enqueue)]), work

    def carry_out(self, transfer: Transfer, workload: Workload) -> Group:
        """Returns a group that runs an AI workload on the device of the transfer's engine. Raises
        Unsupported if the workload does not fit on the device."""
        unit = self._units[transfer.engine.owner]
        if self._engines.affinity and not unit.is_cpu:
            settle(self._nodes, unit.facts.device.near)
        self._workloads = self._workloads or operation("torch.workload")(unit.torch)
        group: Group = self._workloads.group(unit.device, unit.memory, workload)
        return self.kept(group)

    def _group(self, copies: Sequence[Copy], works: Sequence[GatedWork]) -> Group:
        """Returns a group for these copies. Events measure the times if they can do so for all
        copies."""
        known = refusals.known_by(self._facts)
        gated = all(
            refusals.is_gated(copy.transfer, known[copy.transfer.engine.owner]) for copy in copies
        )
        if gated:
            return self.kept(GatedGroup(works))
        each = zip(works, streams_of(works), strict=True)
        return self.kept(ThreadedGroup([threaded(*one) for one in each]))

    def _work(self, copy: Copy, does: Operation) -> GatedWork:
        units = self._units_of(copy.transfer)
        if copy.transfer.engine.kind == "sm":
            return by_kernel(units[0], copy, does)
        return copying(units, copy)

    def unit(self, memory: Memory) -> TorchDevice:
        """Returns the device that has this memory."""
        return self._units[memory]

    def _units_of(self, transfer: Transfer) -> list[TorchDevice]:
        """Returns the devices that take part in a transfer. The owner of the engine comes first."""
        places = (transfer.engine.owner, *transfer.memories)
        return [self._units[place] for place in dict.fromkeys(places) if place.is_device]

    def _settle(self, copies: Sequence[Copy]) -> None:
        """Moves this thread to the NUMA node of the host memory, or else to the node near the
        device. torch's device `cpu` uses all CPUs."""
        owner = self._units[copies[0].transfer.engine.owner]
        if self._engines.affinity and not owner.is_cpu:
            hosts = [m.index or 0 for copy in copies for m in copy.transfer.memories if m.is_host]
            settle(self._nodes, hosts[0] if hosts else owner.facts.device.near)

    def close(self) -> None:
        super().close()
        if self._workloads is not None:
            self._workloads.close()
