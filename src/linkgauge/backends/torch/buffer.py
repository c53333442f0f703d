"""Buffers of torch, on devices and on the host. All are tensors of bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import msgspec

from linkgauge.backends import native, offering
from linkgauge.backends.host_memory import ByThreads, NodeMemory, shift_within, usable_cpus
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
    """A buffer that torch can copy. `tensor` has its bytes. `unit` is the device that uses it."""

    warnings: tuple[str, ...] = ()
    _tensor: Any = None

    def __init__(self, unit: TorchDevice, memory: Memory, size: int) -> None:
        self.unit, self.memory, self.size = unit, memory, size

    @property
    def tensor(self) -> Any:
        if self._tensor is None:
            raise BackendError("prepare", f"the buffer of {self.memory} is freed")
        return self._tensor

    def placement(self) -> Placement:
        return Placement(str(self.memory), self.size)

    def fill(self, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        raise NotImplementedError

    def first_mismatch(self, size: int, pattern: Pattern, seed: int) -> int | None:
        raise NotImplementedError

    def checksum(self, size: int) -> int:
        raise NotImplementedError

    def free(self) -> None:
        """Frees the memory. May be called again."""
        self._tensor = None


class TorchDeviceBuffer(TorchBuffer):
    """A buffer in the memory of an accelerator, which also fills and compares it."""

    def __init__(self, unit: TorchDevice, memory: Memory, size: int) -> None:
        super().__init__(unit, memory, size)
        shift = shift_within(size)
        self._whole = _empty(unit, memory, size + shift)
        self._tensor = self._whole[shift:]

    def fill(self, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        with calling("fill", str(self.memory)):
            content.fill(self.unit.torch, self.tensor[:size], pattern, seed, inverted)
            self.unit.finish()

    def first_mismatch(self, size: int, pattern: Pattern, seed: int) -> int | None:
        with calling("compare", str(self.memory)):
            return content.first_mismatch(self.unit.torch, self.tensor[:size], pattern, seed)

    def checksum(self, size: int) -> int:
        with calling("checksum", str(self.memory)):
            return content.checksum(self.unit.torch, self.tensor[:size])

    def free(self) -> None:
        if self._tensor is not None:
            self._tensor = self._whole = None
            self.unit.let_go()


class AddressedBuffer(ByThreads, TorchBuffer):
    """A buffer at a host address that torch has allocated."""

    def __init__(
        self,
        unit: TorchDevice,
        memory: Memory,
        size: int,
        cpus: Sequence[int] = (),
        pinned: bool = False,
    ) -> None:
        super().__init__(unit, memory, size)
        self.cpus = cpus or usable_cpus()
        self._tensor = _empty(unit, memory, size, pinned)
        self.address = int(self._tensor.data_ptr())
        self.fill(size, Pattern.WORDS, 0, False)  # touched first by CPUs of the right node
        node = native.node_of(self.address, size)
        self._placement = Placement(str(memory), size, node, locked=pinned or None)
        self.warnings = tuple(native.misplaced(memory, self._placement))

    def placement(self) -> Placement:
        return self._placement


class NodeBuffer(NodeMemory, TorchBuffer):
    """A buffer that the native core allocates on a NUMA node. For CUDA and ROCm, the runtime then
    pins the memory, unless its kind is pageable. torch itself cannot place memory on a node, and
    asks for no huge pages."""

    def __init__(
        self, unit: TorchDevice, memory: Memory, size: int, node: Node, alone: bool
    ) -> None:
        super().__init__(memory, size, node.index, alone, node.cpus)
        self.unit = unit
        self._pins = memory.kind != "pageable" and unit.facts.type == "cuda"
        try:
            if self._pins:
                self._register(self.address)
                self.placed = msgspec.structs.replace(self.placed, locked=True)
        except BackendError:
            self.pages.close()
            raise
        window = (ctypes.c_uint8 * size).from_address(self.address)
        self._tensor = unit.torch.frombuffer(window, dtype=unit.torch.uint8)

    def _register(self, address: int) -> None:
        about = f"{approximate_size(self.size)} of {self.memory}"
        with calling("cudaHostRegister", about):
            runtime = self.unit.torch.cuda.cudart()
            with self.unit.torch.cuda.device(self.unit.device):
                status = runtime.cudaHostRegister(address, self.size, _PORTABLE)
        if int(status) != 0:
            raise BackendError("cudaHostRegister", f"status {status} ({about})")

    def free(self) -> None:
        if self._tensor is not None:
            self._tensor = None
            if self._pins:
                self.unit.torch.cuda.cudart().cudaHostUnregister(self.address)
            super().free()


def own(buffer: Buffer | None) -> TorchBuffer:
    return offering.own(buffer, TorchBuffer, "torch")


def allocate(
    unit: TorchDevice, memory: Memory, size: int, node: Node | None, alone: bool
) -> TorchBuffer:
    """Allocates memory that the device can copy. `node` is the NUMA node of host memory; `alone`
    says that the machine has no other node. Raises AllocationError if memory is short, and
    Unsupported if host memory cannot be placed on its node."""
    if node is None:
        return (AddressedBuffer if unit.is_cpu else TorchDeviceBuffer)(unit, memory, size)
    if unit.facts.binds or memory.kind == "pageable":
        return NodeBuffer(unit, memory, size, node, alone)
    return AddressedBuffer(unit, memory, size, node.cpus, pinned=True)


def _empty(unit: TorchDevice, memory: Memory, size: int, pinned: bool = False) -> Any:
    where = {"pin_memory": True} if pinned else {"device": unit.device}
    with calling("torch.empty", f"{approximate_size(size)} of {memory}"):
        return unit.torch.empty(size, dtype=unit.torch.uint8, **where)
