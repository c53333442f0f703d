"""Makes values out of the fields that other values have by the same names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct

_S = TypeVar("_S", bound=Struct)


def by_name(kind: type[_S], /, *sources: Struct | None, **more: Any) -> _S:
    """Returns a value of `kind`. Each field that is not in `more` is the field of that name in the
    first of the sources that has it, or keeps its default. None has no fields."""
    known: dict[str, Any] = {}
    for at, names, fields in _shared(kind, *map(type, sources)):
        known.update(zip(names, fields(sources[at]), strict=False))
    return kind(**known | more)


@cache  # rows are made of each of many cells
def _shared(
    kind: type[Struct], *sources: type
) -> Sequence[tuple[int, Sequence[str], Callable[[Any], tuple[Any, ...]]]]:
    """Returns the index of each source, the fields of `kind` that are taken from it, and a function
    that returns them."""
    found, left = [], dict.fromkeys(kind.__struct_fields__)
    for at, source in enumerate(sources):
        names = [name for name in left if name in getattr(source, "__struct_fields__", ())]
        left = {name: None for name in left if name not in names}
        if names:
            found.append((at, names, attrgetter(*names, names[0])))  # of one name it were no tuple
    return found
