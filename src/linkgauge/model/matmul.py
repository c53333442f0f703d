"""Products of square matrices, as operations of cells: `matmul-fp32`, `matmul-bf16` and so on.

The size of a cell is that of one n × n matrix of 4-byte numbers, whatever the type of its own, so
that cells of one size have one n. The matrices lie in the memory of the engine's owner, and their
numbers are drawn from N(0, 1). A product takes 2 n³ floating-point operations, n³ multiplications
and as many additions, whatever the algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import msgspec

ProductOperation = Literal["matmul-fp32", "matmul-tf32", "matmul-bf16", "matmul-fp16"]

NUMBER = 4
"""Bytes of a number by which a cell's size counts."""
MATRICES = 3
"""A, B and A · B."""
BLOCK = 32
"""Columns of a product that are checked by one sum."""
_DEVIATIONS = 8
"""A sum may be wrong by so many standard deviations of what rounding makes of it: of the 2 million
sums of an 8192 × 8192 product, none is beyond 6 by chance."""
_SINGLE = 2.0**-24
"""Relative rounding error of a single-precision number."""


class ProductType(msgspec.Struct, frozen=True):
    """The type of a product's numbers: its `name` for people, the `bytes` of one, and the relative
    error that an element of the product has beside that of sums in single precision, from inputs
    that are cut to the type or from a result that is rounded to it."""

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
    """The size in bytes of a cell that multiplies matrices of this order."""
    return order * order * NUMBER


def order_of(size: int) -> int:
    """The order n of the matrices of a cell of this size: the largest that it holds."""
    return math.isqrt(size // NUMBER)


def operations_of(order: int) -> int:
    """Floating-point operations of one product."""
    return 2 * order**3


def tolerance(operation: object, order: int) -> float:
    """How far the signed sum of `BLOCK` neighbours in a row of the product may be from the exact
    one.

    An element is a sum of n products of N(0, 1) numbers and of the order of √n. Summed up in single
    precision its error is below n · 2⁻²⁴, as a standard deviation: each of n additions rounds a
    partial sum of at most √n, and the errors are independent (Higham, *Accuracy and Stability of
    Numerical Algorithms*, 2nd edition, 2.8). Tensor cores cut inputs to TF32; BF16 and FP16 results
    are rounded.
    """
    deviation = math.hypot(order * _SINGLE, math.sqrt(order) * PRODUCTS[operation].error)
    return _DEVIATIONS * math.sqrt(BLOCK) * deviation


def wrong_sum(order: int, row: int, block: int, found: float, expected: float) -> str:
    """Says which signed sum of a product is wrong: that of `block` (from 0) in a row."""
    columns = f"{block * BLOCK} to {min((block + 1) * BLOCK, order) - 1}"
    where = f"row {row}, columns {columns}"
    return f"the product is wrong in {where}: their sum is {found:.6g}, expected {expected:.6g}"
