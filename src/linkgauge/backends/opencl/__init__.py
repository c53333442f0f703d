"""Backend `opencl`: all devices with an OpenCL runtime, and any CPU by PoCL.

The engine `ce` is the runtime's own copy command. The engine `sm` is a kernel of kernels/copy.cl.
`refusals` says what OpenCL cannot measure. `runtime` has the devices and translates errors.
`memory` has the buffers. `group` runs and times copies, `queue` has queues, and `chase` pointer
chases."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from linkgauge.backends.amd import AmdTelemetry
from linkgauge.backends.iterations import Queue
from linkgauge.backends.offering import Holding, imported
from linkgauge.backends.protocol import RESULTS, Backend, Buffer, Copy, Group
from linkgauge.backends.rules import check_alone
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.inventory import Accelerator, Telemetry
from linkgauge.model.hardware.machine import Device, Host, Node
from linkgauge.model.memory import Memory
from linkgauge.model.operations.operation import COPY, PEAK_NAMES, Operation
from linkgauge.model.settings import EngineSettings, Pieces
from linkgauge.model.transfer import Engine, Transfer

from . import refusals

if TYPE_CHECKING:
    from .group import ComputeKernel, OpenCLGroup
    from .memory import OpenCLBuffer
    from .runtime import OpenCLDevice


def create(engines: EngineSettings, host: Host) -> Backend:
    """Opens the backend for all OpenCL devices. Raises Unsupported with the remedy if pyopencl, a
    runtime or a device is missing."""
    imported("pyopencl", "opencl")
    from .runtime import discover

    return OpenCL(discover(), host.nodes, engines.pieces)


class OpenCL(Holding["OpenCLBuffer"]):
    """The OpenCL backend. `units` are the devices, and `nodes` the host's NUMA nodes. With
    `pieces`, transfers are cut into small parts."""

    name = refusals.SPACE
    carried = (
        "copy", "chase", "copy-ping-pong", "timed-copy", "launch", "sync", "overlap", *PEAK_NAMES,
    )  # fmt: skip

    def __init__(
        self, units: Sequence[OpenCLDevice], nodes: Sequence[Node], pieces: Pieces | None = None
    ) -> None:
        super().__init__()
        self._pieces = pieces
        self._units = units
        self._facts = [unit.facts for unit in units]
        self._nodes = {node.index: node for node in nodes}
        self.sensors = AmdTelemetry(self.devices())
        self._of_chase: tuple[str, ...] = ()
        """Remarks on the chase that was prepared last; empty if another group was prepared
        since."""

    def inventory(self) -> tuple[Accelerator, ...]:
        return self.sensors.inventory()

    def sense(self, devices: Sequence[Memory]) -> tuple[Telemetry, ...]:
        return self.sensors.sense(devices)

    def devices(self) -> tuple[Device, ...]:
        return tuple(facts.device for facts in self._facts)

    def refusal(self, transfer: Transfer) -> str | None:
        reason = refusals.refusal(transfer, self._facts, sorted(self._nodes))
        if reason is None and transfer.engine.kind == "sm":
            return self._unit(transfer.engine.owner).no_kernels
        return reason

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        remarks = refusals.remarks(transfer, self._facts) + self._of_chase
        if self._pieces is None or transfer.both_ways or len(transfer.memories) < 2:
            return remarks
        streams = 1 if transfer.engine.kind == "ce" else self._pieces.streams
        return (*remarks, f"pieces of {self._pieces.size} bytes over {streams} streams")

    def reach(self, memory: Memory, engine: Engine) -> object:
        """Returns a key. Engines with equal keys can use the same buffer. Copy commands need a
        mapped buffer, and kernels an unmapped one. A buffer belongs to one OpenCL context."""
        return memory, engine.owner, engine.kind

    def allocate(self, memory: Memory, size: int, engine: Engine) -> Buffer:
        """Allocates memory for one engine. Raises AllocationError if memory is short, and
        Unsupported if pageable memory cannot be placed on its node."""
        from .memory import allocate

        unit = self._unit(memory if memory.is_device else engine.owner)
        node = None if memory.is_device else self._nodes[memory.index or 0]
        alone = len(self._nodes) == 1
        return self.held(allocate(unit, memory, size, engine.kind, node, alone))

    def own(self, buffer: Buffer | None) -> OpenCLBuffer:
        from .memory import own

        return own(buffer)

    def begin(self, copies: Sequence[Copy], does: Operation) -> None:
        self._of_chase = ()

    def queue(self, owner: Memory, made: ExitStack) -> Queue:
        from .queue import OpenCLQueue

        return OpenCLQueue(self._unit(owner))

    def chasing(self, copies: Sequence[Copy], does: Operation) -> OpenCLGroup:
        from .chase import chase, near_cache

        check_alone(copies)
        unit = self._unit(copies[0].transfer.engine.owner)
        self._of_chase = tuple(near_cache(unit, copies[0].size))
        return self.kept(chase(unit, copies[0]))

    def computing(
        self, copies: Sequence[Copy], made: ExitStack
    ) -> tuple[ComputeKernel, Group, Group, Group]:
        from .group import ComputeKernel, OpenCLGroup

        first, *others = copies
        copying = self.moving(others, COPY)
        kernel = ComputeKernel(self._unit(first.transfer.engine.owner))
        alone, together = OpenCLGroup([kernel.lane]), OpenCLGroup([kernel.lane, *copying.lanes])
        for group in (copying, alone, together):
            made.callback(self.kept(group).close)
        return kernel, alone, copying, together

    def moving(self, copies: Sequence[Copy], does: Operation) -> OpenCLGroup:
        from .group import OpenCLGroup, copy_lane

        work = [(self._unit(copy.transfer.engine.owner), copy) for copy in copies]
        pieces = self._pieces if does.array is None else None
        makes = RESULTS.get(does.array.kind) if does.array is not None else None
        for unit in {id(unit): unit for unit, _ in work if makes is not None}.values():
            if not unit.has_doubles:
                place = unit.facts.device.memory
                raise Unsupported(f"{place} has no double precision, which {does.name} needs")
        return self.kept(OpenCLGroup([copy_lane(unit, copy, pieces, makes) for unit, copy in work]))

    def close(self) -> None:
        super().close()
        for unit in self._units:
            unit.free_spare()

    def _unit(self, memory: Memory) -> OpenCLDevice:
        return self._units[memory.index or 0]
