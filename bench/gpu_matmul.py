"""Compare gpu_matmul with torch.matmul: the same matrices on the same GPU, in turns, each type.

A turn of either is 10 products to warm up and 100 that are timed by events around them. The inputs
are linkgauge's, copied into torch's tensors. A ratio is of two neighbours in time. `--markdown`
prints the rows of docs/benchmarks.md. Needs torch with CUDA, and linkgauge on PYTHONPATH. Exit
status: 0 all within the bar (or there is no torch), 1 not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from statistics import median
from typing import Any

import msgspec

from linkgauge.backends.cuda.backend import CudaBackend
from linkgauge.backends.cuda.driver import open_driver
from linkgauge.backends.cuda.matmul import CudaProductWork
from linkgauge.backends.operations.products import ProductGroup
from linkgauge.backends.protocol import Copy
from linkgauge.machine.host import read_host
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.operation import PRODUCTS, operations_of, size_of
from linkgauge.model.settings import EngineSettings
from turns import Ratio, ratio, seconds, take_turns, watched

BAR = 0.97, 1.03
BATCHES = 50
ROUNDS = 15
WARM_UPS, TIMED = 10, 100
WORK = parse_transfer("null -> null by cuda:0.sm")
_DTYPES = {
    "matmul-fp32": "float32",
    "matmul-tf32": "float32",
    "matmul-bf16": "bfloat16",
    "matmul-fp16": "float16",
}


class Outcome(msgspec.Struct, frozen=True):
    """FLOP/s of each, their ratio, and the state of the device meanwhile."""

    name: str
    ours: float
    torch: float
    ratio: Ratio
    state: str
    wrong: str | None

    @property
    def holds(self) -> bool:
        return BAR[0] <= self.ratio.middle <= BAR[1] and self.wrong is None


def by_torch(
    torch: Any, product: CudaProductWork, operation: str, order: int
) -> Callable[[], float]:
    """A turn of torch.matmul on our own inputs; its seconds for all timed products."""
    kind = getattr(torch, _DTYPES[operation])
    inputs = []
    for address in (product.a, product.b):
        tensor = torch.empty((order, order), dtype=kind, device="cuda:0")
        torch.cuda.synchronize()
        size = order * order * PRODUCTS[operation].bytes
        product.device.call("cuMemcpyDtoD", tensor.data_ptr(), address, size)
        inputs.append(tensor)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def turn() -> float:
        torch.backends.cuda.matmul.allow_tf32 = operation == "matmul-tf32"
        for _ in range(WARM_UPS):
            torch.matmul(*inputs)
        begin.record()
        for _ in range(TIMED):
            torch.matmul(*inputs)
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    return turn


def compare(backend: CudaBackend, torch: Any, operation: Any, order: int, rounds: int) -> Outcome:
    copy = Copy(WORK, None, None, size_of(order), seed=1)
    with closing(backend.prepare([copy], operation)) as group:
        assert isinstance(group, ProductGroup)
        assert isinstance(group.product, CudaProductWork)
        work = operations_of(order) * TIMED
        theirs = by_torch(torch, group.product, operation, order)

        def ours() -> float:
            seconds(group, WARM_UPS)
            return work / seconds(group, TIMED // BATCHES, BATCHES)

        runs = {
            "ours": ours,
            "torch": lambda: work / theirs(),
        }
        take_turns(runs, 1)
        states: list[str] = []
        with watched(backend, states):
            taken = take_turns(runs, rounds)
        ours, other = taken["ours"], taken["torch"]
        return Outcome(
            PRODUCTS[operation].name, median(ours), median(other), ratio(ours, other), states[0],
            group.mismatch(),
        )  # fmt: skip


def show(one: Outcome) -> str:
    bar = "" if one.holds else "  MISSED"
    wrong = f"  {one.wrong}" if one.wrong else ""
    return (
        f"{one.name:<6}{one.ours / 1e12:>10.2f}{one.torch / 1e12:>10.2f}   {one.ratio}   "
        f"{one.state}{bar}{wrong}"
    )


def markdown(one: Outcome) -> str:
    cells = one.name, f"{one.ours / 1e12:.2f}", f"{one.torch / 1e12:.2f}", str(one.ratio), one.state
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Prints each type."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--order", type=int, default=8192, help="of the matrices")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--markdown", action="store_true", help="print the rows of the table, too")
    options = parser.parse_args()
    try:
        torch = import_module("torch")
    except ImportError as error:
        print(f"gpu_matmul: skipped: {error}")
        return 0
    if not torch.cuda.is_available():
        print("gpu_matmul: skipped: torch has no CUDA device here")
        return 0
    outcomes = []
    try:
        torch.zeros(1, device="cuda:0")  # torch's cuBLAS is loaded first: both use the same one
        torch.matmul(*(torch.zeros((8, 8), device="cuda:0") for _ in range(2)))
        nodes = read_host().nodes
        with closing(CudaBackend(open_driver(), nodes, EngineSettings())) as backend:
            (device, *_) = backend.devices()
            for operation in PRODUCTS:
                outcomes.append(compare(backend, torch, operation, options.order, options.rounds))
                if len(outcomes) == 1:
                    (blas,) = backend.remarks(WORK)
                    print(f"{device.model}, {device.driver}; torch {torch.__version__}; {blas}")
                    print(f"{options.order} × {options.order}, {options.rounds} turns each of "
                          f"{WARM_UPS} + {TIMED} products")  # fmt: skip
                    print("type   TFLOP/s     torch   ratio")
                print(show(outcomes[-1]), flush=True)
    except LinkgaugeError as error:
        print(f"gpu_matmul: {error}", file=sys.stderr)
        return 1
    if options.markdown:
        print("\n".join(map(markdown, outcomes)))
    missed = sum(not one.holds for one in outcomes)
    print(f"{len(outcomes) - missed} of {len(outcomes)} within the bar ({BAR[0]} … {BAR[1]})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
