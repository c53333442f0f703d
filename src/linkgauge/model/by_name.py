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
    names, fields = _shared(kind, tuple(more), *map(type, sources))
    values = list[Any]()
    for at, fields_of in fields:
        values += fields_of(sources[at])
    return kind(**dict(zip(names, values, strict=True)), **more)


@cache  # rows are made of each of many cells
def _shared(
    kind: type[Struct], given: Sequence[str], *sources: type
) -> tuple[Sequence[str], Sequence[tuple[int, Callable[[Any], tuple[Any, ...]]]]]:
    """Returns the fields of `kind` that sources have, but for the given ones. Also returns the
    index of each of these sources, with a function that returns its fields."""
    names, found = list[str](), list[tuple[int, Callable[[Any], tuple[Any, ...]]]]()
    for at, source in enumerate(sources):
        of = getattr(source, "__struct_fields__", ())
        own = [n for n in kind.__struct_fields__ if n in of and n not in (*given, *names)]
        names += own
        if own[1:]:
            found.append((at, attrgetter(*own)))
        elif own:  # attrgetter makes no tuple of one
            found.append((at, lambda one, name=own[0]: (getattr(one, name),)))  # type: ignore[misc]
    return names, found
