"""Products by numpy's BLAS: real ones, wrong ones, and machines without numpy."""

import sys
from contextlib import contextmanager

import pytest

from linkgauge.backends import open_backend
from linkgauge.backends.host_matmul import ProductGroup
from linkgauge.backends.protocol import Copy
from linkgauge.model.errors import Unsupported
from linkgauge.model.matmul import size_of
from linkgauge.model.notation import parse_transfers

numpy = pytest.importorskip("numpy")
pytest.importorskip("threadpoolctl")
ORDER = 200
"""No multiple of the columns that one sum checks."""


@pytest.fixture
def group():
    return ProductGroup("matmul-fp32", [1], size_of(ORDER), seed=3)


def run(group, loops=2):
    group.arm(loops)
    group.open()
    return group.wait()


@pytest.mark.parametrize(("row", "column"), [(0, 0), (100, 31), (199, 32), (7, 199)])
@pytest.mark.parametrize("wrong", [0.05, float("nan"), float("inf")])
def test_one_wrong_element_is_found_in_its_row_and_columns(group, row, column, wrong):
    run(group)
    group._product[row, column] += wrong
    first = column // 32 * 32
    assert f"in row {row}, columns {first} to {min(first + 31, 199)}:" in group.mismatch()


def test_products_of_less_than_single_precision_are_found_wrong(group):
    """As TF32 has it: ten bits after the point."""
    run(group)
    coarse = [
        (matrix.view(numpy.uint32) & numpy.uint32(0xFFFFE000)).view(numpy.float32)
        for matrix in (group._a, group._b)
    ]
    group._product = coarse[0] @ coarse[1]
    assert group.mismatch() is not None


def test_the_blas_is_given_as_many_threads_as_there_are_cpus(group, monkeypatch):
    asked = []

    class Pools:
        @contextmanager
        def limit(self, *, limits, user_api):
            asked.append((limits, user_api))
            yield

    monkeypatch.setattr(group, "_pools", Pools())
    run(group)
    assert asked == [(1, "blas")]


@pytest.mark.parametrize("missing", ["numpy", "threadpoolctl"])
def test_without_the_library_it_is_skipped_with_the_remedy(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(Unsupported, match=r"not installed: .* -m pip install 'linkgauge\[blas\]'"):
        ProductGroup("matmul-fp32", [1], size_of(8), 1)


def test_the_backend_multiplies_and_says_by_what():
    backend = open_backend("host")
    (transfer,) = parse_transfers("null -> null by host:0.cpu*1")
    assert backend.refusal(transfer) is None
    with pytest.raises(Unsupported, match="moves nothing"):
        backend.prepare([Copy(transfer, None, None, 4096, 1)])
    group = backend.prepare([Copy(transfer, None, None, 4096, 1)], "matmul-fp32")
    assert run(group).seconds[0] > 0
    assert "numpy's BLAS" in backend.remarks(transfer)[0]
