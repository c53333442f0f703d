"""What bounds an AI workload: which part of the machine its time is spent on, by what that part
reaches alone on the same machine, and what would change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from linkgauge.model.workload import WorkDone, Workload

BoundKind = Literal["host link", "device link", "memory", "compute", "launch"]
_ENOUGH = 0.5
"""A part that would be busy for less than this share of the time does not explain it."""
_HELD_UP = 0.8
"""The host hands over work for so much of a loop: the device waits for it."""


class Bound(msgspec.Struct, frozen=True):
    """`kind` is what takes the most time of all, null if none of them explains half of it; `share`
    is how much of a loop's time that part would take at the rate that it reaches alone, `shares`
    those of all parts."""

    kind: BoundKind | None
    share: float
    shares: dict[BoundKind, float]


def bound_of(done: WorkDone) -> Bound | None:
    """What bounds the work (roofline: Williams, Waterman and Patterson, 2009, with a roof for each
    link); None where no rate is known. The device waits for launches if the host hands over work
    for most of the loop: the rest of the roofs are then out of reach."""
    needs, rates = done.demands, done.rates
    parts: tuple[tuple[BoundKind, float, float | None], ...] = (
        ("host link", needs.to_device, rates.to_device),
        ("host link", needs.to_host, rates.to_host),
        ("device link", needs.between_devices, rates.between_devices),
        ("memory", needs.memory_bytes, rates.memory),
        ("compute", needs.operations, rates.operations),
    )
    shares: dict[BoundKind, float] = {}
    for kind, amount, rate in parts:
        if amount and rate:
            shares[kind] = max(shares.get(kind, 0.0), amount / rate / done.seconds)
    if needs.launching is not None:
        shares["launch"] = needs.launching / done.seconds
    if not shares:
        return None
    others = {kind: share for kind, share in shares.items() if kind != "launch"}
    most = max(others, key=others.__getitem__, default=None)
    launching = shares.get("launch", 0.0)
    if launching >= _HELD_UP and (most is None or others[most] < _HELD_UP):
        return Bound("launch", launching, shares)
    if most is None or others[most] < _ENOUGH:
        return Bound(None, others[most] if most else launching, shares)
    return Bound(most, others[most], shares)


_ADVICE: Mapping[BoundKind, str] = {
    "host link": "keep what is copied on the device, or copy less of it; linkgauge doctor shows "
    "whether the link itself is slow",
    "device link": "overlap gradients with the backward pass, or give each device a larger batch; "
    "linkgauge doctor shows whether a link is slow",
    "memory": "a larger batch shares each read of the weights; narrower numbers read fewer bytes",
    "compute": "it runs at the machine's own rate: narrower numbers or more devices are faster",
    "launch": "a larger batch, CUDA graphs or torch.compile: the device waits for the host; see "
    "linkgauge latency latency_launch",
}


def advice_on(bound: Bound, work: Workload) -> str | None:
    """What would change it, in a sentence; None where nothing explains the time."""
    if bound.kind is None:
        return None
    if bound.kind == "compute" and work.numbers == "fp32":
        return "bf16 or fp16 multiply faster than fp32"
    if bound.kind == "host link" and work.kind == "streamed":
        return (
            "keep the weights on the device, or give each pass more tokens: a batch shares the "
            "copies; linkgauge doctor shows whether the link itself is slow"
        )
    return _ADVICE[bound.kind]
