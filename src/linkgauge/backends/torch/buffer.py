"""How torch's buffers are allocated, on devices and on the host. A buffer is a tensor of bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from linkgauge.backends import native, offering
from linkgauge.backends.host_memory import NodeMemory, shift_within, usable_cpus
from linkgauge.backends.iterations import nothing
from linkgauge.backends.protocol import Buffer, Pattern
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import BackendError
from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import Memory
from linkgauge.model.units import approximate_size

from . import content
from .runtime import TorchDevice, calling

_PORTABLE = 1
"""The flag cudaHostRegisterPortable: memory is pinned for all devices. HIP has the same value."""


class TorchBuffer:
    """A tensor of bytes. Threads on `cpus` fill and compare it; without CPUs, the device does."""

    address: int

    def __init__(
        self,
        unit: TorchDevice,
        memory: Memory,
        tensor: Any,
        release: Callable[[], object],
        placed: Placement | None = None,
        cpus: Sequence[int] = (),
    ) -> None:
        self.unit, self.memory, self.size = unit, memory, int(tensor.numel())
        self._tensor, self._release, self.cpus = tensor, release, cpus
        self._placed = placed or Placement(str(memory), self.size)
        self.warnings = tuple(native.misplaced(memory, self._placed))
        if cpus:
            self.address = int(tensor.data_ptr())

    @property
    def tensor(self) -> Any:
        if self._tensor is None:
            raise BackendError("prepare", f"the buffer of {self.memory} is freed")
        return self._tensor

    def placement(self) -> Placement:
        return self._placed

    def fill(self, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        if self.cpus:
            native.fill(self.address, size, pattern, seed, inverted, self.cpus)
            return
        with calling("fill", str(self.memory)):
            content.fill(self.unit.torch, self.tensor[:size], pattern, seed, inverted)
            self.unit.finish()

    def first_mismatch(self, size: int, pattern: Pattern, seed: int) -> int | None:
        if self.cpus:
            return native.first_mismatch(self.address, size, pattern, seed, self.cpus)
        with calling("compare", str(self.memory)):
            return content.first_mismatch(self.unit.torch, self.tensor[:size], pattern, seed)

    def checksum(self, size: int) -> int:
        if self.cpus:
            return native.checksum(self.address, size, self.cpus)
        with calling("checksum", str(self.memory)):
            return content.checksum(self.unit.torch, self.tensor[:size])

    def free(self) -> None:
        if self._tensor is not None:
            self._tensor = None
            self._release()


def own(buffer: Buffer | None) -> TorchBuffer:
    return offering.own(buffer, TorchBuffer, "torch")


def allocate(
    unit: TorchDevice, memory: Memory, size: int, node: Node | None, alone: bool
) -> TorchBuffer:
    """Returns a buffer. Raises AllocationError, or Unsupported for a node or page it cannot use."""
    if node is None:
        if unit.is_cpu:
            return _by_torch(unit, memory, size)
        shift = shift_within(size)
        return TorchBuffer(unit, memory, _empty(unit, memory, size + shift)[shift:], unit.let_go)
    if unit.facts.binds or memory.kind == "pageable":
        return _on_node(unit, memory, size, node, alone)
    return _by_torch(unit, memory, size, node.cpus, pinned=True)


def _by_torch(
    unit: TorchDevice,
    memory: Memory,
    size: int,
    cpus: Sequence[int] = (),
    pinned: bool = False,
) -> TorchBuffer:
    tensor, cpus = _empty(unit, memory, size, pinned), cpus or usable_cpus()
    address = int(tensor.data_ptr())
    native.fill(address, size, Pattern.WORDS, 0, False, cpus)
    node = native.node_of(address, size)
    placed = Placement(str(memory), size, node, locked=pinned or None)
    return TorchBuffer(unit, memory, tensor, nothing, placed, cpus)


def _on_node(unit: TorchDevice, memory: Memory, size: int, node: Node, alone: bool) -> TorchBuffer:
    # torch can neither choose the node nor ask for huge pages.
    held = NodeMemory(memory, size, node.index, alone, node.cpus)
    with ExitStack() as made:
        made.callback(held.free)
        if memory.kind != "pageable" and unit.facts.type == "cuda":
            _register(unit, held.address, size, f"{approximate_size(size)} of {memory}")
            made.callback(unit.torch.cuda.cudart().cudaHostUnregister, held.address)
            held.placed = msgspec.structs.replace(held.placed, locked=True)
        window = (ctypes.c_uint8 * size).from_address(held.address)
        tensor = unit.torch.frombuffer(window, dtype=unit.torch.uint8)
        release = made.pop_all().close
        return TorchBuffer(unit, memory, tensor, release, held.placed, held.cpus)


def _register(unit: TorchDevice, address: int, size: int, about: str) -> None:
    with calling("cudaHostRegister", about), unit.torch.cuda.device(unit.device):
        status = unit.torch.cuda.cudart().cudaHostRegister(address, size, _PORTABLE)
    if int(status) != 0:
        raise BackendError("cudaHostRegister", f"status {status} ({about})")


def _empty(unit: TorchDevice, memory: Memory, size: int, pinned: bool = False) -> Any:
    where = {"pin_memory": True} if pinned else {"device": unit.device}
    with calling("torch.empty", f"{approximate_size(size)} of {memory}"):
        return unit.torch.empty(size, dtype=unit.torch.uint8, **where)
