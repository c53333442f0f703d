"""The backend `opencl`. `ce` is the runtime's copy command, and `sm` is a kernel of copy.cl."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from linkgauge.backends import rules
from linkgauge.backends.amd import AmdTelemetry
from linkgauge.backends.iterations import Queue
from linkgauge.backends.offering import Holding, imported
from linkgauge.backends.protocol import RESULTS, Backend, Buffer, Copy, Group
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.inventory import Accelerator, Telemetry
from linkgauge.model.hardware.machine import Device, Host, Node
from linkgauge.model.memory import STAGING, Memory
from linkgauge.model.operations.operation import COPY, PEAK_NAMES, Operation
from linkgauge.model.settings import EngineSettings, Pieces
from linkgauge.model.transfer import Engine, Transfer

if TYPE_CHECKING:
    from .group import ComputeKernel, OpenCLGroup
    from .memory import OpenCLBuffer
    from .runtime import OpenCLDevice, OpenCLFacts


def create(engines: EngineSettings, host: Host) -> Backend:
    """Opens the backend. Raises Unsupported without pyopencl, a runtime or a device."""
    imported("pyopencl", "opencl")
    from .runtime import discover

    return OpenCL(discover(), host.nodes, engines.pieces)


class OpenCL(Holding["OpenCLBuffer"]):
    name = "opencl"
    carried = (
        "copy", "chase", "copy-ping-pong", "timed-copy", "launch", "sync", "overlap", *PEAK_NAMES,
    )  # fmt: skip

    def __init__(
        self, units: Sequence[OpenCLDevice], nodes: Sequence[Node], pieces: Pieces | None = None
    ) -> None:
        super().__init__()
        self._pieces = pieces
        self._units = {Memory(self.name, number): unit for number, unit in enumerate(units)}
        self._nodes = {node.index: node for node in nodes}
        self.sensors = AmdTelemetry(self.devices())
        self._of_chase: tuple[str, ...] = ()
        """Remarks on the chase that was prepared last; empty if another group was prepared
        since."""

    def devices(self) -> tuple[Device, ...]:
        return tuple(unit.facts.device for unit in self._units.values())

    def inventory(self) -> tuple[Accelerator, ...]:
        return self.sensors.inventory()

    def sense(self, devices: Sequence[Memory]) -> tuple[Telemetry, ...]:
        return self.sensors.sense(devices)

    def refusal(self, transfer: Transfer) -> str | None:
        return rules.refused(self._rules(transfer))

    def _rules(self, transfer: Transfer) -> Iterator[rules.Rule]:
        kind, ends = transfer.engine.kind, transfer.memories
        yield from rules.of_places(transfer, "OpenCL", self._units, self._nodes)
        by_threads = "host threads do not reach the memory of an OpenCL device: use ce or sm"
        yield kind == "cpu", by_threads
        yield from rules.of_copy_engine(transfer)
        yield from rules.of_ends(transfer, "an OpenCL device")
        yield transfer.both_ways and len(ends) < 2, "a copy both ways needs two memories"
        unit = self._units[transfer.engine.owner]
        for memory in ends:
            if memory.is_host:
                yield from _host_rules(memory, unit.facts, len(self._nodes))
                if kind == "sm":
                    yield from _in_place_rules(memory, unit.facts)
        yield from self._pair_rules(transfer)
        if kind == "sm":
            yield unit.no_kernels, unit.no_kernels or ""

    def _pair_rules(self, transfer: Transfer) -> Iterator[rules.Rule]:
        pair = [self._units[place].facts for place in _places(transfer) if place.is_device]
        if len(pair) < 2 or pair[0] == pair[1]:
            return
        one, other = (own.device for own in pair)
        ends = f"{one.memory} and {other.memory}"
        separate = pair[0].platform != pair[1].platform
        yield separate, f"{ends} belong to different OpenCL platforms, which share no buffers"
        does = f"from the second loop on a copy between {ends} may be a local one"
        if len(transfer.memories) < 2:
            does = f"{other.memory} may work on {one.memory}'s in its own memory"
        moved = not (one.shares_host_memory and other.shares_host_memory)
        moves = "an OpenCL runtime moves a buffer to the device that uses it"
        yield moved, f"{moves}: {does}"

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        remarks = *rules.one_dram(_places(transfer), self.devices()), *self._of_chase
        if self._pieces is None or transfer.both_ways or len(transfer.memories) < 2:
            return remarks
        streams = 1 if transfer.engine.kind == "ce" else self._pieces.streams
        return (*remarks, f"pieces of {self._pieces.size} bytes over {streams} streams")

    def reach(self, memory: Memory, engine: Engine) -> object:
        return memory, engine.owner, engine.kind  # copies need mapped buffers, kernels unmapped

    def allocate(self, memory: Memory, size: int, engine: Engine) -> Buffer:
        from .memory import allocate

        unit = self._units[memory if memory.is_device else engine.owner]
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

        return OpenCLQueue(self._units[owner])

    def chasing(self, copies: Sequence[Copy], does: Operation) -> OpenCLGroup:
        from .chase import chase, near_cache

        rules.check_alone(copies)
        unit = self._units[copies[0].transfer.engine.owner]
        self._of_chase = tuple(near_cache(unit, copies[0].size))
        return self.kept(chase(unit, copies[0]))

    def computing(
        self, copies: Sequence[Copy], made: ExitStack
    ) -> tuple[ComputeKernel, Group, Group, Group]:
        from .group import ComputeKernel, OpenCLGroup

        first, *others = copies
        copying = self.moving(others, COPY)
        kernel = ComputeKernel(self._units[first.transfer.engine.owner])
        alone, together = OpenCLGroup([kernel.lane]), OpenCLGroup([kernel.lane, *copying.lanes])
        for group in (copying, alone, together):
            made.callback(self.kept(group).close)
        return kernel, alone, copying, together

    def moving(self, copies: Sequence[Copy], does: Operation) -> OpenCLGroup:
        from .group import OpenCLGroup, copy_lane

        works = [(self._units[copy.transfer.engine.owner], copy) for copy in copies]
        pieces = self._pieces if does.array is None else None
        makes = RESULTS.get(does.array.kind) if does.array is not None else None
        for unit, _ in works if makes is not None else ():
            if not unit.has_doubles:
                place = unit.facts.device.memory
                raise Unsupported(f"{place} has no double precision, which {does.name} needs")
        return self.kept(OpenCLGroup([copy_lane(*work, pieces, makes) for work in works]))

    def close(self) -> None:
        super().close()
        for unit in self._units.values():
            unit.free_spare()


def _places(transfer: Transfer) -> tuple[Memory, ...]:
    places = tuple(memory.place for memory in transfer.memories)
    return places if len(places) > 1 else (*places, transfer.engine.owner)


def _host_rules(memory: Memory, owner: OpenCLFacts, nodes: int) -> Iterator[rules.Rule]:
    kind = memory.kind
    yield kind == "huge", "OpenCL allocates pinned memory itself, and offers no huge pages"
    in_place = f"by sm, {memory.place} is reached in place where the device shares memory"
    yield kind == "mapped", f"OpenCL has no mapped memory: {in_place}"
    yield kind not in ("", "pageable", STAGING), f"OpenCL has no {kind} host memory"
    if kind != "pageable":
        yield rules.unbound("OpenCL cannot bind pinned memory", memory, owner.device, nodes)


def _in_place_rules(memory: Memory, owner: OpenCLFacts) -> Iterator[rules.Rule]:
    """Yields rules against kernels that would access only a copy of the host memory."""
    device, shares = owner.device.memory, owner.device.shares_host_memory
    own = "a kernel reaches only host memory that OpenCL allocated: host:N"
    yield memory.kind == "pageable", own
    if not owner.fine_grained:
        at_once = "its kernels may not use a buffer while host threads do; use ce"
        lacking = f"{device} has no fine-grained shared virtual memory: {at_once}"
        yield memory.is_staging, lacking
        moves = "memory shared with the host: the runtime may silently move the buffer first"
        yield not shares, f"{device} has neither fine-grained shared virtual memory nor {moves}"
