"""What the tests of the opencl backend have in common. Skips the module that imports it, with the
reason, where there is no OpenCL; CI has PoCL's two CPU devices."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest

# PoCL reads it once, when it is loaded.
os.environ.setdefault("POCL_DEVICES", "pthread pthread")

from linkgauge.backends import open_backend, opencl, protocol
from linkgauge.backends.protocol import Buffer, Copy, Pattern
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.machine import Node
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import Transfer

cl = pytest.importorskip("pyopencl", reason="pip install '.[opencl]'")
try:
    open_backend("opencl").close()
except Unsupported as unsupported:
    pytest.skip(str(unsupported), allow_module_level=True)

from linkgauge.backends.opencl.runtime import OpenCLDevice, discover

SEED = 0xFEDC_BA98_7654_3210
_CPU_NAME = ctypes.create_string_buffer(b"x86-64")


def teach_pocl_this_cpu() -> None:
    """PoCL 3.0 (its wheel) compiles nothing on a CPU younger than its LLVM 14: it hands clang the
    name 'generic', which clang refuses (pocl issue 1049), and no option reaches there. So that
    kernels are truly run on such machines too, its devices are given a name that clang knows."""
    pointer = ctypes.sizeof(ctypes.c_void_p)
    for platform in cl.get_platforms():
        for device in platform.get_devices():
            if "PoCL 3.0-rc2" not in platform.version or not device.version.endswith("-generic"):
                continue
            slot = ctypes.c_void_p.from_address(device.int_ptr + 80 * pointer)  # llvm_cpu
            if slot.value and ctypes.string_at(slot.value, 8) == b"generic\0":
                slot.value = ctypes.addressof(_CPU_NAME)


teach_pocl_this_cpu()


class AsGpu(OpenCLDevice):
    """The device with the kernels' strided variant, which is a GPU's."""

    _is_cpu = False


def backend_of(units: list[Any], nodes: Sequence[int] = (0,)) -> opencl.OpenCL:
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    return opencl.OpenCL(units, [Node(index, cpus) for index in nodes])


@contextmanager
def opened(*, as_gpu: bool = False) -> Iterator[opencl.OpenCL]:
    """A backend of the devices that there are, as they are or taken for GPUs."""
    units = discover()
    if as_gpu:
        units = tuple(AsGpu(unit.handle, unit.facts, unit.domain) for unit in units)
    with closing(backend_of(list(units))) as backend:
        yield backend


def copy_of(backend: opencl.OpenCL, transfer: Transfer, size: int, seed: int = SEED) -> Any:
    """A base.Copy, its buffers filled as the engine fills them; skips what the devices here cannot
    do."""
    if reason := backend.refusal(transfer):
        pytest.skip(reason)

    def filled(memory: Memory, inverted: bool) -> Buffer | None:
        if memory.is_null:
            return None
        buffer = backend.allocate(memory, size, transfer.engine)
        backend.fill(buffer, size, Pattern.WORDS, seed, inverted)
        return buffer

    source, destination = filled(transfer.source, False), filled(transfer.destination, True)
    return Copy(transfer, source, destination, size, seed)


def run(backend: opencl.OpenCL, copies: list[Copy], loops: int = 2) -> Any:
    group = backend.prepare(copies)
    timing = protocol.run(group, loops)
    group.close()
    return timing


def buffers(copy: Copy) -> tuple[Any, ...]:
    return tuple(end for end in (copy.source, copy.destination) if end is not None)


def corrupt(buffer: Any, offset: int) -> None:
    """Flips one bit behind the backend's back."""
    if buffer.memory.is_host:
        with buffer.at() as address:
            ctypes.c_uint8.from_address(address + offset).value ^= 1
        return
    byte = bytearray(1)
    cl.enqueue_copy(buffer.unit.queue, byte, buffer.for_copy(1), src_offset=offset)
    byte[0] ^= 1
    cl.enqueue_copy(buffer.unit.queue, buffer.for_copy(1), byte, dst_offset=offset)


def opencl_error(name: str, routine: str, text: str = "") -> Exception:
    code = int(getattr(cl.status_code, name))
    error: Exception = cl.RuntimeError(cl._cl._ErrorRecord(msg=text, code=code, routine=routine))
    return error
