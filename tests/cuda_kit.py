"""CUDA bindings that answer every call, and devices on them."""

import ctypes
from enum import IntEnum

from linkgauge.backends.cuda.driver import Driver
from linkgauge.backends.cuda.work import EngineCopy

MiB = 1 << 20


class Status(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2


class Bindings:
    """Answers every driver call with success and a number, and remembers the calls."""

    CUresult = Status
    CU_MEMHOSTALLOC_PORTABLE = 1
    CU_MEMHOSTALLOC_DEVICEMAP = 2

    class CUevent_flags:  # noqa: N801  # CUDA's name
        CU_EVENT_DEFAULT = 0
        CU_EVENT_DISABLE_TIMING = 2

    def __init__(self):
        self.calls = []
        self.failing = {}
        self.memory = []

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments):
            self.calls.append((name, *arguments))
            if name in self.failing:
                return (self.failing[name],)
            if name == "cuMemHostAlloc":
                self.memory.append(ctypes.create_string_buffer(arguments[0]))
                return Status.CUDA_SUCCESS, ctypes.addressof(self.memory[-1])
            return Status.CUDA_SUCCESS, len(self.calls)

        return call

    def names(self):
        return [call[0] for call in self.calls]


class FakeDevice:
    multiprocessors = 132

    def __init__(self, driver, index=0):
        self.driver, self.index = driver, index

    def enter(self):
        self.driver.call("cuCtxSetCurrent", f"context {self.index}")

    def stream(self, number):
        return f"stream {self.index}.{number}"

    def kernel(self, file, function, defines=()):
        return f"{file}.{function}"


def engine_copies(bindings, devices=(0,), streams=1):
    driver = Driver(bindings)
    return driver, [
        EngineCopy(FakeDevice(driver, index), 1 << 40, 1 << 41, 8 * MiB, streams)
        for index in devices
    ]
