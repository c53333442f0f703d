"""Values of one kind as one, by the rules at their fields; and values by other values' names."""

from typing import Annotated

import pytest
from msgspec import Struct

from linkgauge.model import joining
from linkgauge.model.by_name import by_name
from linkgauge.model.joining import joined, joined_known


class Part(Struct, frozen=True):
    name: str
    samples: Annotated[tuple[float, ...], joining.in_series] = ()


class Repetition(Struct, frozen=True, rename={"seconds": "took"}):
    name: str
    seconds: Annotated[float | None, joining.added] = None
    wrong: Annotated[int | None, joining.most_known] = None
    right: Annotated[bool | None, joining.all_known] = None
    notes: Annotated[tuple[str, ...], joining.each_once] = ()
    parts: Annotated[tuple[Part, ...], joining.each_joined] = ()


ONE = Repetition("a", 0.1, 0, True, ("x", "y"), (Part("p", (1.0,)), Part("q", (2.0,))))
OTHER = Repetition("b", 0.2, 3, None, ("y", "z"), (Part("p", (3.0,)), Part("q", (4.0,))))


def test_each_field_is_joined_by_its_own_rule_and_others_stay_the_first():
    parts = (Part("p", (1.0, 3.0)), Part("q", (2.0, 4.0)))
    assert joined([ONE, OTHER]) == Repetition("a", 0.3, 3, True, ("x", "y", "z"), parts)
    assert joined([ONE]) == ONE


@pytest.mark.parametrize(
    ("field", "values", "whole"),
    [
        ("seconds", (1.0, None), None),  # a sum of some would not be of all
        ("seconds", (0.0, 2.0), 2.0),
        ("wrong", (None, 2), 2),
        ("right", (False, True), False),
        ("right", (None, None), None),
        ("notes", ((), ("x",)), ("x",)),
    ],
)
def test_what_one_lacks(field, values, whole):
    repetitions = [Repetition("a", **{field: value}) for value in values]
    assert getattr(joined(repetitions), field) == whole


def test_values_that_have_the_same_objects_share_what_they_become():
    known = {}
    other = Repetition("b", notes=("z",))
    first, second = (joined([Repetition(n, notes=ONE.notes), other], known) for n in "cd")
    assert (first.name, second.name) == ("c", "d")
    assert first.notes == ("x", "y", "z")
    assert first.notes is second.notes


def test_nothing_known_is_nothing():
    assert joined_known([None, None]) is None
    assert joined_known([None, ONE]) == ONE


class Row(Struct, frozen=True, kw_only=True):
    name: str
    seconds: float | None
    place: int = 7


class Placed(Struct):
    name: str
    place: int


def test_fields_are_those_of_the_first_source_that_has_the_name():
    assert by_name(Row, ONE) == Row(name="a", seconds=0.1)
    assert by_name(Row, None, Placed("b", 3), ONE) == Row(name="b", seconds=0.1, place=3)
    assert by_name(Row, Placed("b", 3), ONE, place=4, name="c") == Row(
        name="c", seconds=0.1, place=4
    )
    with pytest.raises(TypeError, match="seconds"):
        by_name(Row, Placed("b", 3))
