"""Makes structs from the fields of other structs, by the same names or by new names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct

from linkgauge.model.documents.result import CellResult
from linkgauge.model.transfer import joined

_S = TypeVar("_S", bound=Struct)


def by_name(kind: type[_S], /, *sources: Struct | None, **more: Any) -> _S:
    """Makes a struct of type `kind`. Fields not in `more` are from the first source with them."""
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


def shown_of(cell: CellResult) -> dict[str, Any]:
    """Returns values that are computed from a cell, such as its `figure`, by name."""
    low, high = (cell.summary.ci95 if cell.summary is not None else None) or (None, None)
    return {
        "transfers": joined(cell.transfers), "figure": cell.headline, "low": low, "high": high,
        "expected": cell.expected and cell.expected.figure,
        "nominal": cell.expected and cell.expected.nominal,
        "share": cell.reached,
    }  # fmt: skip
