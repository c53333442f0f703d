"""CUDA bindings that answer every call, and devices on them; and the backend of real GPUs."""

import ctypes
from enum import IntEnum
from functools import cached_property
from types import SimpleNamespace

import pytest

from linkgauge.backends.cuda import create
from linkgauge.backends.cuda.backend import CudaBackend
from linkgauge.backends.cuda.device import pinned_words
from linkgauge.backends.cuda.driver import Driver
from linkgauge.backends.cuda.launches import Span
from linkgauge.backends.cuda.work import engine_copy
from linkgauge.machine.host import read_host
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.machine import Node
from linkgauge.model.settings import EngineSettings

MiB = 1 << 20


def on_gpus(**engines):
    """The backend of the GPUs that there are; skips where there is none."""
    try:
        return create(EngineSettings(**engines), read_host())
    except Unsupported as reason:
        pytest.skip(str(reason))


class Status(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_DEVICE = 101
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_MAP_FAILED = 205
    CUDA_ERROR_ECC_UNCORRECTABLE = 214
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_LAUNCH_TIMEOUT = 702
    CUDA_ERROR_LAUNCH_FAILED = 719
    CUDA_ERROR_NOT_PERMITTED = 800
    CUDA_ERROR_NOT_SUPPORTED = 801
    CUDA_ERROR_TIMEOUT = 909
    CUDA_ERROR_UNKNOWN = 999


class Names:
    """A type of CUDA's: constants that are their own names."""

    def __getattr__(self, name):
        return name

    def __call__(self):
        return SimpleNamespace()


class Bindings:
    """Answers every driver call with success and a number, and remembers the calls. `answers` are
    by function, and so are the statuses of `failing`, whose first `left` calls succeed."""

    CUresult = Status
    CU_MEMHOSTALLOC_PORTABLE = 1
    CU_MEMHOSTALLOC_DEVICEMAP = 2
    CU_MEMHOSTALLOC_WRITECOMBINED = 4
    CU_MEMHOSTREGISTER_PORTABLE = 1
    CU_MEMHOSTREGISTER_DEVICEMAP = 2

    class CUevent_flags:  # noqa: N801  # CUDA's name
        CU_EVENT_DEFAULT = 0
        CU_EVENT_DISABLE_TIMING = 2

    def __init__(self):
        self.calls = []
        self.failing = {}
        self.left = {}
        self.answers = {}
        self.memory = []

    def __getattr__(self, name):
        if name.startswith("CU") and not name.startswith("CU_"):
            return Names()
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments):
            self.calls.append((name, *arguments))
            if name in self.failing:
                if not self.left.get(name):
                    return (self.failing[name],)
                self.left[name] -= 1
            if name in self.answers:
                return Status.CUDA_SUCCESS, *self.answers[name]
            if name in ("cuMemHostAlloc", "cuMemAllocManaged"):
                size = arguments[0]
                self.memory.append(ctypes.create_string_buffer(b"\xff" * size, size))
                return Status.CUDA_SUCCESS, ctypes.addressof(self.memory[-1])
            return Status.CUDA_SUCCESS, len(self.calls)

        return call

    def names(self):
        return [call[0] for call in self.calls]

    def of(self, name):
        """Arguments of each call of a function."""
        return [call[1:] for call in self.calls if call[0] == name]


class FakeDevice:
    multiprocessors = 132
    managed = 0
    calls_wait = False

    def __init__(self, driver, index=0):
        self.driver, self.index = driver, index
        self.most_behind = {}

    @cached_property
    def gate(self):
        return pinned_words(self, ctypes.c_uint32, 2)

    def enter(self):
        self.driver.call("cuCtxSetCurrent", f"context {self.index}")

    def call(self, name, *arguments, about=""):
        self.enter()
        return self.driver.call(name, *arguments, about=about)

    def stream(self, number):
        return f"stream {self.index}.{number}"

    def kernel(self, file, function, defines=()):
        records = " PROGRESS=1" if "PROGRESS=1" in defines else ""
        return f"{file}.{function}{records}"

    def attribute(self, name):
        return self.driver.call("cuDeviceGetAttribute", name)


class FakeCompiler:
    def compile(self, name, capability, defines=()):
        return b"binary"


NODES = (Node(0, (0, 1)), Node(1, (2, 3)))


def backend_of(bindings, nodes=NODES, **engines):
    """The backend over these bindings, its kernels compiled by nobody."""
    return CudaBackend(Driver(bindings), nodes, EngineSettings(**engines), FakeCompiler())


def gpu(devices=1, **answers):
    """Bindings of GPUs that are as real as CudaBackend needs them."""
    bindings = Bindings()
    bindings.answers = {
        "cuDeviceGetCount": [devices],
        "cuDeviceGetName": [b"NVIDIA H200\0"],
        "cuDeviceGetAttribute": [9],  # compute capability 9.9, and 9 multiprocessors
        "cuDeviceGetPCIBusId": [b"0000:1B:00.0\0"],
        "cuDeviceCanAccessPeer": [1],
        **answers,
    }
    return bindings


def engine_copies(bindings, devices=(0,), streams=1, warm_up=1):
    driver, span = Driver(bindings), Span(1 << 40, 1 << 41, 8 * MiB)
    return driver, [
        engine_copy(FakeDevice(driver, index), span, streams, warm_up) for index in devices
    ]
