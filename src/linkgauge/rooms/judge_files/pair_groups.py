"""Finds how accelerators are linked from figures of pairs. Groups of pairs show a topology if
figures differ more between groups than within, both directions of a pair are in one group, each
accelerator has equally many pairs in a group, and groups have different numbers of links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import median
from typing import TypeVar

from linkgauge.model.hardware.pcie import link_rate
from linkgauge.model.units import count_of

from .facts import ReportedFigure
from .products import Product

_Member = TypeVar("_Member")
_COUNTS = (3, 2, 1)
"""The numbers of groups that are tried: a topology of three must not be taken for one of two."""
_ALIKE = 1.1
"""The ratio of figures within a single group, at most."""
_FEW = 4
"""The most pairs of a group that are named."""
_STEP = 1.05
"""The ratio of neighbouring figures from which they are of two groups."""
_FITS = (0.85, 1.1)
"""The shares of what links carry at which figures fit them."""
_APART = 0.95
"""The share of pairs at one node that pairs at two do not reach."""
_PCIE = 32.0, 16
"""The speed and width of the fastest PCIe link that copies with a host cross."""

Pairs = Mapping[tuple[int, int], float]


def figures_of_pairs(
    reported: Iterable[ReportedFigure], indices: Sequence[int]
) -> dict[str, Pairs]:
    found = dict[str, dict[tuple[int, int], float]]()
    for one in reported:
        if one.is_of_pair and one.part is None:
            is_sum = "bidirectional" in one.benchmark and not (one.of and one.of.report.is_first)
            each = one.figure / (1 + is_sum)
            found.setdefault(one.benchmark, {})[int(one.row), int(one.column)] = each
    every = {*indices}
    return {name: own for name, own in found.items() if {a for ends in own for a in ends} == every}


Joined = tuple[dict[tuple[int, int], str], str]


def joined_by_figures(measured: Mapping[str, Pairs], product: Product) -> Joined:
    """Returns links as in `nvidia-smi topo -m`, and a sentence about them, from the first benchmark
    whose figures show a topology. Both are empty if the product has a switch."""
    if product.usual == "switch":
        return _joined_as_four(measured, product)
    least = 1 if product.links and not product.usual else 2
    direct = (
        (own, product.reach["_sm" in name])
        for name, own in measured.items()
        if not name.endswith("_staged") and min(own.values()) > 0
    )
    tried = (
        (_groups(own, count), reach)
        for own, reach in direct
        for count in _COUNTS if least <= count and (len(own) > _COUNTS[0] or count == 1)
    )  # fmt: skip
    found = (_joined(groups, product, reach) for groups, reach in tried if _is_tight(groups))
    return next(filter(None, found), ({}, ""))


def _joined_as_four(measured: Mapping[str, Pairs], product: Product) -> Joined:
    """Finds the links of a board of four, which joins each pair by a third of the links of one and
    has no switch. Empty if the usual pair's figure is another, or no such board has the product."""
    kind, links, _ = product.links or ("", 0, 0.0)
    for name, own in measured.items() if product.fours else ():
        ends, rate = sorted({a for a, _ in own}), median(own.values())
        count = _links(rate, rate, product, product.reach["_sm" in name])
        if len(ends) == 4 and count == links // 3 and not name.endswith("_staged"):
            said = (
                f"{count_of(count, f'{kind} link')} carry {rate / 1e9:.3g} GB/s from each to each"
            )
            found = f"the figures between accelerators show a board without a switch: {said}"
            return dict.fromkeys(combinations(ends, 2), f"NV{count}"), found
    return {}, ""


Levels = Sequence[tuple[float, set[frozenset[int]]]]
"""Groups of pairs and their rates, the fastest first."""


def levels_of(own: Pairs) -> Levels:
    """Groups pairs by steps between figures. Empty if a pair's two ways are in different groups."""
    rates = sorted(own.values(), reverse=True)
    count = 1 + sum(before > _STEP * after for before, after in pairwise(rates))
    found = [(median(o.values()), {frozenset(ends) for ends in o}) for o in _groups(own, count)]
    pairs = [pair for _, of in found for pair in of]
    return found if len(pairs) == len({*pairs}) else []


def fallen_out(levels: Levels) -> frozenset[int] | None:
    """Returns the accelerator or link (two ends) that is slower than the rest: all pairs of the
    slowest groups share it. Empty if there is none, None if there are several."""
    ends, others = frozenset[int](), 0
    for _, pairs in reversed(levels):
        if lone := frozenset.intersection(*pairs):
            # A small group is left with one pair if another one of its pairs fell out.
            ends, others = (lone & ends or ends or lone), others + bool(ends and not lone & ends)
    return ends if others < 2 else None


def unexplained(measured: Mapping[str, Pairs], product: Product) -> str:
    """Returns a sentence about a benchmark's groups if they show no topology, or if the product has
    too few links to join all accelerators. Empty for products with switches, too."""
    if product.usual == "switch":
        return ""
    for name, own in measured.items():
        if name.endswith("_staged") or min(own.values()) <= 0:
            continue
        levels, count = levels_of(own), len({a for a, _ in own})
        several = sum(not frozenset.intersection(*of) for _, of in levels)
        is_known = several <= _COUNTS[0] or _is_tight(_groups(own, 2))
        if product.usual == "mesh" and product.links is not None:
            is_known = is_known and product.links[1] >= count - 1
        if several and not is_known and fallen_out(levels) is not None:
            return f"figures between accelerators fall into {count_of(len(levels), 'group')}: " + (
                ", ".join(f"{rate / 1e9:.3g} GB/s ({_spoken(of)})" for rate, of in levels)
            )
    return ""


def _spoken(pairs: set[frozenset[int]]) -> str:
    names = ["-".join(map(str, sorted(ends))) for ends in sorted(pairs, key=sorted)]
    return ", ".join(names) if len(names) <= _FEW else count_of(len(names), "pair")


def nodes_by_figures(measured: Mapping[str, Pairs], indices: Sequence[int]) -> dict[int, int]:
    """Returns accelerators' NUMA nodes, from the first benchmark. Splits its pairs into fast and
    slow ones. If the fast pairs are exactly those within sets of accelerators, each set is a node.
    Of staged copies, the slow pairs may be these, because they cross shared links twice."""
    name, pairs = next(iter(measured.items()), ("", {}))
    groups = _groups(pairs, 2) if len(pairs) > 2 and min(pairs.values()) > 0 else []
    if groups and min(groups[0].values()) * _APART < max(groups[1].values()):
        return {}
    for group in groups[: 1 + name.endswith("_staged")]:
        near = merged_sets({*pair} for pair in group)
        near += [rest] if (rest := {*indices}.difference(*near)) else []
        sizes = [*map(len, near)]
        is_even = len(pairs) < len(indices) * (len(indices) - 1) or max(sizes) == min(sizes)
        within = {pair for pair in pairs if any(own.issuperset(pair) for own in near)}
        if is_even and min(sizes) > 1 < len(near) and within == group.keys():
            return {i: node for node, own in enumerate(sorted(near, key=min)) for i in own}
    return {}


def merged_sets(groups: Iterable[set[_Member]]) -> list[set[_Member]]:
    merged: list[set[_Member]] = []
    for group in groups:
        touching = [one for one in merged if one & group]
        merged = [one for one in merged if not one & group]
        merged.append(group.union(*touching))
    return merged


def _joined(groups: Sequence[Pairs], product: Product, reach: float) -> Joined | None:
    if any(one.keys() != {(b, a) for a, b in one} for one in groups):
        return None
    degrees = [Counter(a for a, _ in one) for one in groups]
    if any(one.keys() != degrees[0].keys() or len({*one.values()}) > 1 for one in degrees):
        return None
    rates = [median(group.values()) for group in groups]
    counts = [_links(rate, min(rates), product, reach) for rate in rates]
    if counts != sorted(counts, reverse=True):
        return None
    kind = f"{product.links[0]} link" if product.links else ""
    said = "; ".join(
        (f"{count_of(count, kind)} " if count and kind else "")
        + ("in pairs" if (each := next(iter(one.values()))) == 1 else f"to {each} others each")
        + f": {rate / 1e9:.3g} GB/s"
        for rate, count, one in zip(rates, counts, degrees, strict=True)
    )
    joins = {
        (a, b): f"NV{count}"
        for group, count in zip(groups, counts, strict=True) if count
        for a, b in group if a < b
    }  # fmt: skip
    if not joins or len({*filter(None, counts)}) < len([*filter(None, counts)]):
        return None
    several = f"a topology of {len(groups)} groups, " if len(groups) > 1 else ""
    return joins, f"figures between accelerators show {several}{said}"


def _groups(pairs: Pairs, count: int) -> list[Pairs]:
    """Splits pairs into groups, the fastest first, where neighbouring figures differ most."""
    order = sorted(pairs.items(), key=lambda one: -one[1])
    steps = [before / after for (_, before), (_, after) in pairwise(order)]
    cuts = sorted(sorted(range(len(steps)), key=steps.__getitem__)[len(steps) + 1 - count :])
    ends = pairwise((0, *(at + 1 for at in cuts), len(order)))
    return [dict(order[begin:end]) for begin, end in ends]


def _is_tight(groups: Sequence[Pairs]) -> bool:
    """Whether figures of two groups differ by a larger factor than any two of one group."""
    ranges = [(min(own.values()), max(own.values())) for own in groups]
    widest = max(most / least for least, most in ranges)
    steps = (before[0] / after[1] for before, after in pairwise(ranges))
    return min(steps, default=_ALIKE) > widest


def _links(rate: float, slowest: float, product: Product, reach: float) -> int:
    pcie = link_rate(*(product.pcie or _PCIE))
    if rate == slowest <= pcie:
        return 0
    if product.links is None:
        count = round(rate / slowest)
        return count if count > 1 or slowest > pcie else 0
    carries = product.links[2] * 1e9 * reach
    count = min(round(rate / carries), product.links[1])
    return count if _FITS[0] <= rate / (max(count, 1) * carries) <= _FITS[1] else 0
