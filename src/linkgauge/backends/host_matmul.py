"""How numpy's BLAS library multiplies matrices, for machines without a GPU."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from linkgauge.model.errors import Unsupported, pip_install
from linkgauge.model.operations.operation import (
    BLOCK,
    PRODUCTS,
    OperationName,
    order_of,
    tolerance,
    wrong_of,
)

from .protocol import Gated, SamplingPolicy, Timing

_OWN: OperationName = "matmul-fp32"
"""The product that every BLAS library can compute: single precision."""


class HostProducts(Gated):
    """A matrix product by BLAS threads, which may run on all CPUs. `threads` has each copy's number
    of threads. One call uses all of them; each copy's time is scaled to its share."""

    on_host = True
    policy = SamplingPolicy()

    def __init__(
        self, operation: OperationName, threads: Sequence[int], size: int, seed: int
    ) -> None:
        if operation != _OWN:
            raise Unsupported(f"host threads do not multiply {PRODUCTS[operation].name} matrices")
        self._numpy, self._pools = _libraries()
        self._threads = threads
        order = order_of(size)
        random = self._numpy.random.default_rng(seed)
        single = self._numpy.float32
        self._a, self._b = (random.standard_normal((order, order), single) for _ in range(2))
        self._product = self._numpy.full_like(self._a, self._numpy.nan)
        self._signs = random.choice((-1.0, 1.0), order)
        self._tolerance = tolerance(operation, order)

    def spoil(self) -> None:
        self._product.fill(self._numpy.nan)

    def wait(self) -> Timing:
        loops, batches = self.pass_gate()
        with self._pools.limit(limits=sum(self._threads), user_api="blas"):
            begin = time.monotonic()
            for _ in range(loops * batches):
                self._numpy.matmul(self._a, self._b, out=self._product)
            span = time.monotonic() - begin
        return Timing(
            # Scaled to each group's share of the threads, so that the groups' rates add up.
            seconds=tuple(span * sum(self._threads) / own for own in self._threads),
            span=span,
            checksums=(None,) * len(self._threads),
            progress=((0.0, span),) * len(self._threads),
        )

    def mismatch(self) -> str | None:
        expected, found = self._a.astype(float) @ self._folded(self._b), self._folded(self._product)
        return wrong_of(self._numpy, found, expected, self._tolerance)

    def _folded(self, matrix: Any) -> Any:
        firsts = range(0, len(matrix), BLOCK)
        return self._numpy.add.reduceat(matrix * self._signs, list(firsts), axis=1)

    def describe(self) -> str:
        with self._pools.limit(limits=sum(self._threads), user_api="blas"):
            known = [one for one in self._pools.info() if one["user_api"] == "blas"]
        if not known:
            return "by numpy without a BLAS"
        blas = next((one for one in known if "numpy" in one["filepath"]), known[0])
        made = " ".join(filter(None, (blas["internal_api"], blas["version"])))
        kind = f" ({blas['architecture']})" if blas.get("architecture") else ""
        plural = "" if blas["num_threads"] == 1 else "s"
        return f"by numpy's BLAS, {made}{kind}, {blas['num_threads']} thread{plural}"


def _libraries() -> tuple[Any, Any]:
    try:
        pools = import_module("threadpoolctl")
        return import_module("numpy"), pools.ThreadpoolController()
    except ImportError as error:
        remedy = pip_install("linkgauge[blas]")
        raise Unsupported(f"{error.name} is not installed: {remedy}") from error
