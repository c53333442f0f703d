"""How torch.matmul multiplies matrices, timed as in the backend `cuda`."""

from __future__ import annotations

from typing import Any

from linkgauge.backends.protocol import Copy
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.operation import (
    BLOCK,
    OperationName,
    order_of,
    tolerance,
    wrong_of,
)

from .runtime import TorchDevice, calling

_TYPES = {
    "matmul-fp32": "float32",
    "matmul-tf32": "float32",
    "matmul-bf16": "bfloat16",
    "matmul-fp16": "float16",
}
_TF32: OperationName = "matmul-tf32"


class TorchProductWork:
    """Multiplies matrices on a device. A loop is one product A · B."""

    def __init__(self, unit: TorchDevice, copy: Copy, operation: OperationName) -> None:
        if operation == _TF32 and (unit.facts.type != "cuda" or unit.torch.version.hip):
            raise Unsupported(f"{unit.memory} has no TF32: NVIDIA's GPUs do")
        self.operation = operation
        self.order = order_of(copy.size)
        self.on_host = unit.is_cpu
        self._unit, self._seed = unit, copy.seed
        torch = unit.torch
        kind = getattr(torch, _TYPES[str(operation)])
        shape = self.order, self.order
        # Drawn on the host, so that every device multiplies the same.
        draw = torch.Generator().manual_seed(copy.seed)
        with calling("torch.empty", f"matrices of {unit.memory}"):
            self._a, self._b = (
                torch.randn(shape, generator=draw).to(kind).to(unit.device) for _ in range(2)
            )
            self.product = torch.full(shape, torch.nan, dtype=kind, device=unit.device)
        self.enqueue(1)
        unit.finish()

    def enqueue(self, loops: int) -> None:
        torch = self._unit.torch
        precision = "high" if self.operation == _TF32 else "highest"
        before = torch.get_float32_matmul_precision()
        with calling("torch.matmul"):
            torch.set_float32_matmul_precision(precision)
            try:
                for _ in range(loops):
                    torch.matmul(self._a, self._b, out=self.product)
            finally:
                torch.set_float32_matmul_precision(before)

    def spoil(self) -> None:
        self.product.fill_(self._unit.torch.nan)
        self._unit.finish()

    def mismatch(self) -> str | None:
        torch = self._unit.torch
        draw = torch.Generator().manual_seed(self._seed)
        signs = torch.randint(0, 2, (self.order,), generator=draw).double() * 2 - 1
        with calling("compare the product"):
            a, b, product = (self._double(one) for one in (self._a, self._b, self.product))
            signs = signs.to(a.device)
            expected, found = a @ self._folded(b, signs), self._folded(product, signs)
            allowed = tolerance(self.operation, self.order)
            return wrong_of(torch, found, expected, allowed)

    def _double(self, matrix: Any) -> Any:
        return (matrix.cpu() if self._unit.facts.type == "mps" else matrix).double()

    def _folded(self, matrix: Any, signs: Any) -> Any:
        blocks = -(-self.order // BLOCK)
        signed = self._unit.torch.nn.functional.pad(
            matrix * signs, (0, blocks * BLOCK - self.order)
        )
        return signed.view(self.order, blocks, BLOCK).sum(dim=2)
