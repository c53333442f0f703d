"""Products of matrices: their order and size, what they count, and how wrong a sum may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.notation import parse_transfers
from linkgauge.model.operations.operation import PRODUCTS, order_of, size_of, tolerance
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report


def cell(text, operation="matmul-fp32", report=Report.RATE):
    return PlannedCell("r", "c", parse_transfers(text), report, operation=operation)


@given(st.integers(1, 1 << 20))
def test_a_size_has_one_order(order):
    assert order_of(size_of(order)) == order
    assert order_of(size_of(order) - 1) == order - 1


def test_single_precision_may_err_less_than_any_other_type():
    """So that FP32 that is secretly TF32 is noticed."""
    allowed = {name: tolerance(name, 8192) for name in PRODUCTS}
    assert min(allowed, key=allowed.get) == "matmul-fp32"
    assert allowed["matmul-tf32"] > 100 * allowed["matmul-fp32"]


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_wrong_element_is_more_than_a_sum_may_err(name):
    """An element of an 8192 × 8192 product is of the order of √8192 = 90."""
    assert tolerance(name, 8192) < 90 / 8


def test_three_matrices_lie_in_the_memory_of_the_engine_and_no_bytes_are_moved():
    product = cell("null -> null by cuda:1.sm", "matmul-bf16")
    assert [(str(memory), size) for memory, size in product.buffers(64)] == [("cuda:1", 64)] * 3
    assert product.bytes_reported(64) == 0


@pytest.mark.parametrize(
    ("text", "operation", "report", "samples"),
    [
        ("null -> null by cuda:0.sm", "matmul-tf32", Report.RATE, 17),
        ("null -> null by host:0.cpu", "matmul-fp32", Report.RATE, 7),
        ("null -> null by host:0.cpu", "primes", Report.RATE, None),
        ("host:0 -> cuda:0 by ce", "copy", Report.BEST, 5),
        ("host:0 -> cuda:0 by ce", "copy", Report.FIRST, None),
    ],
)
def test_how_many_samples_belong_to_what_is_measured(text, operation, report, samples):
    own = cell(text, operation, report)
    assert Settings((64,)).of(own).samples == samples
    assert Settings((64,), samples=3).of(own).samples == 3
