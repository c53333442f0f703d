"""A GPU made of this CPU: device memory is the host's, and linkgauge's kernels, compiled by g++,
run to their end as they are launched. No gate is ever shut, and each event is a millisecond after
the one before."""

import ctypes
import re
from functools import cache
from types import SimpleNamespace

from compiled_kit import KERNELS, PRECOMPILED, library_of
from cuda_kit import Bindings, Status, gpu
from emulated_fabric import FabricCalls
from linkgauge.backends.cuda.backend import CudaBackend
from linkgauge.backends.cuda.driver import Driver
from linkgauge.model.hardware.machine import Node
from linkgauge.model.settings import EngineSettings

TRANSLATED = {
    'asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(number));': "value = half_to_float(number);",
    'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(number) : "f"(value));': "number = float_to_half(value);",
    'asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : '
    '"=l"(value.x), "=l"(value.y) : "l"(from));': "value = *from;",
    """asm volatile("st.global.v2.u64 [%0], {%1, %1};" ::"l"(destination + unit), "l"(word)
                         : "memory");""": "destination[unit] = make_ulonglong2(word, word);",
    "extern __shared__ __align__(128) char ring[];": (
        "static __align__(128) char ring[STAGE * STAGES];"
    ),
    '#include "bulk.cuh"': "typedef unsigned long long u64;",
    'asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));': "now = emulated_nanoseconds();",
}
"""Assembly of kernels, in C++."""
ENTRY_POINT = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\(\w+\)\s+)?(\w+)\(')


class EmulatingCompiler:
    """Compiles kernels for the CPU; what it gives for machine code is the library's path."""

    def compile(self, name, capability, defines=()):
        if name == "gate":
            return b""
        return str(_kernel(name, tuple(defines))).encode()


@cache
def _kernel(name, defines):
    return library_of(translated(name, defines))


def translated(name, defines):
    """A kernel's file in C++, with a function that launches each of its kernels."""
    kernel = (KERNELS / f"{name}.cu").read_text()
    for shared in ("progress.cuh", "content.cuh"):
        kernel = kernel.replace(f'#include "{shared}"', (KERNELS / shared).read_text())
    for assembly, meant in TRANSLATED.items():
        kernel = kernel.replace(assembly, meant)
    functions = ENTRY_POINT.findall(kernel)
    exchanges = str("__syncthreads" in kernel or "__shfl" in kernel).lower()
    lines = [f'#include "{PRECOMPILED}"']
    lines += [f"#define {define.replace('=', ' ')}" for define in defines]
    # Names of kernels are those of system calls.
    lines += [f"#define {function} kernel_{function}" for function in functions]
    lines += [kernel, *(f"#undef {function}" for function in functions)]
    lines += [
        f'extern "C" void emulate_{function}(unsigned blocks, unsigned threads, void** with) '
        f"{{ emulate(kernel_{function}, blocks, threads, with, {exchanges}); }}"
        for function in functions
    ]
    return "\n".join(lines)


class EmulatedBindings(FabricCalls, Bindings):
    """Memory and launches are real; everything else answers as `cuda_kit.gpu` has it."""

    def __init__(self, answers):
        Bindings.__init__(self)
        FabricCalls.__init__(self)
        self.answers = answers
        self.held = {}
        self.loaded = []

    def _done(self, name, *arguments):
        self.calls.append((name, *arguments))
        return (self.failing[name],) if name in self.failing else None

    def cuMemAlloc(self, size):  # noqa: N802  # the driver's names
        failed = self._done("cuMemAlloc", size)
        if failed:
            return failed
        memory = ctypes.create_string_buffer(size + 512)
        address = -(-ctypes.addressof(memory) // 256) * 256
        self.held[address] = memory
        return Status.CUDA_SUCCESS, address

    def cuMemFree(self, address):  # noqa: N802
        self._done("cuMemFree", address)
        del self.held[address]
        return (Status.CUDA_SUCCESS,)

    def cuMemGetAddressRange(self, address):  # noqa: N802
        inside = (base for base in self.held if base <= address < base + len(self.held[base]))
        base = max(inside)
        return Status.CUDA_SUCCESS, base, len(self.held[base]) - 512

    def cuIpcGetMemHandle(self, base):  # noqa: N802
        """All processes of the emulated machine are this one: the handle is the address."""
        failed = self._done("cuIpcGetMemHandle", base)
        reserved = base.to_bytes(64, "little")
        return failed or (Status.CUDA_SUCCESS, SimpleNamespace(reserved=reserved))

    def cuIpcOpenMemHandle(self, handle, flags):  # noqa: N802
        failed = self._done("cuIpcOpenMemHandle", handle.reserved, flags)
        return failed or (Status.CUDA_SUCCESS, int.from_bytes(handle.reserved, "little"))

    def cuMemcpyAsync(self, destination, source, size, stream):  # noqa: N802
        self._done("cuMemcpyAsync", destination, source, size)
        ctypes.memmove(destination, source, size)
        return (Status.CUDA_SUCCESS,)

    def cuMemsetD8Async(self, address, byte, size, stream):  # noqa: N802
        self._done("cuMemsetD8Async", address, byte, size)
        ctypes.memset(address, byte, size)
        return (Status.CUDA_SUCCESS,)

    def cuMemcpyDtoH(self, into, address, size):  # noqa: N802
        into[:size] = ctypes.string_at(address, size)
        return (Status.CUDA_SUCCESS,)

    def cuModuleLoadData(self, binary):  # noqa: N802
        self.loaded.append(ctypes.CDLL(binary.decode()) if binary else None)
        return Status.CUDA_SUCCESS, len(self.loaded) - 1

    def cuModuleGetFunction(self, module, name):  # noqa: N802
        return Status.CUDA_SUCCESS, (self.loaded[module], name.decode())

    def cuLaunchKernel(self, kernel, blocks, y, z, threads, *more):  # noqa: N802
        library, name = kernel
        failed = self._done("cuLaunchKernel", name, blocks, threads)
        if failed:
            return failed
        if library is not None:
            _, _, _, _, parameters, _ = more
            getattr(library, f"emulate_{name}")(blocks, threads, ctypes.c_void_p(parameters))
        return (Status.CUDA_SUCCESS,)

    def launched(self):
        """Names of the kernels launched so far, but for gates."""
        return [name for name, *_ in self.of("cuLaunchKernel") if name != "gate"]


def emulated(devices=1, **engines):
    """A backend of emulated GPUs, and its bindings."""
    uuid = SimpleNamespace(bytes=bytes(range(16)))
    answers = gpu(
        devices, cuDriverGetVersion=[13000], cuEventElapsedTime=[1.0], cuDeviceGetUuid_v2=[uuid]
    ).answers
    bindings = EmulatedBindings(answers)
    nodes = (Node(0, (0,)),)
    settings = EngineSettings(**{"tuned": False, **engines})
    return CudaBackend(Driver(bindings), nodes, settings, EmulatingCompiler()), bindings
