"""How a CUDA device is used: its context, streams, kernels and memory."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from itertools import permutations
from typing import Any, TypeVar

from linkgauge.machine.numa import near_node
from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.errors import BackendError
from linkgauge.model.hardware.machine import Device
from linkgauge.model.settings import EngineSettings

from .compiler import Compiler
from .driver import Driver
from .settings import CopySettings, load_tuned, tuned_notes

WORD = 8
"""The bytes of a result."""


class CudaDevice:
    def __init__(
        self, driver: Driver, index: int, compiler: Compiler, engines: EngineSettings
    ) -> None:
        self.driver = driver
        self.index = index
        self.handle = driver.call("cuDeviceGet", index)
        self.model = _text(driver.call("cuDeviceGetName", 256, self.handle))
        self.multiprocessors = self.attribute("MULTIPROCESSOR_COUNT")
        self.capability = 10 * self.attribute("COMPUTE_CAPABILITY_MAJOR") + self.attribute(
            "COMPUTE_CAPABILITY_MINOR"
        )
        self.managed = 0
        """The bytes of managed memory mapped into the device."""
        self.calls_wait = engines.calls_wait
        """Whether a call may wait until all earlier enqueued work is done."""
        self._uses_tuned = engines.tuned
        self.recall()
        self._compiler = compiler
        self._context: Any = None
        self._streams: list[Any] = []
        self.most_behind: dict[Hashable, int] = {}
        """The number of loops that may wait behind a gate, for each kind of group with a lower
        number than expected."""
        self._kernels: dict[tuple[str, ...], Any] = {}
        self._gate: ctypes.Array[ctypes.c_uint32] | None = None
        self._result = 0

    def recall(self) -> None:
        self.tuned: dict[str, CopySettings] = load_tuned(self.model) if self._uses_tuned else {}

    def attribute(self, name: str) -> int:
        """Returns the attribute CU_DEVICE_ATTRIBUTE_`name` of the device."""
        enum = self.driver.enums.CUdevice_attribute
        value = getattr(enum, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.driver.call("cuDeviceGetAttribute", value, self.handle))

    @property
    def context(self) -> Any:
        if self._context is None:
            self._context = self.driver.call(
                "cuDevicePrimaryCtxRetain", self.handle, about=f"cuda:{self.index}"
            )
        return self._context

    def enter(self) -> None:
        self.driver.call("cuCtxSetCurrent", self.context)

    def call(self, name: str, *arguments: Any, about: str = "") -> Any:
        self.enter()
        return self.driver.call(name, *arguments, about=about)

    def stream(self, number: int) -> Any:
        """Returns the device's stream of this number. Only one group may use it at a time."""
        return self._stream(number + 1)

    @property
    def aside(self) -> Any:
        """The stream for work that is not timed."""
        return self._stream(0)

    def _stream(self, number: int) -> Any:
        self.enter()
        flags = self.driver.enums.CUstream_flags.CU_STREAM_NON_BLOCKING
        while len(self._streams) <= number:
            self._streams.append(self.driver.call("cuStreamCreate", flags))
        return self._streams[number]

    @property
    def gate(self) -> ctypes.Array[ctypes.c_uint32]:
        """Two pinned words for a gate (start signal), kept because allocation takes 1 ms."""
        if self._gate is None:
            self._gate = pinned_words(self, ctypes.c_uint32, 2)
        return self._gate

    def result(self, byte: int) -> int:
        """Returns the address of a word for a kernel's result, with every byte set to `byte`."""
        self._result = self._result or int(self.call("cuMemAlloc", WORD))
        self.call("cuMemsetD8Async", self._result, byte, WORD, self.aside)
        return self._result

    def kernel(self, file: str, function: str, defines: Sequence[str] = ()) -> Any:
        key = (file, function, *defines)
        if key not in self._kernels:
            binary = self._compiler.compile(file, self.capability, defines)
            module = self.call("cuModuleLoadData", binary, about=f"{file}.cu")
            # Modules are unloaded with the context.
            self._kernels[key] = self.driver.call("cuModuleGetFunction", module, function.encode())
        return self._kernels[key]

    def describe(self, root: Root = ROOT) -> Device:
        address = self.pci_address()
        memory = int(self.driver.call("cuDeviceTotalMem", self.handle))
        module = root.text("sys/module/nvidia/version")
        notes = [
            f"compute capability {self.capability // 10}.{self.capability % 10}",
            f"{self.multiprocessors} multiprocessors",
        ]
        if self.is_instance:
            notes.append("a MIG instance: it has a part of the GPU's memory and engines")
        notes += tuned_notes(self.tuned)
        return Device(
            memory=f"cuda:{self.index}",
            model=self.model,
            memory_bytes=memory,
            largest_buffer=memory,
            driver=" ".join(filter(None, (module, f"CUDA {self.driver.version()}"))),
            shares_host_memory=self.attribute("INTEGRATED") != 0,
            near=near_node(root, address),
            pci=address,
            uuid=self.uuid(),
            notes=tuple(notes),
        )

    @property
    def is_instance(self) -> bool:
        """Whether the device is a MIG instance, whose profile CUDA appends to its name."""
        return " MIG " in self.model

    @cached_property
    def near(self) -> int:
        return near_node(ROOT, self.pci_address())

    def pci_address(self) -> str:
        """Returns the address as sysfs writes it: 0000:1b:00.0 (domain, bus, device, function)."""
        return _text(self.driver.call("cuDeviceGetPCIBusId", 16, self.handle)).lower()

    def uuid(self) -> str:
        """Returns the device's UUID as nvidia-smi shows it: GPU-…, or MIG-… for a MIG instance."""
        # CUDA 12 has the MIG-aware call under a second name.
        second = hasattr(self.driver.enums, "cuDeviceGetUuid_v2")
        name = "cuDeviceGetUuid_v2" if second else "cuDeviceGetUuid"
        digits = bytes(self.driver.call(name, self.handle).bytes).hex()
        groups = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32])
        return f"{'MIG' if self.is_instance else 'GPU'}-{'-'.join(groups)}"

    def close(self) -> None:
        if self._context is None:
            return
        # Fails on a lost device, whose streams are lost, too.
        with suppress(BackendError):
            self.enter()
            for stream in self._streams:
                self.driver.call("cuStreamDestroy", stream)
            if self._result:
                self.driver.call("cuMemFree", self._result)
            if self._gate is not None:
                self.driver.call("cuMemFreeHost", ctypes.addressof(self._gate))
        self._streams.clear()
        self._kernels.clear()
        self._context, self._gate, self._result = None, None, 0
        with suppress(BackendError):
            self.driver.call("cuDevicePrimaryCtxRelease", self.handle)


class KernelLaunch:
    """A kernel with its launch settings. `name` is a file and a function in it, such as
    `stream.read`. `grid` is the number of blocks, and of threads in each block. `shared` is shared
    memory in bytes. An argument is a 64-bit integer, a ctypes value, which each launch reads anew,
    or None, which stands for the attribute `varying`."""

    def __init__(
        self,
        device: CudaDevice,
        name: str,
        grid: tuple[int, int],
        arguments: Sequence[Any],
        defines: Mapping[str, object] = {},
        shared: int = 0,
    ) -> None:
        self._call = device.driver.call
        named = [f"{macro}={value}" for macro, value in defines.items()]
        file, function = name.split(".")
        self._kernel = device.kernel(file, function, named)
        self._blocks, self._threads = grid
        self._shared = shared
        if shared:
            attributes = device.driver.enums.CUfunction_attribute
            attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", self._kernel, attribute, shared)
        self.varying = ctypes.c_uint64(1)
        given = (self.varying if one is None else one for one in arguments)
        self.arguments = [ctypes.c_uint64(one) if isinstance(one, int) else one for one in given]
        pointers = [ctypes.addressof(argument) for argument in self.arguments]
        self._pointers = (ctypes.c_void_p * len(pointers))(*pointers)

    def words(self, stream: Any) -> tuple[int, ...]:
        return tuple(map(int, self._arguments(stream)))

    def enqueue(self, stream: Any) -> None:
        """Enqueues the launch on a stream, whose context must be current."""
        about = f"{self._blocks} blocks of {self._threads} threads"
        self._call("cuLaunchKernel", *self._arguments(stream), about=about)

    def _arguments(self, stream: Any) -> tuple[Any, ...]:
        grid = (self._blocks, 1, 1, self._threads, 1, 1, self._shared)
        return (self._kernel, *grid, stream, ctypes.addressof(self._pointers), 0)


def _text(value: bytes) -> str:
    return value.partition(b"\0")[0].decode(errors="replace")


_Word = TypeVar("_Word", ctypes.c_uint32, ctypes.c_uint64)


def pinned_words(device: CudaDevice, kind: type[_Word], count: int) -> ctypes.Array[_Word]:
    """Returns uninitialized words that host and devices can access. Free them by cuMemFreeHost."""
    enums = device.driver.enums
    flags = enums.CU_MEMHOSTALLOC_PORTABLE | enums.CU_MEMHOSTALLOC_DEVICEMAP
    size = count * ctypes.sizeof(kind)
    return (kind * count).from_address(int(device.call("cuMemHostAlloc", size, flags)))


def device_memory(device: CudaDevice, size: int, made: ExitStack, about: str = "") -> int:
    address = int(device.call("cuMemAlloc", size, about=about))
    made.callback(device.call, "cuMemFree", address)
    return address


# Access of devices to each other's memory.


class PeerAccess:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._enabled: set[tuple[int, int]] = set()

    def connect(self, devices: Iterable[CudaDevice]) -> None:
        for one, other in permutations({id(device): device for device in devices}.values(), 2):
            if (one.index, other.index) not in self._enabled:
                self._enable(one, other)
                self._enabled.add((one.index, other.index))

    def _enable(self, device: CudaDevice, peer: CudaDevice) -> None:
        if not self._driver.call("cuDeviceCanAccessPeer", device.handle, peer.handle):
            return  # refusal() has already rejected transfers that need it
        device.enter()
        about = f"of cuda:{peer.index} to cuda:{device.index}"
        try:
            self._driver.call("cuCtxEnablePeerAccess", peer.context, 0, about=about)
        except BackendError as error:
            # The primary context is shared: another library of this process may have been first.
            if "PEER_ACCESS_ALREADY_ENABLED" not in error.detail:
                raise

    def clear(self) -> None:
        self._enabled.clear()


def run(device: CudaDevice, launch: KernelLaunch) -> None:
    """Runs a kernel to its end on the stream for untimed work. Raises BackendError if it fails."""
    device.enter()
    launch.enqueue(device.aside)
    device.driver.call("cuStreamSynchronize", device.aside)


def new_word(device: CudaDevice, made: ExitStack, byte: int | None = None) -> int:
    word = device_memory(device, WORD, made)
    if byte is not None:
        device.call("cuMemsetD8Async", word, byte, WORD, device.aside)
    return word


def read_word(device: CudaDevice, address: int) -> int:
    value = bytearray(WORD)
    device.call("cuMemcpyDtoH", value, address, WORD)
    return int.from_bytes(value, "little")
