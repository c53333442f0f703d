"""Builds a struct from the fields that other structs have by the same names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct

_S = TypeVar("_S", bound=Struct)


def by_name(kind: type[_S], /, *sources: Struct | None, **more: Any) -> _S:
    """Returns a `kind`. Each field comes from `more` or else from the first source that has it."""
    names, fields = _shared(kind, tuple(more), *map(type, sources))
    values = list[Any]()
    for at, fields_of in fields:
        values += fields_of(sources[at])
    return kind(**dict(zip(names, values, strict=True)), **more)


@cache  # rows are made of each of many cells
def _shared(
    kind: type[Struct], given: Sequence[str], *sources: type
) -> tuple[Sequence[str], Sequence[tuple[int, Callable[[Any], tuple[Any, ...]]]]]:
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
