"""How launches of linkgauge's CUDA kernels are prepared: kernel, grid and arguments."""

from __future__ import annotations

from contextlib import ExitStack
from ctypes import c_int, c_uint32, c_uint64
from typing import Any, NamedTuple

from linkgauge.backends.protocol import MOST_BATCHES, Pattern, first_word
from linkgauge.model.errors import InputError, Unsupported

from .device import CudaDevice, KernelLaunch, device_memory
from .settings import CopySettings

# Where a kernel records its progress: one launch carries out all loops, so events cannot separate
# them.

_WORD = 8
_BEFORE = 2
"""The number of words before the kernel's times: the opening of the gate, and the number of steps
(progress.cuh)."""
_SIZE = (_BEFORE + MOST_BATCHES + 1) * _WORD
_NANO = 1e-9


class Marks:
    """A kernel's progress in device memory: a count of steps, and the times in ns (device's clock)
    at which the gate opened, the kernel started and each batch ended."""

    def __init__(self, device: CudaDevice, made: ExitStack) -> None:
        self._device = device
        self.opened = device_memory(device, _SIZE, made)
        self.steps = self.opened + _WORD
        self.batches = c_uint64(1)

    def reset(self, stream: Any) -> None:
        self._device.driver.call("cuMemsetD8Async", self.opened, 0, _SIZE, stream)

    def read(self) -> tuple[float, ...]:
        """Returns the kernel's start and the batches' ends, in seconds since the gate opened."""
        found = bytearray(_SIZE)
        self._device.call("cuMemcpyDtoH", found, self.opened, _SIZE)
        opened, _, *times = memoryview(found).cast("Q")
        return tuple((at - opened) * _NANO for at in times[: self.batches.value + 1])


ALIGNMENT = 4096
"""The parts of a copy start at multiples of this number of bytes."""
UNIT = 16
"""The bytes of one access."""
STAGE = 32 << 10
STAGES = 4
"""The number of chunks in the bulk kernel's ring in shared memory. A chunk has STAGE bytes."""
LOOPS = None
"""The argument that stands for a kernel's number of loops."""
_WORDS = 1 << 64
_SWEEP_THREADS = 512
_SWEEP_BLOCKS_A_MULTIPROCESSOR = 4


class Span(NamedTuple):
    destination: int
    source: int
    size: int

    def slices(self, count: int) -> list[Span]:
        """Cuts the copy at multiples of ALIGNMENT, into at most `count` nearly equal parts."""
        length = -(-self.size // max(1, count))
        return self.cut(-(-length // ALIGNMENT) * ALIGNMENT)

    def cut(self, length: int) -> list[Span]:
        return [
            Span(self.destination + at, self.source + at, min(length, self.size - at))
            for at in range(0, self.size, length)
        ]


def copy_launch(
    device: CudaDevice,
    span: Span,
    settings: CopySettings,
    both_ways: bool = False,
    marks: Marks | None = None,
) -> KernelLaunch:
    """Returns the launch of a copy kernel. The kernel records its progress in `marks`, if given.
    Addresses must be multiples of 16. For bulk copies, raises InputError if the settings are too
    large, and Unsupported if `both_ways` is true or the compute capability is below 9.0."""
    if settings.kernel == "bulk":
        _check_bulk(device, settings, both_ways)
        shared = STAGE * STAGES
        blocks = min(settings.blocks or device.multiprocessors, max(1, -(-span.size // STAGE)))
        # One thread issues the bulk copies; the others copy the last size % 16 bytes.
        grid = blocks, 32
        defines = {"STAGE": STAGE, "STAGES": STAGES, "AHEAD": settings.unroll}
    else:
        shared = 0
        grid, defines = plain_shape(device, span.size, settings)
        defines |= {"IN_PLACE": int(settings.in_place), "SPLIT": int(both_ways)}
    arguments: list[int | c_uint64 | None] = [*span, LOOPS]
    if marks is not None:
        defines["PROGRESS"] = 1
        arguments += [marks.steps, marks.batches]
    name = "bulk.copy" if shared else "copy.copy"
    return KernelLaunch(device, name, grid, arguments, defines, shared)


def plain_shape(
    device: CudaDevice, size: int, settings: CopySettings
) -> tuple[tuple[int, int], dict[str, int]]:
    """Returns the grid of a kernel (blocks, threads in each block) and the macros to compile the
    kernel with. Lowers `unroll` for a small `size`, so that more multiprocessors work."""
    blocks, unroll = settings.blocks or device.multiprocessors, settings.unroll
    while unroll > 1 and size < blocks * settings.threads * unroll * UNIT:
        unroll //= 2
    tiles = -(-size // (settings.threads * unroll * UNIT))
    defines = {
        "UNROLL": unroll,
        "THREADS": settings.threads,
        "SPREAD": int(settings.spread),
        "STREAMING": int(settings.streaming),
    }
    return (min(blocks, tiles), settings.threads), defines


def _check_bulk(device: CudaDevice, settings: CopySettings, both_ways: bool) -> None:
    _need_bulk(device)
    if both_ways:
        raise Unsupported("the bulk kernel copies one way: '<->' needs the plain kernel")
    if not 1 <= settings.unroll < STAGES:
        raise InputError(f"{settings.unroll} chunks ahead: the bulk kernel takes 1 to {STAGES - 1}")


def _need_bulk(device: CudaDevice) -> None:
    if device.capability < 90:
        raise Unsupported(f"bulk copies need compute capability 9.0: {device.model} has less")


def read_launch(device: CudaDevice, source: int, size: int, checksum: int) -> KernelLaunch:
    """Returns a launch that reads memory, and stores the xor of its 64-bit words at `checksum`."""
    arguments = source, size, LOOPS, checksum
    return KernelLaunch(device, "stream.read", _sweep(device, size), arguments)


def write_launch(device: CudaDevice, destination: int, size: int, seed: int) -> KernelLaunch:
    arguments = destination, size, LOOPS, first_word(seed)
    return KernelLaunch(device, "stream.write", _sweep(device, size), arguments)


def pattern_launch(
    device: CudaDevice, name: str, address: int, size: int, pattern: Pattern, seed: int, word: int
) -> KernelLaunch:
    """Returns a launch of kernel `fill` or `compare` on `size` bytes at `address`. `fill` writes
    the pattern, each word of it xored with `word`. `compare` takes `word` as an address, at which
    it stores the offset of the first wrong byte."""
    arguments = (address, size, seed % _WORDS, c_int(pattern), word)
    return KernelLaunch(device, f"pattern.{name}", _sweep(device, size), arguments)


def link_launch(device: CudaDevice, address: int, count: int, stride: int) -> KernelLaunch:
    grid = _sweep(device, count * UNIT)
    return KernelLaunch(device, "chase.link", grid, (address, count, stride))


def chase_launches(
    device: CudaDevice, address: int, count: int, stride: int, accesses: int, *, bulk: bool
) -> list[KernelLaunch]:
    """Returns a launch of the chase kernel (nvbandwidth's ptrChasingKernel) for each
    multiprocessor. Raises Unsupported if `bulk` is true and the device cannot make bulk copies."""
    if bulk:
        _need_bulk(device)
    name = "bulk_chase.chase" if bulk else "chase.chase"
    grid = (device.multiprocessors, 1)
    launches = []
    for block in range(device.multiprocessors):
        # Each launch begins where the one before ended.
        start = address + block * accesses % count * stride
        arguments = (start, c_uint32(accesses), c_uint32(block))
        launches.append(KernelLaunch(device, name, grid, arguments))
    return launches


def _sweep(device: CudaDevice, size: int) -> tuple[int, int]:
    wanted = -(-size // (UNIT * _SWEEP_THREADS))
    most = device.multiprocessors * _SWEEP_BLOCKS_A_MULTIPROCESSOR
    return max(1, min(wanted, most)), _SWEEP_THREADS
