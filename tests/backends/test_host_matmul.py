"""Products by numpy's BLAS: real ones, wrong ones, and machines without numpy."""

import sys
from contextlib import contextmanager

import pytest

from linkgauge.backends.host_matmul import ProductGroup
from linkgauge.model.errors import Unsupported
from linkgauge.model.matmul import size_of

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
