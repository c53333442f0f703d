"""The operations that cells carry out. Operations on arrays count the bytes of each array read or
written, as STREAM does (McCalpin, *Memory Bandwidth and Machine Balance …*, 1995)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from .collective import Collective

# Products of square matrices, as operations of cells: `matmul-fp32`, `matmul-bf16` and so on.
#
# The size of a cell is that of one n × n matrix of 4-byte numbers, whatever the type of its own, so
# that cells of one size have one n. The matrices lie in the memory of the engine's owner, and their
# numbers are drawn from N(0, 1). A product takes 2 n³ floating-point operations, n³ multiplications
# and as many additions, whatever the algorithm.

ProductOperation = Literal["matmul-fp32", "matmul-tf32", "matmul-bf16", "matmul-fp16"]

NUMBER = 4
"""Bytes of a number, as a cell's size counts them."""
MATRICES = 3
"""The number of matrices of a product: A, B and A · B."""
BLOCK = 32
"""The number of columns of a product that one sum checks."""
_DEVIATIONS = 8
"""How far a sum may be wrong, in standard deviations of the rounding error. Of the 2 million sums
of an 8192 × 8192 product, none is beyond 6 by chance."""
_SINGLE = 2.0**-24
"""Relative rounding error of a single-precision number."""


class ProductType(msgspec.Struct, frozen=True):
    """A number type. `error` is an element's relative error from rounding inputs and the result."""

    name: str
    bytes: int
    error: float


PRODUCTS: Mapping[object, ProductType] = {
    "matmul-fp32": ProductType("FP32", 4, 0.0),
    "matmul-tf32": ProductType("TF32", 4, 2.0**-9),
    "matmul-bf16": ProductType("BF16", 2, 2.0**-9),
    "matmul-fp16": ProductType("FP16", 2, 2.0**-11),
}


def size_of(order: int) -> int:
    return order * order * NUMBER


def order_of(size: int) -> int:
    return math.isqrt(size // NUMBER)


def operations_of(order: int) -> int:
    return 2 * order**3


def tolerance(operation: object, order: int) -> float:
    """Returns the largest error in the sum of `BLOCK` adjacent elements of a correct product of two
    matrices with `order` rows."""
    # Each of n = `order` additions rounds a sum of at most √n: the deviation is below n · 2⁻²⁴
    # (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd edition, 2.8).
    deviation = math.hypot(order * _SINGLE, math.sqrt(order) * PRODUCTS[operation].error)
    return _DEVIATIONS * math.sqrt(BLOCK) * deviation


def wrong_sum(order: int, row: int, block: int, found: float, expected: float) -> str:
    columns = f"{block * BLOCK} to {min((block + 1) * BLOCK, order) - 1}"
    where = f"row {row}, columns {columns}"
    return f"the product is wrong in {where}: their sum is {found:.6g}, expected {expected:.6g}"


def wrong_of(library: Any, found: Any, expected: Any, allowed: float) -> str | None:
    """Returns a message about the first sum that is wrong, or None. `library` is numpy or torch."""
    # A difference that is no number compares as false.
    wrong = library.argwhere(~(abs(found - expected) <= allowed))
    if not len(wrong):
        return None
    row, block = map(int, wrong[0])
    return wrong_sum(len(found), row, block, float(found[row, block]), float(expected[row, block]))


# What other tools measure between two ranks.

OutsideOperation = Literal[
    "iperf3",
    "ib_write_bw", "ib_write_bw --use_cuda", "ib_write_bw --use_cuda_dmabuf",
    "ib_read_bw", "ib_read_bw --use_cuda", "ib_read_bw --use_cuda_dmabuf",
    "ib_write_lat", "ib_write_lat --use_cuda", "ib_write_lat --use_cuda_dmabuf",
    "ib_read_lat", "ib_read_lat --use_cuda", "ib_read_lat --use_cuda_dmabuf",
    "ib_send_lat", "ib_send_lat --use_cuda", "ib_send_lat --use_cuda_dmabuf",
]  # fmt: skip
"""The operations in which other tools move their own bytes between two ranks. The name says which
memory: GPU 0's, which the driver shares (nvidia-peermem) or provides as a DMA buffer; else the
host's."""
OUTSIDE: tuple[OutsideOperation, ...] = get_args(OutsideOperation)


PrimesOperation = Literal["primes", "primes-20000"]
PRIMES: Mapping[PrimesOperation, int] = {"primes": 10_000, "primes-20000": 20_000}
"""The limit below which each search looks for prime numbers. The first is sysbench's default."""

HostMode = Literal["stream", "peak"]
"""How host threads access memory. `stream` is a linear walk with ordinary stores, as compilers make
of STREAM's loops. `peak` is the way that was found to be the fastest on this machine."""
HOST_MODES: tuple[HostMode, ...] = get_args(HostMode)

ArrayKind = Literal["copy", "scale", "add", "triad", "read", "write"]
ArrayOperation = Literal[
    "stream-copy",
    "stream-scale",
    "stream-add",
    "stream-triad",
    "stream-read",
    "stream-write",
    "peak-copy",
    "peak-scale",
    "peak-add",
    "peak-triad",
    "peak-read",
    "peak-write",
]
HandOver = Literal["launch", "sync", "event", "graph-launch", "doorbell"]
HAND_OVERS: tuple[HandOver, ...] = get_args(HandOver)
"""The ways in which the host gives work to a device and learns that the work is done."""
OperationName = (
    Literal[
        "copy", "bulk-copy", "chase", "bulk-chase", "enqueue", "ping-pong", "copy-ping-pong",
        "flag-ping-pong", "timed-copy", HandOver, "overlap", "touch", PrimesOperation, "broadcast",
        "workload", OutsideOperation, ArrayOperation, ProductOperation,
    ]
    | Collective
)  # fmt: skip
"""The name of an operation in cells and files. An operation moves bytes, follows pointers, does
either by the GPU's bulk copy unit, enqueues copies on a device, bounces a cache line, copies there
and back, bounces flags between memories, times single copies by the device's events, hands over
empty work, copies while a kernel computes, has fresh memory allocated, searches prime numbers,
stores the content of one memory in all others at once, carries out an AI workload, has another tool
measure, works on arrays as STREAM does, multiplies matrices, or carries out a collective of all
ranks."""


class ArrayWork(msgspec.Struct, frozen=True):
    mode: HostMode
    kind: ArrayKind
    read: int
    written: int
    formula: str

    @property
    def computes(self) -> bool:
        return self.kind in ("scale", "add", "triad")

    @property
    def counted(self) -> int:
        return self.read + self.written


class Operation(msgspec.Struct, frozen=True):
    """An operation and its properties. `lacking` says what a backend without it lacks.
    `is_compared` is true if buffers show whether it was right, `is_single` if a sample is one
    iteration, `by_device` if a device can do it alone, `in_memory` if it uses memories, `of_sizes`
    if its cells form a curve over sizes, and `concurrent_loads` if transfers after the first are
    copies that run meanwhile."""

    name: OperationName
    lacking: str
    is_copy: bool = False
    is_compared: bool = True
    is_single: bool = False
    is_by_bytes: bool = True
    by_device: bool = False
    by_host_alone: bool = False
    by_flags: bool = False
    between_cpus: bool = False
    in_memory: bool = True
    concurrent_loads: bool = False
    follows_pointers: bool = False
    has_size: bool = True
    of_sizes: bool = False
    from_one: bool = False
    fills_time: bool = False
    as_graph: OperationName | None = None
    array: ArrayWork | None = None
    product: ProductType | None = None
    collective: Collective | None = None
    outside: OutsideOperation | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether transfers after the first are load during the whole measurement."""
        return self.follows_pointers or self.is_single

    @property
    def is_latency(self) -> bool:
        return self.is_loaded or self.by_host_alone or self.between_cpus

    @property
    def computes(self) -> bool:
        return self.array is not None and self.array.computes

    @property
    def mode(self) -> HostMode | None:
        return self.array.mode if self.array is not None else None

    @property
    def source_arrays(self) -> int:
        return max(1, self.array.read) if self.array is not None else 1

    @property
    def counted_arrays(self) -> int:
        """How often a bandwidth counts the cell's size: once, or for each array as in STREAM."""
        return self.array.counted if self.array is not None else 1


_KINDS: dict[ArrayKind, tuple[int, int, str]] = {
    "copy": (1, 1, "a = b"),
    "scale": (1, 1, "a = 3 b"),
    "add": (2, 1, "a = b + c"),
    "triad": (2, 1, "a = b + 3 c"),
    "read": (1, 0, "b is read"),
    "write": (0, 1, "a is written"),
}
ARRAYS: Mapping[object, ArrayWork] = {
    f"{mode}-{kind}": ArrayWork(mode, kind, *arrays)
    for mode in HOST_MODES
    for kind, arrays in _KINDS.items()
}
ARRAY_NAMES: tuple[ArrayOperation, ...] = get_args(ArrayOperation)
PEAK_NAMES = tuple(name for name in ARRAY_NAMES if ARRAYS[name].mode == "peak")
"""The names of the operations that kernels carry out on arrays (mode `peak`)."""
PRODUCT_NAMES: tuple[ProductOperation, ...] = get_args(ProductOperation)

COPY = Operation("copy", "has no copy", is_copy=True, by_device=True)
_CHASE = Operation(
    "chase",
    "does not measure latency",
    is_compared=False,
    is_by_bytes=False,
    by_device=True,
    follows_pointers=True,
    of_sizes=True,
)
_NO_BULK = "has no bulk copy unit (TMA)"
_ALL: tuple[Operation, ...] = (
    COPY,
    Operation("bulk-copy", _NO_BULK, by_device=True),
    _CHASE,
    replace(_CHASE, name="bulk-chase", lacking=_NO_BULK),
    Operation("enqueue", "does not time enqueueing", is_by_bytes=False, by_host_alone=True),
    Operation("ping-pong", "does not bounce cache lines", is_by_bytes=False, between_cpus=True),
    Operation(
        "copy-ping-pong", "does not time round trips of copies", is_single=True, of_sizes=True
    ),
    Operation(
        "flag-ping-pong",
        "does not bounce flags",
        is_compared=False,
        is_single=True,
        is_by_bytes=False,
        by_flags=True,
    ),
    Operation(
        "timed-copy",
        "does not time single copies by events",
        is_single=True,
        by_device=True,
        of_sizes=True,
    ),
    *(
        Operation(
            name,
            f"does not measure {name.replace('-', ' ')} latency",
            is_compared=False,
            is_single=True,
            is_by_bytes=False,
            in_memory=False,
            concurrent_loads=True,
            has_size=False,
            as_graph="graph-launch" if name == "launch" else None,
        )
        for name in HAND_OVERS
    ),
    Operation("overlap", "does not compute during copies", in_memory=False, concurrent_loads=True),
    Operation("touch", "does not measure fresh memory", is_compared=False, is_by_bytes=False),
    *(
        Operation(
            name,
            "does not compute prime numbers",
            is_by_bytes=False,
            in_memory=False,
            fills_time=True,
        )
        for name in get_args(PrimesOperation)
    ),
    Operation("broadcast", "has no broadcast", by_device=True, from_one=True),
    Operation("workload", "has no workload"),
    *(Operation(name, f"has no {name}", is_compared=False, outside=name) for name in OUTSIDE),
    *(
        Operation(name, "has no array kernels", by_device=True, array=ARRAYS[name])
        for name in ARRAY_NAMES
    ),
    *(
        Operation(
            name,
            "multiplies no matrices: cuda and torch do, and host threads",
            is_by_bytes=False,
            by_device=True,
            in_memory=False,
            product=PRODUCTS[name],
        )
        for name in PRODUCT_NAMES
    ),
)
OPERATIONS: Mapping[OperationName, Operation] = {one.name: one for one in _ALL}
"""All operations except the collectives, by name."""


def named(name: OperationName) -> Operation:
    return _of_collective(name) if isinstance(name, Collective) else OPERATIONS[name]


@cache
def _of_collective(work: Collective) -> Operation:
    return Operation(
        work,
        "carries out no collectives: cuda and mpi do",
        is_compared=work.is_checked,
        of_sizes=True,
        collective=work,
    )
