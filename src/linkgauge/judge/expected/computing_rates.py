"""Computes the expected rates of matrix products and of AI workloads (docs/expect-formulas.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkgauge.model.documents.result import CellResult, Expected
from linkgauge.model.hardware.inventory import Accelerator, Reading
from linkgauge.model.operations.roofline import bound_of
from linkgauge.model.operations.workload import WorkDone

_PLAIN = 2
"""Operations per core and clock cycle without tensor cores: a multiplication and an addition."""
_TENSOR: Mapping[str, Mapping[object, int]] = {
    "7.0": {"matmul-fp16": 16},
    "7.5": {"matmul-fp16": 16},
    "8.0": {"matmul-tf32": 16, "matmul-bf16": 32, "matmul-fp16": 32},
    "9.0": {"matmul-tf32": 16, "matmul-bf16": 32, "matmul-fp16": 32},
    "10.0": {"matmul-tf32": 32, "matmul-bf16": 64, "matmul-fp16": 64},
}
"""Operations of tensor cores per clock cycle and (plain) core, by compute capability, for dense
matrices. Devices of other capabilities are left out: some of their products have half the
rate of others, and no property tells which."""


def product_bound(
    device: Accelerator | None, operation: object, readings: Sequence[Reading]
) -> Expected:
    """Returns theoretical operations/s at the highest clock read under load or the maximum one."""
    if device is None or device.cores is None:
        return Expected(because="unknown: the number of the device's cores is not known")
    tensor = _TENSOR.get(device.capability or "", {})
    each = _PLAIN if operation == "matmul-fp32" else tensor.get(operation)
    if each is None:
        return Expected(because="unknown: what its tensor cores do a clock is not published")
    loaded = [one.clock_max for one in readings if one.memory == device.memory and one.clock_max]
    clock = max(loaded, default=device.max_clock)
    if clock is None:
        return Expected(because="unknown: the clock of the device's cores is not known")
    rate = device.cores * each * clock
    when = "under load" if loaded else "at most"
    because = f"{device.cores} cores × {each} operations × {clock / 1e6:.0f} MHz ({when}) = "
    because += f"{rate / 1e12:.4g} TFLOP/s; what a power cap, the product and the library "
    because += "leave of it is unknown"
    return Expected(rate, None, because)


def roof_of(cell: CellResult, work: WorkDone) -> Expected:
    """Returns the figure that a workload would reach if its limiting part, such as memory, were
    always busy. The figure is unknown if no part is busy for at least half of the time."""
    bound, figure = bound_of(work), cell.headline
    if bound is None or bound.kind is None or not figure:
        return Expected(because="unknown: no part of the machine alone explains half of its time")
    roof = figure * bound.share if cell.report.is_latency else figure / bound.share
    because = (
        f"{bound.kind}: {bound.share:.0%} of the time, at the rate that this run measured for it"
    )
    return Expected(None, roof, because, measured=True)
