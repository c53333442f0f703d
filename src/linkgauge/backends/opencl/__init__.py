"""Backend `opencl`: devices of any vendor's OpenCL runtime, and PoCL's on any CPU.

`ce` is the runtime's own copy command, `sm` a kernel of kernels/copy.cl. The modules: reasons for
refusal (refusals), devices and error translation (runtime), buffers (buffer, device_memory,
host_memory), concurrent timed copies (group), a kernel beside them (compute), copies there and
back (copy_ping_pong) and pointer chases (chase).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from linkgauge.backends.amd import AmdTelemetry
from linkgauge.backends.iterations import single_iterations
from linkgauge.backends.overlap import OverlapGroup, fit
from linkgauge.backends.protocol import RESULTS, Backend, Buffer, Copy, Group, Pattern
from linkgauge.backends.rules import (
    check_alone,
    check_copy_engine,
    check_overlap,
    check_own_arrays,
    check_work,
    lacking,
)
from linkgauge.model.errors import Unsupported, pip_install
from linkgauge.model.inventory import Accelerator, Telemetry
from linkgauge.model.machine import Device, Host, Node
from linkgauge.model.memory import Memory
from linkgauge.model.operation import ARRAYS, OperationName, named
from linkgauge.model.settings import EngineSettings, Pieces
from linkgauge.model.transfer import Engine, Transfer

from . import refusals

if TYPE_CHECKING:
    from .buffer import OpenCLBuffer
    from .group import OpenCLGroup
    from .runtime import OpenCLDevice


def create(engines: EngineSettings, host: Host) -> Backend:
    """The backend for all OpenCL devices. Raises Unsupported, with the reason and the remedy, if
    pyopencl, a runtime or a device is missing."""
    try:
        import pyopencl  # noqa: F401
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "pyopencl"
        why = "pyopencl is not installed" if missing else f"pyopencl does not load ({error})"
        raise Unsupported(f"{why}: {pip_install('linkgauge[opencl]')}") from error
    from .runtime import discover

    return OpenCL(discover(), host.nodes, engines.pieces)


class OpenCL:
    """Implements protocol.Backend for `units`; `nodes` are the host's. With `pieces`, transfers
    are copied piece by piece."""

    name = refusals.SPACE

    def __init__(
        self, units: Sequence[OpenCLDevice], nodes: Sequence[Node], pieces: Pieces | None = None
    ) -> None:
        self._pieces = pieces
        self._units = units
        self._facts = [unit.facts for unit in units]
        self._nodes = {node.index: node for node in nodes}
        self.sensors = AmdTelemetry(self.devices())
        self._buffers: weakref.WeakSet[OpenCLBuffer] = weakref.WeakSet()
        self._groups: weakref.WeakSet[OpenCLGroup] = weakref.WeakSet()
        self._of_chase: tuple[str, ...] = ()
        """Remarks on the chase that was prepared last, if nothing else was since."""

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
        """A mapped buffer serves copies, an unmapped one kernels, each in one context."""
        return memory, engine.owner, engine.kind

    def allocate(self, memory: Memory, size: int, engine: Engine) -> Buffer:
        """Raises AllocationError if the device or host lacks the memory, and Unsupported if
        pageable memory cannot be bound to its node. Only `engine` can use the buffer."""
        from .device_memory import DeviceBuffer
        from .host_memory import allocate_host

        buffer: OpenCLBuffer
        if memory.is_device:
            buffer = DeviceBuffer(self._unit(memory), memory, size)
        else:
            unit = self._unit(engine.owner)
            node = self._nodes[memory.index or 0]
            buffer = allocate_host(unit, memory, size, engine.kind, node, len(self._nodes) == 1)
        self._buffers.add(buffer)
        return buffer

    def fill(self, buffer: Buffer, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        self._own(buffer).fill(size, pattern, seed, inverted)

    def first_mismatch(self, buffer: Buffer, size: int, pattern: Pattern, seed: int) -> int | None:
        return self._own(buffer).first_mismatch(size, pattern, seed)

    def checksum(self, buffer: Buffer, size: int) -> int:
        return self._own(buffer).checksum(size)

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        self._of_chase = ()
        check_work(copies, operation)
        if named(operation).is_single:
            check_alone(copies)
            return self._iterated(copies[0], operation)
        if operation == "chase":
            from .chase import chase, near_cache

            unit = self._unit(copies[0].transfer.engine.owner)
            self._of_chase = tuple(near_cache(unit, copies[0].size))
            return self._keep(chase(unit, copies))
        if operation == "overlap":
            return self._beside_kernel(copies)
        if operation != "copy" and operation not in ARRAYS:
            raise lacking(self.name, operation)
        return self._keep(self._copying(copies, operation))

    def _iterated(self, copy: Copy, operation: OperationName) -> Group:
        """What is timed iteration by iteration."""
        unit = self._unit(copy.transfer.engine.owner)
        if operation == "timed-copy":
            group = self._keep(self._copying([check_copy_engine(copy)], "copy"))
            group.pace = single_iterations(1)
            return group
        if operation == "copy-ping-pong":
            from .copy_ping_pong import ping_pong

            return ping_pong(unit, check_copy_engine(copy))
        from .hand_overs import hand_over

        return hand_over(unit, operation)

    def _beside_kernel(self, copies: Sequence[Copy]) -> OverlapGroup:
        """Copies without and with a kernel that takes about as long, the first of them."""
        from .compute import ComputeLane
        from .group import OpenCLGroup

        first, others = check_overlap(copies)
        copying = self._copying(others, "copy")
        kernel = ComputeLane(self._unit(first.transfer.engine.owner))
        groups = copying, OpenCLGroup([kernel]), OpenCLGroup([kernel, *copying.lanes])
        with ExitStack() as made:
            for group in groups:
                made.callback(self._keep(group).close)
            fit(kernel, groups[1], copying)
            return OverlapGroup(*groups, made.pop_all(), kernel)

    def _copying(self, copies: Sequence[Copy], operation: OperationName) -> OpenCLGroup:
        """Copies, or operations on arrays, side by side."""
        from .group import CopyLane, OpenCLGroup

        work = [(self._unit(copy.transfer.engine.owner), copy) for copy in copies]
        pieces, makes = self._pieces, None
        if operation in ARRAYS:
            check_own_arrays(self.name, copies, operation)
            pieces, makes = None, RESULTS.get(ARRAYS[operation].kind)
        for unit in {id(unit): unit for unit, _ in work if makes is not None}.values():
            if not unit.has_doubles:
                place = unit.facts.device.memory
                raise Unsupported(f"{place} has no double precision, which {operation} needs")
        return OpenCLGroup([CopyLane(unit, copy, pieces, makes) for unit, copy in work])

    def _keep(self, group: OpenCLGroup) -> OpenCLGroup:
        """The group, which close() closes."""
        self._groups.add(group)
        return group

    def close(self) -> None:
        """Closes groups first: copies behind a closed gate still use the buffers."""
        for group in list(self._groups):
            group.close()
        for buffer in list(self._buffers):
            buffer.free()
        for unit in self._units:
            unit.free_spare()

    def _unit(self, memory: Memory) -> OpenCLDevice:
        return self._units[memory.index or 0]

    def _own(self, buffer: Buffer) -> OpenCLBuffer:
        from .buffer import own

        return own(buffer)
