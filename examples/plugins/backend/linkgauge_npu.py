"""Backend `npu`: devices of a vendor's C library, which copies memory (npu.c beside this file).

It is all that a backend takes: reasons for refusal, memory, and a queue whose calls the native core
makes. What copies, copies there and back and hand-overs are, is written once for all backends in
`linkgauge.backends.operations`. docs/vendor.md goes through it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from linkgauge.backends import native
from linkgauge.backends.host_memory import NodeMemory, usable_cpus
from linkgauge.backends.iterations import Named, Queue, address_of
from linkgauge.backends.offering import Holding
from linkgauge.backends.protocol import Backend, Buffer, Pattern
from linkgauge.backends.rules import Rule, no_node, of_copy_engine, of_load, refused
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.hardware.machine import Device, Host, Node
from linkgauge.model.memory import Memory
from linkgauge.model.settings import EngineSettings
from linkgauge.model.transfer import Engine, Transfer

NAME = "npu"
_NO_MEMORY = 2
_ROOM = 64


class Library:
    """The vendor's library. Native errors enter here: a call that returns other than 0 raises
    BackendError with its name."""

    def __init__(self, path: str) -> None:
        self.handle = ctypes.CDLL(path)
        self.handle.npu_error.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self.handle, name)(*arguments)
        if status:
            raise self.error(name, status)

    def error(self, name: str, status: int) -> BackendError:
        said = self.handle.npu_error(status).decode()
        return (AllocationError if status == _NO_MEMORY else BackendError)(name, said)

    def devices(self) -> Iterator[Device]:
        count = ctypes.c_int()
        self.call("npu_count", ctypes.byref(count))
        for index in range(count.value):
            name, memory = ctypes.create_string_buffer(_ROOM), ctypes.c_uint64()
            self.call("npu_properties", index, name, _ROOM, ctypes.byref(memory))
            size = memory.value
            yield Device(f"{NAME}:{index}", name.value.decode(), size, size)


class NpuQueue(Queue):
    """A queue of the library, as calls of its functions."""

    def __init__(self, library: Library, device: int, made: ExitStack) -> None:
        self._library = library
        handle = ctypes.c_void_p()
        library.call("npu_queue_create", device, ctypes.byref(handle))
        made.callback(library.call, "npu_queue_destroy", handle)
        self.at = handle.value or 0

    def address_of(self, name: str) -> int:
        return address_of(self._library.handle, name)

    def error_of(self, name: str, status: int) -> BackendError:
        return self._library.error(name, status)

    def copy(self, destination: Buffer | None, source: Buffer | None, size: int) -> Iterator[Named]:
        into, of = ours(destination), ours(source)
        yield "npu_copy", (self.at, into.address, of.address, size)

    def sync(self) -> Iterator[Named]:
        yield "npu_wait", (self.at,)


class NpuBuffer:
    """Memory of a device. It is written and compared by the host, in memory that stands in for
    it."""

    warnings: tuple[str, ...] = ()

    def __init__(self, library: Library, memory: Memory, size: int, index: int) -> None:
        self.memory, self.size = memory, size
        self._library, self._index = library, index
        address = ctypes.c_uint64()
        library.call("npu_alloc", index, ctypes.c_uint64(size), ctypes.byref(address))
        self.address = address.value

    def placement(self) -> Placement:
        return Placement(str(self.memory), self.size)

    def free(self) -> None:
        address, self.address = self.address, 0
        if address:
            self._library.call("npu_free", ctypes.c_uint64(address))

    def fill(self, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        window, address = _window(size)
        native.fill(address, size, pattern, seed, inverted, usable_cpus())
        self.copy(self.address, address, len(window))

    def first_mismatch(self, size: int, pattern: Pattern, seed: int) -> int | None:
        window, address = _window(size)
        self.copy(address, self.address, len(window))
        return native.first_mismatch(address, size, pattern, seed, usable_cpus())

    def checksum(self, size: int) -> int:
        window, address = _window(size)
        self.copy(address, self.address, len(window))
        return native.checksum(address, size, usable_cpus())

    def copy(self, destination: int, source: int, size: int) -> None:
        """Copies bytes, until they are there."""
        with ExitStack() as made:
            queue = NpuQueue(self._library, self._index, made)
            words = (ctypes.c_uint64(word) for word in (queue.at, destination, source, size))
            self._library.call("npu_copy", *words)
            self._library.call("npu_wait", ctypes.c_uint64(queue.at))


def ours(buffer: Buffer | None) -> NpuBuffer | NodeMemory:
    """The buffer as one of this backend: of a device, or of the host."""
    if not isinstance(buffer, NpuBuffer | NodeMemory):
        raise BackendError("prepare", f"{buffer!r} is not a buffer of backend {NAME}")
    return buffer


def create(engines: EngineSettings, host: Host) -> Backend:
    """The backend. Raises Unsupported, in one line with the remedy, without the library."""
    path = os.environ.get("NPU_LIBRARY", "libnpu.so")
    try:
        return Npu(Library(path), host.nodes)
    except OSError as error:
        raise Unsupported(f"no {path}: install the NPU's driver, or set NPU_LIBRARY") from error


class Npu(Holding[NpuBuffer | NodeMemory]):
    """The devices of the library. It states what it carries out; the rest it refuses by itself."""

    name = NAME
    carried = ("copy", "copy-ping-pong", "sync")

    def __init__(self, library: Library, nodes: Sequence[Node]) -> None:
        super().__init__()
        self._library = library
        self._devices = tuple(library.devices())
        self._nodes = {node.index: node for node in nodes}

    def devices(self) -> tuple[Device, ...]:
        return self._devices

    def refusal(self, transfer: Transfer) -> str | None:
        return refused(self._rules(transfer))

    def _rules(self, transfer: Transfer) -> Iterator[Rule]:
        """Conditions, each with the reason for which the transfer is then refused."""
        owner = transfer.engine.owner
        known = [device.memory for device in self._devices]
        for place in (owner, *transfer.memories):
            if place.is_host:
                yield no_node(place, self._nodes)
                other = place.kind not in ("", "pageable")
                yield other, f"an NPU copies no {place.kind} host memory"
            else:
                absent = str(place.place) not in known or place.rank is not None
                yield absent, f"no {place} here: there is {', '.join(known)}"
        yield not owner.is_device, f"only an NPU can do this, not {owner}"
        if not transfer.memories:  # what its queue does, whatever the engine
            return
        other = transfer.engine.kind != "ce"
        yield other, "an NPU has no kernels here, and no threads: use ce"
        yield from of_copy_engine(transfer)
        yield of_load(transfer)
        neither = f"{owner} holds neither end: it copies from or to its own memory"
        yield owner not in transfer.memories, neither

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        return ("timed by the host's clock, until the queue is done",)

    def reach(self, memory: Memory, engine: Engine) -> object:
        return memory

    def allocate(self, memory: Memory, size: int, engine: Engine) -> NpuBuffer | NodeMemory:
        if memory.is_device:
            return self.held(NpuBuffer(self._library, memory, size, memory.index or 0))
        node = self._nodes[memory.index or 0]
        return self.held(NodeMemory(memory, size, node.index, len(self._nodes) == 1, node.cpus))

    def own(self, buffer: Buffer | None) -> NpuBuffer | NodeMemory:
        return ours(buffer)

    def queue(self, owner: Memory, made: ExitStack) -> NpuQueue:
        return NpuQueue(self._library, owner.index or 0, made)


def _window(size: int) -> tuple[ctypes.Array[ctypes.c_uint8], int]:
    """Bytes of the host, and their address."""
    window = (ctypes.c_uint8 * size)()
    return window, ctypes.addressof(window)
