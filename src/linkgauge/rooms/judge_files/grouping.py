"""Finds which accelerators share a node, from the figures of all pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from .told import ToldFigure

_APART = 0.95
"""The share of the figures of pairs at one node that pairs at different nodes stay below."""


def nodes_by(told: Sequence[ToldFigure], indices: Sequence[int]) -> Mapping[int, int]:
    """Returns the NUMA node of each accelerator, or nothing if the figures do not show the nodes.
    The first benchmark over pairs must have fast pairs in two or more groups of equal size, and
    slow pairs between the groups. Copies over the host are instead slower within a group, because
    they cross the shared links twice."""
    for name in dict.fromkeys(one.benchmark for one in told if "device_to_device" in one.benchmark):
        pairs = {
            (int(one.row), int(one.column)): one.figure
            for one in told
            if one.benchmark == name and one.part is None and one.row != one.column
        }
        if pairs and {a for pair in pairs for a in pair} == {*indices}:
            inverse = {pair: 1 / figure for pair, figure in pairs.items() if figure}
            is_staged = name.endswith("_staged") and len(inverse) == len(pairs)
            return _groups(pairs, indices) or (_groups(inverse, indices) if is_staged else {})
    return {}


def _groups(pairs: Mapping[tuple[int, int], float], indices: Sequence[int]) -> Mapping[int, int]:
    least = _APART * median(sorted(pairs.values())[-len(indices) :])
    near = {i: {i, *(b for a, b in pairs if a == i and pairs[a, b] >= least)} for i in indices}
    groups = list(dict.fromkeys(frozenset(group) for group in near.values()))
    is_split = sum(map(len, groups)) == len(indices) and len({*map(len, groups)}) == 1
    between = [v for (a, b), v in pairs.items() if b not in near[a]]
    if not is_split or len(groups) < 2 or not between or min(map(len, groups)) < 2:
        return {}
    if max(between) >= least or min(between) < _APART**2 * median(between):
        return {}
    return {i: node for node, group in enumerate(sorted(groups, key=min)) for i in group}
