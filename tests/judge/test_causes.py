"""The fewest parts that explain all bad cells and contradict no good one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.judge.cases import Case
from linkgauge.judge.causes import causes, suspects
from linkgauge.model.result import CellResult
from linkgauge.model.transfer import Report


def case(number, parts, phase=None):
    cell = CellResult("0", "0", (), Report.FIRST, "error", phase=phase)
    return Case(number, None, cell, parts, parts, None)


def cells(**touched):
    """Cells in their order, each by what it touches: `a="sim:0 bridge"`."""
    return [case(number, frozenset(parts.split())) for number, parts in enumerate(touched.values())]


def named(bad, good, **more):
    found, rest = causes(bad, good, **more)
    return {cause.blame.part for cause in found}, rest


LINKS = {"a": "link-0 bridge", "b": "link-1 bridge", "c": "link-2 bridge", "d": "link-3 bridge"}
BEFORE = {"a": "sim:0", "b": "sim:0", "c": "sim:0", "d": "sim:0 x", "e": "sim:0 y"}
LATER = {"a": "sim:1 sim:2", "b": "sim:1 sim:3", "c": "sim:1"}


@pytest.mark.parametrize(
    ("touched", "bad", "stays", "blamed"),
    [
        (LINKS, "ab", False, {"link-0", "link-1"}),
        (LINKS, "abcd", False, {"bridge"}),
        # A part may have been well before its first bad cell; what was lost stays lost.
        (BEFORE, "de", False, {"sim:0"}),
        (LATER, "ab", False, {"sim:1"}),
        (LATER, "ab", True, {"sim:2", "sim:3"}),
    ],
)
def test_the_fewest_parts_that_explain_all(touched, bad, stays, blamed):
    every = dict(zip(touched, cells(**touched), strict=True))
    good = [case for name, case in every.items() if name not in bad]
    assert named([every[name] for name in bad], good, stays=stays) == (blamed, [])


def test_cells_that_end_in_different_phases_have_different_causes():
    ended = [case(0, frozenset({"sim:0", "switch"}), "fill"),
             case(1, frozenset({"sim:1", "switch"}), "verify"),
             case(2, frozenset({"sim:0", "switch"}), "fill")]  # fmt: skip
    assert named(ended, []) == ({"sim:0", "sim:1"}, [])
    assert named(ended, [], stays=True) == ({"switch"}, [])


def test_parts_that_no_cell_tells_apart_are_named_together_and_one_in_trouble_first():
    bad = cells(a="sim:0 sim:0-switch", b="sim:0 sim:0-switch")
    (cause,), _ = causes(bad, [])
    assert (cause.blame.part, cause.blame.others) == ("sim:0", ("sim:0-switch",))
    assert [blame.part for blame in suspects(bad, bad, {"sim:0-switch"})] == ["sim:0-switch"]


@given(st.lists(st.tuples(st.frozensets(st.sampled_from("abcdef"), min_size=1), st.booleans())))
def test_each_bad_cell_touches_a_cause_or_is_left_over(drawn):
    all_cells = [case(n, parts) for n, (parts, _) in enumerate(drawn)]
    bad = [case for case, (_, is_bad) in zip(all_cells, drawn, strict=True) if is_bad]
    good = [case for case in all_cells if case not in bad]
    found, rest = causes(bad, good)
    covered = {case.number for cause in found for case in cause.cases}
    assert covered | {case.number for case in rest} == {case.number for case in bad}
    assert covered.isdisjoint(case.number for case in rest)
