"""Groups values by a key, and keeps equal values as one object."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class Shared:
    """Keeps equal values as one object. This saves memory where many values are equal."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Hashable] = {}

    def __call__(self, value: _K) -> _K:
        """Returns the value, or the first value that was equal to it."""
        return self._known.setdefault(value, value)  # type: ignore[return-value]


def grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """Returns the values of each key. Keys, and the values of a key, stay in the order of
    `pairs`."""
    found: dict[_K, list[_V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
