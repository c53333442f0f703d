"""How cuBLAS multiplies matrices, with the same calls as torch.matmul makes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import ExitStack
from ctypes import c_double
from typing import Any

import msgspec

from linkgauge.backends.protocol import Copy
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.operation import (
    BLOCK,
    PRODUCTS,
    Operation,
    OperationName,
    order_of,
    tolerance,
    wrong_sum,
)
from linkgauge.model.transfer import Transfer
from linkgauge.model.units import approximate_size

from . import cublas
from .cublas import BlasHandle, CuBlas, open_cublas
from .device import CudaDevice, KernelLaunch, device_memory, new_word, read_word, run
from .driver import Driver
from .group import CudaGroup
from .work import StreamWork

_LAUNCHES = 3
"""The largest number of operations that a product enqueues."""
_THREADS, _MOST_BLOCKS_A_MULTIPROCESSOR = 256, 16
_SUM = 8
_NOT_A_NUMBER = 0xFF
"""A byte that gives NaN in every number type."""


class _Kind(msgspec.Struct, frozen=True):
    """A number type: codes in cuBLAS and in matmul.cu (`define`), and the capability it needs."""

    number: int
    compute: int
    define: int
    capability: int = 0


_KINDS: dict[object, _Kind] = {
    "matmul-fp32": _Kind(cublas.R_32F, cublas.COMPUTE_32F, 32),
    "matmul-tf32": _Kind(cublas.R_32F, cublas.COMPUTE_32F_FAST_TF32, 32, 80),
    "matmul-bf16": _Kind(cublas.R_16BF, cublas.COMPUTE_32F, 17, 80),
    "matmul-fp16": _Kind(cublas.R_16F, cublas.COMPUTE_32F, 16, 53),
}


class Products:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._library: CuBlas | None = None
        self._handles: dict[int, BlasHandle] = {}

    def group(
        self, device: CudaDevice, copy: Copy, does: Operation
    ) -> tuple[CudaGroup, CudaProductWork]:
        """Prepares a product. Raises Unsupported if the device is too old or cuBLAS is missing."""
        kind = _KINDS[does.name]
        if device.capability < kind.capability:
            least = f"{kind.capability // 10}.{kind.capability % 10}"
            name = PRODUCTS[does.name].name
            raise Unsupported(f"{name} needs compute capability {least}: {device.model} has less")
        if device.index not in self._handles:
            self._library = self._library or open_cublas(self._driver)
            self._handles[device.index] = BlasHandle(self._library, device)
        work = CudaProductWork(self._handles[device.index], device, does.name, copy)
        try:
            return CudaGroup(self._driver, [work.work]), work
        except BaseException:
            work.work.close()
            raise

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        if self._library is None or transfer.memories:
            return ()
        return (f"products by cuBLAS {self._library.version} ({self._library.path})",)

    def close(self) -> None:
        for handle in self._handles.values():
            handle.close()
        self._handles.clear()


class CudaProductWork:
    """Multiplies two matrices in a device's memory. A loop is one product A · B."""

    on_host = False

    def __init__(
        self, blas: BlasHandle, device: CudaDevice, operation: OperationName, copy: Copy
    ) -> None:
        self.device = device
        self.operation = operation
        self.order = order_of(copy.size)
        self._blas = blas
        self._kind = _KINDS[operation]
        self._seed = copy.seed
        self._bytes = self.order**2 * PRODUCTS[operation].bytes
        with ExitStack() as made:
            self.a, self.b, self.product = (self._memory(self._bytes, made) for _ in range(3))
            for number, matrix in enumerate((self.a, self.b)):
                arguments = (matrix, self.order**2, 2 * self._seed + number)
                run(device, self._launch("draw", -(-(self.order**2) // 4), arguments))
            # cuBLAS loads a kernel at its first use, which waits for the device: not behind a gate.
            self._enqueue([device.aside], 1)
            device.driver.call("cuStreamSynchronize", device.aside)
            close = made.pop_all().close
        entries = _LAUNCHES, 0
        self.work = StreamWork(device, "kernel", self._enqueue, entries, warm_up=1, close=close)

    def _enqueue(self, streams: Sequence[Any], loops: int) -> None:
        self._blas.bind(streams[0])
        kind = self._kind
        for _ in range(loops):
            self._blas.multiply(self.order, self.a, self.b, self.product, kind.number, kind.compute)

    def spoil(self) -> None:
        device = self.device
        where = self.product, _NOT_A_NUMBER, self._bytes
        device.call("cuMemsetD8Async", *where, device.stream(0))

    def mismatch(self) -> str | None:
        blocks = -(-self.order // BLOCK)
        count, shape = self.order * blocks, (self.order, BLOCK)
        with ExitStack() as made:
            of_b, of_product, expected = (self._memory(count * _SUM, made) for _ in range(3))
            for matrix, sums in ((self.b, of_b), (self.product, of_product)):
                arguments = (matrix, sums, *shape, self._seed)
                run(self.device, self._launch("fold", count, arguments))
            first = new_word(self.device, made, 0xFF)
            allowed = c_double(tolerance(self.operation, self.order))
            sums_of = (self.a, of_b, of_product, expected)
            run(self.device, self._launch("compare", count, (*sums_of, *shape, allowed, first)))
            wrong = read_word(self.device, first)
            if wrong >= count:
                return None
            two = (_number_at(self.device, one + wrong * _SUM) for one in (of_product, expected))
            return wrong_sum(self.order, *divmod(wrong, blocks), *two)

    def _memory(self, size: int, made: ExitStack) -> int:
        about = f"{approximate_size(size)} of cuda:{self.device.index}"
        return device_memory(self.device, size, made, about)

    def _launch(self, function: str, count: int, arguments: Sequence[Any]) -> KernelLaunch:
        most = self.device.multiprocessors * _MOST_BLOCKS_A_MULTIPROCESSOR
        grid = (min(-(-count // _THREADS), most), _THREADS)
        defines = {"NUMBER": self._kind.define}
        return KernelLaunch(self.device, f"matmul.{function}", grid, arguments, defines)


def _number_at(device: CudaDevice, address: int) -> float:
    word = read_word(device, address).to_bytes(_SUM, "little")
    return float(struct.unpack("<d", word)[0])
