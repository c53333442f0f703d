"""How OpenCL's platforms and devices are listed, once `opencl.create` has found pyopencl."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.resources import files
from typing import Any

import msgspec
import pyopencl as cl

from linkgauge.backends.host_memory import NodeMemory
from linkgauge.machine.numa import near_node
from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.errors import (
    AllocationError,
    BackendError,
    DeviceLost,
    Unsupported,
    pip_install,
)
from linkgauge.model.hardware.machine import Device
from linkgauge.model.settings import Pieces

_NO_MEMORY = {cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE, cl.status_code.OUT_OF_HOST_MEMORY}
# Drivers return these for any failure, so they mean lack of memory only if memory was requested.
_NO_MEMORY_IF_ALLOCATING = {cl.status_code.OUT_OF_RESOURCES, cl.status_code.INVALID_BUFFER_SIZE}


@contextmanager
def calling(call: str, allocating: int | None = None) -> Iterator[None]:
    """Turns pyopencl's errors into linkgauge's. `allocating` is the bytes that a call allocates."""
    try:
        yield
    except cl.Error as error:
        # Errors that pyopencl itself raises name one of its methods.
        where = error.routine if error.routine.startswith("cl") else call
        raise error_of(error.code, where, allocating=allocating) from error


def error_of(code: int, call: str, said: str = "{}", allocating: int | None = None) -> BackendError:
    """Returns AllocationError, DeviceLost or else BackendError. {} in `said` is the code's name."""
    name = said.format(status_name(code))
    if allocating is not None and code in _NO_MEMORY | _NO_MEMORY_IF_ALLOCATING:
        return AllocationError(call, f"{name} for {allocating} bytes")
    if code in _NO_MEMORY:
        return AllocationError(call, name)
    kind = DeviceLost if code == cl.status_code.DEVICE_NOT_AVAILABLE else BackendError
    return kind(call, name)


def status_name(code: int) -> str:
    named: Any = cl.status_code  # its stub has no callable to_string
    return str(named.to_string(code, "error %d"))


class OpenCLFacts(msgspec.Struct, frozen=True):
    """Facts about a device. If `fine_grained`, its kernels can use host memory in place."""

    device: Device
    platform: int
    fine_grained: bool


VECTOR = 16
"""The bytes that a work-item accesses at once (copy.cl)."""
ALONE = (1,), (1,)
"""The numbers of work-items for a launch of a single one."""


class OpenCLDevice:
    """An OpenCL device. Its queue and kernels are made at first use: listing must not wake it."""

    def __init__(self, handle: cl.Device, facts: OpenCLFacts, domain: MemoryDomain) -> None:
        self.handle = handle
        self.facts = facts
        self.domain = domain
        self.spare: NodeMemory | None = None
        """Host memory reused for the device's buffers."""
        self._programs: dict[str, cl.Program] = {}

    def free_spare(self) -> None:
        if self.spare is not None:
            self.spare.free()
            self.spare = None

    @property
    def context(self) -> cl.Context:
        return self.domain.context

    @cached_property
    def queue(self) -> cl.CommandQueue:
        with calling("clCreateCommandQueue"):
            return cl.CommandQueue(self.context, self.handle)

    def profiled_queue(self) -> cl.CommandQueue:
        """Returns a new queue whose events have times, in nanoseconds."""
        with calling("clCreateCommandQueue"):
            profiling = cl.command_queue_properties.PROFILING_ENABLE
            return cl.CommandQueue(self.context, self.handle, profiling)

    @cached_property
    def geometry(self) -> tuple[tuple[int], tuple[int]]:
        """How many work-items a launch and a work-group have."""
        with calling("clGetDeviceInfo"):
            units = int(self.handle.max_compute_units)
            # On a CPU, each work-item loops over a block: eight for each core keep all cores busy.
            if self._is_cpu:
                return (8 * units,), (1,)
            group = min(256, int(self.handle.max_work_group_size))
            # 16 work-groups for each compute unit hide latency.
            return (16 * units * group,), (group,)

    def grid_of(self, pieces: Pieces) -> tuple[tuple[int], tuple[int]]:
        """Returns the work-items of a launch and of a work-group. A stream has one work-group."""
        with calling("clGetDeviceInfo"):
            most = 1 if self._is_cpu else int(self.handle.max_work_group_size)
        group = min(most, -(-pieces.size // VECTOR))
        return (pieces.streams * group,), (group,)

    @cached_property
    def no_kernels(self) -> str | None:
        """Why kernels do not compile, such as a compiler too old for the CPU; None if they do."""
        try:
            self._program("copy")
        except BackendError as error:
            why = f"{self.facts.device.memory} cannot compile kernels: {error.detail}"
            # PoCL reports this if its LLVM is older than the CPU (pocl issue 1049).
            old = "unknown target CPU" in error.detail
            return f"{why} (the runtime is older than this CPU: a newer one helps)" if old else why
        return None

    def kernel(self, name: str, *arguments: Any, file: str = "copy") -> cl.Kernel:
        program = self._program(file)
        with calling("clSetKernelArg"):
            kernel = cl.Kernel(program, name)
            kernel.set_args(*arguments)
        return kernel

    def run(self, name: str, *arguments: Any, file: str = "copy", alone: bool = False) -> None:
        kernel = self.kernel(name, *arguments, file=file)
        with calling("clEnqueueNDRangeKernel"):
            cl.enqueue_nd_range_kernel(self.queue, kernel, *(ALONE if alone else self.geometry))
            self.queue.finish()

    @cached_property
    def cache_line(self) -> int:
        """The cache line size in bytes: 64 if the device reports less or nothing."""
        with calling("clGetDeviceInfo"):
            return max(64, int(self.handle.global_mem_cacheline_size))

    @cached_property
    def cache_bytes(self) -> int:
        """The cache size in bytes, or 0 if the device does not report it."""
        with calling("clGetDeviceInfo"):
            return int(self.handle.global_mem_cache_size)

    @cached_property
    def has_doubles(self) -> bool:
        with calling("clGetDeviceInfo"):
            return "cl_khr_fp64" in self.handle.extensions.split()

    @property
    def _is_cpu(self) -> bool:
        return bool(self.handle.type & cl.device_type.CPU)

    def _program(self, file: str) -> cl.Program:
        if file not in self._programs:
            self._programs[file] = self._build(file)
        return self._programs[file]

    def _build(self, file: str) -> cl.Program:
        source = files("linkgauge.kernels").joinpath(f"{file}.cl").read_text(encoding="utf-8")
        options = ["-DBLOCKS"] if self._is_cpu else []
        try:
            # A compiler's messages on a program that it accepts do not concern the user.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = cl.Program(self.context, source)
                program.build(options, devices=[self.handle])
                return program
        except cl.Error as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            first = next((line for line in lines if "error:" in line), (*lines, "no reason")[0])
            raise BackendError("clBuildProgram", first) from error


class MemoryDomain:
    """Devices that share an OpenCL context: all devices of a platform that use the host's memory.
    Any other device is alone in its context: the runtime may move buffers of a shared context."""

    def __init__(self, handles: list[cl.Device]) -> None:
        self._handles = handles

    @cached_property
    def context(self) -> cl.Context:
        with calling("clCreateContext"):
            return cl.Context(self._handles)


def discover(root: Root = ROOT) -> tuple[OpenCLDevice, ...]:
    """Lists all OpenCL devices. Raises Unsupported if no platform has one."""
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        if error.code != cl.status_code.PLATFORM_NOT_FOUND_KHR:
            with calling("clGetPlatformIDs"):
                raise
        platforms = []
    if not platforms:
        raise Unsupported(
            "no OpenCL runtime is installed: install the device's driver, or PoCL for the CPU "
            f"({pip_install('linkgauge[opencl]')})"
        )
    units: list[OpenCLDevice] = []
    complaints: list[str] = []
    for number, platform in enumerate(platforms):
        try:
            with calling("clGetDeviceIDs"):
                units += _units_of(platform, number, len(units), root)
        except BackendError as error:
            # A broken driver must not hide the devices of others.
            complaints.append(str(error))
    if not units:
        names = ", ".join(platform.name.strip() for platform in platforms)
        why = f" ({'; '.join(complaints)})" if complaints else ""
        raise Unsupported(
            f"the OpenCL runtime has no device: {names}{why} (PoCL needs a writable cache "
            "folder: set POCL_CACHE_DIR)"
        )
    return tuple(units)


def _units_of(platform: cl.Platform, number: int, first: int, root: Root) -> list[OpenCLDevice]:
    found = [
        (handle, _facts(handle, platform, number, index, root))
        for index, handle in enumerate(platform.get_devices(), first)
    ]
    sharing = MemoryDomain([handle for handle, of in found if of.device.shares_host_memory])
    domains = (sharing if of.device.shares_host_memory else MemoryDomain([h]) for h, of in found)
    return [OpenCLDevice(*own, domain) for own, domain in zip(found, domains, strict=True)]


def _facts(
    handle: cl.Device, platform: cl.Platform, number: int, index: int, root: Root
) -> OpenCLFacts:
    is_cpu = bool(handle.type & cl.device_type.CPU)
    pci = _pci(handle)
    device = Device(
        memory=f"opencl:{index}",
        model=handle.name.strip(),
        memory_bytes=int(handle.global_mem_size),
        largest_buffer=int(handle.max_mem_alloc_size),
        driver=handle.driver_version.strip(),
        shares_host_memory=is_cpu or bool(handle.host_unified_memory),
        near=0 if pci is None else near_node(root, pci),
        pci=pci,
        notes=(platform.name.strip(), handle.version.strip()),
        is_cpu=is_cpu,
    )
    fine_grained = False
    # Devices before OpenCL 2.0 lack this query.
    with suppress(cl.Error):
        capabilities = int(handle.svm_capabilities)
        fine_grained = bool(capabilities & cl.device_svm_capabilities.FINE_GRAIN_BUFFER)
    return OpenCLFacts(device, number, fine_grained)


def _pci(handle: cl.Device) -> str | None:
    place: tuple[int, int, int, int] | None = None
    with suppress(cl.Error, AttributeError):
        slot = int(handle.pci_slot_id_nv)
        place = (int(handle.pci_domain_id_nv), int(handle.pci_bus_id_nv), slot >> 3, slot & 7)
    if place is None:
        with suppress(cl.Error, AttributeError):
            topology = handle.topology_amd
            place = (0, topology.bus & 255, topology.device & 255, topology.function & 255)
    return None if place is None else "{:04x}:{:02x}:{:02x}.{:x}".format(*place)
