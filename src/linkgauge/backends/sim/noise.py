"""How figures of a simulated machine vary, by the kind of path that they are of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from linkgauge.model.operations.operation import PRODUCT_NAMES, Operation
from linkgauge.model.transfer import Transfer

from .quantities import Fraction

PathKind = Literal[
    "latency", "products", "host memory", "within a device", "between devices", "host and device"
]


class Noise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The relative standard deviations of `samples`, of the `repetitions` of a cell, and of a cell
    between `runs`. In each run, a part of the cells, `far`, is slower than usual: by `by` in the
    mean, and now and then by several times as much (exponential)."""

    samples: Fraction = Fraction(0)
    repetitions: Fraction = Fraction(0)
    runs: Fraction = Fraction(0)
    far: Fraction = Fraction(0)
    by: Fraction = Fraction(0)

    def beside(self, *others: float) -> Noise:
        """Returns this noise, with other causes that vary samples."""
        samples = Fraction(math.hypot(self.samples, *others))
        return msgspec.structs.replace(self, samples=samples)


def kind_of(transfers: Sequence[Transfer], does: Operation | None = None) -> PathKind:
    """Returns the kind of path that a cell with these transfers is of. Without an operation, it is
    a collective."""
    if does is not None and not does.is_by_bytes:
        return "products" if does.name in PRODUCT_NAMES else "latency"
    ends = {memory.place for transfer in transfers for memory in transfer.named}
    devices = sum(end.is_device for end in ends)
    if devices < len(ends):
        return "host and device" if devices else "host memory"
    return "between devices" if devices > 1 else "within a device"
