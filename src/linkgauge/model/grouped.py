"""Groups values by a key, keeps equal values as one object, and numbers names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import count
from typing import TypeVar

_K = TypeVar("_K", bound=Hashable)
_L = TypeVar("_L", bound=Hashable)
_V = TypeVar("_V")


class Shared:
    def __init__(self) -> None:
        self._known: dict[Hashable, Hashable] = {}

    def __call__(self, value: _K) -> _K:
        return self._known.setdefault(value, value)  # type: ignore[return-value]

    def each(self, values: Iterable[_K]) -> tuple[_K, ...]:
        values = tuple(values)
        return tuple(map(self._known.setdefault, values, values))  # type: ignore[arg-type]


def numbering() -> defaultdict[Hashable, int]:
    """Returns a mapping that gives each name a number, from 0 on, when it is first looked up."""
    return defaultdict(count().__next__)


def sharing_first(names: Sequence[Collection[Hashable]]) -> list[int]:
    """Returns indices of `names`. Collections that share a name with the first one come first."""
    first = frozenset(names[0])
    return sorted(range(len(names)), key=lambda at: first.isdisjoint(names[at]))


def grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    found: dict[_K, list[_V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def tabled(entries: Iterable[tuple[_K, _L, _V]]) -> dict[_K, dict[_L, _V]]:
    found: dict[_K, dict[_L, _V]] = {}
    for row, column, value in entries:
        found.setdefault(row, {})[column] = value
    return found
