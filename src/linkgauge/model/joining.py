"""Joins structs field by field. A field's type has the rule, such as `Annotated[float, added]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import fields, replace

_S = TypeVar("_S", bound=Struct)
_Rule = Callable[[Sequence[Any]], Any]
Known = dict[tuple[object, ...], Any]
"""Joined fields, by their rule and the identities of the values."""


def joined(values: Sequence[_S], known: Known | None = None) -> _S:
    """Joins structs of one type into one struct; fields without a rule are from the first. `known`
    is a cache by the `id` of values, so the values must live as long as `known`."""
    known = {} if known is None else known
    rules, fields_of = _rules(type(values[0]))
    found = {}
    for (name, rule), each in zip(rules, zip(*map(fields_of, values), strict=True), strict=False):
        if each[0] or each.count(each[0]) < len(each):  # else there is nothing to join
            key = (rule, *map(id, each))
            if key not in known:
                known[key] = rule(each)
            found[name] = known[key]
    return replace(values[0], **found)


@cache
def _rules(
    kind: type[Struct],
) -> tuple[Sequence[tuple[str, _Rule]], Callable[[Any], tuple[Any, ...]]]:
    # What else is noted at a field, as the kind of a text, is no function.
    noted = [(one.name, getattr(one.type, "__metadata__", ())) for one in fields(kind)]
    rules = [(name, rule) for name, each in noted for rule in filter(callable, each)]
    names = [name for name, _ in rules]
    return rules, attrgetter(*names, names[0])  # of one name it were no tuple


def joined_known(values: Iterable[_S | None]) -> _S | None:
    known = _known(values)
    return joined(known) if known else None


def each_joined(values: Iterable[Sequence[_S]]) -> tuple[_S, ...]:
    return tuple(map(joined, zip(*values, strict=True)))


def in_series(values: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple(chain.from_iterable(values))


def each_once(values: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(in_series(values)))


def added(values: Sequence[Any]) -> Any:
    """Returns the sum, rounded to 9 decimals (nanoseconds); None if a value is unknown."""
    if None in values:
        return None
    total = sum(values)
    return round(total, 9) if isinstance(total, float) else total


def added_known(values: Iterable[Any]) -> Any:
    known = _known(values)
    return sum(known) if known else None


def all_known(values: Iterable[bool | None]) -> bool | None:
    known = _known(values)
    return all(known) if known else None


def most_known(values: Iterable[Any]) -> Any:
    return max(_known(values), default=None)


def first_known(values: Iterable[Any]) -> Any:
    return next(iter(_known(values)), None)


def _known(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]
