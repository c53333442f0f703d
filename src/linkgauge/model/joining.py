"""Joins structs field by field. A field's type has the rule, such as `Annotated[float, added]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import fields, replace

_S = TypeVar("_S", bound=Struct)
_T = TypeVar("_T")
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


def _of_known(rule: Callable[[list[_T]], _T]) -> Callable[[Iterable[_T | None]], _T | None]:
    """Returns the rule for values of which some may be unknown: None if all are."""

    def of(values: Iterable[_T | None]) -> _T | None:
        known = [value for value in values if value is not None]
        return rule(known) if known else None

    return of


joined_known = _of_known(joined)
added_known: Callable[[Iterable[Any]], Any] = _of_known(sum)
all_known = _of_known(all)
most_known = _of_known(max)
first_known = _of_known(itemgetter(0))
