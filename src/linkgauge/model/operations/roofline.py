"""Finds the part of a machine that limits an AI workload. The roof of a part is the rate that it
reaches alone (S. Williams, A. Waterman, D. Patterson, Communications of the ACM 52, 2009)."""

from __future__ import annotations

from typing import Literal

import msgspec

from .workload import WorkDone

BoundKind = Literal["host link", "device link", "memory", "compute", "launch"]
_ENOUGH = 0.5
"""The share of the time that a part must be busy to explain the time."""
_HELD_UP = 0.8
"""If the host launches work for this share of a loop, the device waits for launches."""


class Bottleneck(msgspec.Struct, frozen=True):
    """What limits a workload. `shares` has the share of the time that each part of the machine is
    busy. `kind` is the limiting part, `share` its share. `kind` is None if no part is busy half of
    the time, and launches take less than 80 % of it."""

    kind: BoundKind | None
    share: float
    shares: dict[BoundKind, float]


def bound_of(done: WorkDone) -> Bottleneck | None:
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
        return Bottleneck("launch", launching, shares)
    if most is None or others[most] < _ENOUGH:
        return Bottleneck(None, others[most] if most else launching, shares)
    return Bottleneck(most, others[most], shares)
