"""OpenCL's platforms and devices, and the one boundary where its errors enter.

Importing this imports pyopencl: only `opencl.create` does, once it knows that there is one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

import pyopencl as cl

from linkgauge.machine.numa import near_node
from linkgauge.machine.tree import ROOT
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.machine import Device
from linkgauge.model.result import Pieces

from .refusals import SPACE, Facts

_NO_MEMORY = {cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE, cl.status_code.OUT_OF_HOST_MEMORY}
# Drivers answer these to any trouble, so they mean memory only where memory was asked for.
_NO_MEMORY_IF_ALLOCATING = {cl.status_code.OUT_OF_RESOURCES, cl.status_code.INVALID_BUFFER_SIZE}


@contextmanager
def calling(call: str, allocating: int | None = None) -> Iterator[None]:
    """Turns pyopencl's errors into ours: `call` is named where the error does not name one.

    `allocating` is the size in bytes, where memory is asked for: then running out of it is an
    AllocationError. Everything else is a BackendError.
    """
    try:
        yield
    except cl.Error as error:
        name = status_name(error.code)
        # Where pyopencl itself objects it names a method of its own.
        where = error.routine if error.routine.startswith("cl") else call
        if allocating is not None and error.code in _NO_MEMORY | _NO_MEMORY_IF_ALLOCATING:
            raise AllocationError(where, f"{name} for {allocating} bytes") from error
        if error.code in _NO_MEMORY:
            raise AllocationError(where, name) from error
        raise BackendError(where, name) from error


def status_name(code: int) -> str:
    """OpenCL's name for an error code."""
    named: Any = cl.status_code  # its stub has no callable to_string
    return str(named.to_string(code, "error %d"))


VECTOR = 16
"""Bytes of a work-item's access (copy.cl)."""


class Spare(Protocol):
    def free(self) -> None: ...


class OpenCLDevice:
    """One device: its context, the queue that fills and compares, and its kernels.

    All of them are made when first used: listing the devices must not wake them.
    """

    def __init__(self, handle: cl.Device, facts: Facts, domain: Domain) -> None:
        self.handle = handle
        self.facts = facts
        self.domain = domain
        self.spare: Spare | None = None
        """Host memory that is kept for the device's buffers."""

    def free_spare(self) -> None:
        if self.spare is not None:
            self.spare.free()
            self.spare = None

    @property
    def context(self) -> cl.Context:
        return self.domain.context

    @cached_property
    def queue(self) -> cl.CommandQueue:
        """In order, not profiled: for all work that is not timed."""
        with calling("clCreateCommandQueue"):
            return cl.CommandQueue(self.context, self.handle)

    def profiled_queue(self) -> cl.CommandQueue:
        """A new in-order queue whose events carry times in nanoseconds."""
        with calling("clCreateCommandQueue"):
            profiling = cl.command_queue_properties.PROFILING_ENABLE
            return cl.CommandQueue(self.context, self.handle, profiling)

    @cached_property
    def geometry(self) -> tuple[tuple[int], tuple[int]]:
        """Work-items of a launch and of a work-group.

        A CPU runs each work-item as a loop over one contiguous block: eight for each core, so that
        a core held up by something else leaves blocks to the others. A GPU hides latency by
        occupancy: 16 work-groups of 256 for each compute unit are all that one can hold.
        """
        with calling("clGetDeviceInfo"):
            units = int(self.handle.max_compute_units)
            if self._is_cpu:
                return (8 * units,), (1,)
            group = min(256, int(self.handle.max_work_group_size))
            return (16 * units * group,), (group,)

    def grid_of(self, pieces: Pieces) -> tuple[tuple[int], tuple[int]]:
        """Work-items of a launch, and of a work-group, of which each stream of pieces has one."""
        with calling("clGetDeviceInfo"):
            most = 1 if self._is_cpu else int(self.handle.max_work_group_size)
        group = min(most, -(-pieces.size // VECTOR))
        return (pieces.streams * group,), (group,)

    @cached_property
    def no_kernels(self) -> str | None:
        """Why kernels do not run here (a runtime without a compiler, or one that is too old for
        its CPU), in one line; None if they do."""
        try:
            _ = self._program
        except BackendError as error:
            why = f"{self.facts.device.memory} cannot compile kernels: {error.detail}"
            # PoCL says so where its LLVM is older than the CPU (pocl issue 1049).
            old = "unknown target CPU" in error.detail
            return f"{why} (the runtime is older than this CPU: a newer one helps)" if old else why
        return None

    def kernel(self, name: str, *arguments: Any) -> cl.Kernel:
        """A kernel of its own with its arguments set, to be launched any number of times."""
        program = self._program
        with calling("clSetKernelArg"):
            kernel = cl.Kernel(program, name)
            kernel.set_args(*arguments)
        return kernel

    def run(self, name: str, *arguments: Any) -> None:
        """Launches a kernel and waits for it."""
        kernel = self.kernel(name, *arguments)
        with calling("clEnqueueNDRangeKernel"):
            cl.enqueue_nd_range_kernel(self.queue, kernel, *self.geometry)
            self.queue.finish()

    @property
    def _is_cpu(self) -> bool:
        return bool(self.handle.type & cl.device_type.CPU)

    @cached_property
    def _program(self) -> cl.Program:
        source = files("linkgauge.kernels").joinpath("copy.cl").read_text(encoding="utf-8")
        options = ["-DBLOCKS"] if self._is_cpu else []
        try:
            # What a compiler has to say of a program that it accepts is no concern of the user's.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = cl.Program(self.context, source)
                program.build(options, devices=[self.handle])
                return program
        except cl.Error as error:
            raise BackendError("clBuildProgram", _first_complaint(str(error))) from error


class Domain:
    """Devices whose buffers are in one place, so that they can share a context.

    Devices that share the host's memory are one domain for each platform. Any other device is a
    domain of its own: in a common context the runtime would be free to move its buffers.
    """

    def __init__(self, handles: list[cl.Device]) -> None:
        self._handles = handles

    @cached_property
    def context(self) -> cl.Context:
        with calling("clCreateContext"):
            return cl.Context(self._handles)


def discover(root: Path = ROOT) -> tuple[OpenCLDevice, ...]:
    """All devices of all platforms. Raises Unsupported with the reason where there is none."""
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
            "(pip install 'linkgauge[opencl]')"
        )
    units: list[OpenCLDevice] = []
    complaints: list[str] = []
    for number, platform in enumerate(platforms):
        try:
            with calling("clGetDeviceIDs"):
                units += _units_of(platform, number, len(units), root)
        except BackendError as error:
            # One broken driver must not take the others' devices away.
            complaints.append(str(error))
    if not units:
        names = ", ".join(platform.name.strip() for platform in platforms)
        why = f" ({'; '.join(complaints)})" if complaints else ""
        raise Unsupported(
            f"the OpenCL runtime has no device: {names}{why} (PoCL needs a cache folder that it "
            "can write: set POCL_CACHE_DIR)"
        )
    return tuple(units)


def _units_of(platform: cl.Platform, number: int, first: int, root: Path) -> list[OpenCLDevice]:
    handles = platform.get_devices()
    facts = [
        _facts(handle, platform, number, first + place, root)
        for place, handle in enumerate(handles)
    ]
    pairs = list(zip(handles, facts, strict=True))
    sharing = Domain([handle for handle, fact in pairs if fact.device.shares_host_memory])
    return [
        OpenCLDevice(handle, fact, sharing if fact.device.shares_host_memory else Domain([handle]))
        for handle, fact in pairs
    ]


def _facts(handle: cl.Device, platform: cl.Platform, number: int, index: int, root: Path) -> Facts:
    is_cpu = bool(handle.type & cl.device_type.CPU)
    device = Device(
        memory=f"{SPACE}:{index}",
        model=handle.name.strip(),
        memory_bytes=int(handle.global_mem_size),
        largest_buffer=int(handle.max_mem_alloc_size),
        driver=handle.driver_version.strip(),
        shares_host_memory=is_cpu or bool(handle.host_unified_memory),
        near=_near(handle, root),
        notes=(platform.name.strip(), handle.version.strip()),
    )
    fine_grained = False
    # A device older than OpenCL 2.0 has no such thing to ask for.
    with suppress(cl.Error):
        capabilities = int(handle.svm_capabilities)
        fine_grained = bool(capabilities & cl.device_svm_capabilities.FINE_GRAIN_BUFFER)
    return Facts(device, number, fine_grained)


def _near(handle: cl.Device, root: Path) -> int:
    """The host node nearest to the device, by its place on the PCI bus; 0 where that is unknown."""
    place: tuple[int, int, int, int] | None = None
    with suppress(cl.Error, AttributeError):
        slot = int(handle.pci_slot_id_nv)
        place = (int(handle.pci_domain_id_nv), int(handle.pci_bus_id_nv), slot >> 3, slot & 7)
    if place is None:
        with suppress(cl.Error, AttributeError):
            topology = handle.topology_amd
            place = (0, topology.bus & 255, topology.device & 255, topology.function & 255)
    if place is None:
        return 0
    return near_node(root, "{:04x}:{:02x}:{:02x}.{:x}".format(*place))


def _first_complaint(log: str) -> str:
    """The line of a build log that says what is wrong."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error:" in line), lines[0] if lines else "no reason")
