"""Finds how accelerators are joined from the figures between them, where no text gives a topology.

Figures of pairs that fall into two or three groups, each tight and the same in both directions, are
a topology if every accelerator has as many pairs in each group as the others. A slow accelerator or
a slow link has more or fewer, and is left to blame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median

from linkgauge.model.hardware.pcie import link_rate
from linkgauge.model.units import count_of

from .products import Product
from .told import ToldFigure

_TIGHT, _APART = 1.2, 1.4
"""The most by which figures of a group, and the least by which neighbouring groups, differ."""
_MOST_GROUPS = 3
_FITS = (0.85, 1.1)
"""The shares of what links carry at which figures fit them."""
_PCIE = 32.0, 16
"""The speed and width of the fastest PCIe link that copies with a host cross."""

Pairs = Mapping[tuple[int, int], float]


def figures_of_pairs(told: Iterable[ToldFigure], indices: Sequence[int]) -> dict[str, Pairs]:
    found = dict[str, dict[tuple[int, int], float]]()
    for one in told:
        is_copy = one.benchmark.startswith("device_to_device_") and "memcpy" in one.benchmark
        if is_copy and one.part is None and one.row != one.column:
            found.setdefault(one.benchmark, {})[int(one.row), int(one.column)] = one.figure
    every = {*indices}
    return {name: own for name, own in found.items() if {a for ends in own for a in ends} == every}


Joined = tuple[dict[tuple[int, int], str], str]


def joined_by_figures(measured: Mapping[str, Pairs], product: Product | None) -> Joined:
    """Returns links as `nvidia-smi topo -m` has them, and a sentence about the groups, by the first
    benchmark that shows a topology; nothing if a switch joins all of the product alike."""
    if product is not None and product.usual == "switch":
        return {}, ""
    direct = (own for name, own in measured.items() if not name.endswith("_staged"))
    return next(filter(None, (_joined(own, product) for own in direct)), ({}, ""))


def _joined(pairs: Pairs, product: Product | None) -> Joined | None:
    both = {(a, b): (rate, pairs.get((b, a), 0.0)) for (a, b), rate in pairs.items() if a < b}
    if not both or any(min(one) * _TIGHT < max(one) for one in both.values()):
        return None
    groups = _groups({pair: sum(one) / 2 for pair, one in both.items()})
    devices = {one for pair in both for one in pair}
    degrees = [Counter(one for pair in group for one in pair) for group in groups]
    is_regular = all({one[device] for device in devices} == {*one.values()} for one in degrees)
    is_alike = all(len({*one.values()}) == 1 for one in degrees)
    if not 2 <= len(groups) <= _MOST_GROUPS or not is_regular or not is_alike:
        return None
    rates = [median(group.values()) for group in groups]
    counts = [_links(rate, min(rates), product) for rate in rates]
    kind = f"{product.links[0]} link" if product is not None and product.links else ""
    said = "; ".join(
        (f"{count_of(count, kind)} " if count and kind else "")
        + ("in pairs" if (each := next(iter(one.values()))) == 1 else f"to {each} others each")
        + f": {rate / 1e9:.3g} GB/s"
        for rate, count, one in zip(rates, counts, degrees, strict=True)
    )
    joins = {
        pair: f"NV{count}"
        for group, count in zip(groups, counts, strict=True) if count
        for pair in group
    }  # fmt: skip
    if not joins:
        return None
    return joins, f"figures between accelerators show a topology of {len(groups)} groups, {said}"


def _groups(rates: Pairs) -> list[dict[tuple[int, int], float]]:
    order = sorted(rates.items(), key=lambda one: -one[1])
    groups = [dict(order[:1])]
    for (_, before), (pair, rate) in pairwise(order):
        if before > rate * _TIGHT:
            groups.append({})
        groups[-1][pair] = rate
    tight = all(max(one.values()) <= _TIGHT * min(one.values()) for one in groups)
    apart = all(min(a.values()) >= _APART * max(b.values()) for a, b in pairwise(groups))
    return groups if tight and apart else []


def _links(rate: float, slowest: float, product: Product | None) -> int:
    pcie = link_rate(*(product.pcie if product is not None and product.pcie else _PCIE))
    if rate == slowest <= pcie:
        return 0
    if product is None or product.links is None:
        return round(rate / slowest)
    carries = product.links[2] * 1e9 * product.reach[0]
    count = round(rate / carries)
    is_fit = count <= product.links[1] and _FITS[0] <= rate / (max(count, 1) * carries) <= _FITS[1]
    return count if is_fit else 0
