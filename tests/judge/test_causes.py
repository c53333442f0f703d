"""The fewest parts that explain all bad cells and contradict no good one."""

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.judge.cases import Case
from linkgauge.judge.causes import causes, fewest, remembered, suspects
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


def test_two_bad_links_are_two_causes_and_not_the_bridge_above_them():
    one, two, three, four = cells(a="link-0 bridge", b="link-1 bridge", c="link-2 bridge",
                                  d="link-3 bridge")  # fmt: skip
    assert named([one, two], [three, four]) == ({"link-0", "link-1"}, [])


def test_one_bridge_is_one_cause_where_all_below_it_is_bad():
    below = cells(a="link-0 bridge", b="link-1 bridge", c="link-2 bridge", d="link-3 bridge")
    assert named(below, []) == ({"bridge"}, [])


def test_a_part_may_have_been_well_before_its_first_bad_cell():
    *before, one, two = cells(a="sim:0", b="sim:0", c="sim:0", d="sim:0 x", e="sim:0 y")
    assert named([one, two], before) == ({"sim:0"}, [])


def test_a_good_cell_later_tells_that_what_was_lost_is_something_else():
    one, two, good = cells(a="sim:1 sim:2", b="sim:1 sim:3", c="sim:1")
    assert named([one, two], [good]) == ({"sim:1"}, [])
    assert named([one, two], [good], stays=True) == ({"sim:2", "sim:3"}, [])


def test_cells_that_end_in_different_phases_have_different_causes():
    ended = [case(0, frozenset({"sim:0", "switch"}), "fill"),
             case(1, frozenset({"sim:1", "switch"}), "verify"),
             case(2, frozenset({"sim:0", "switch"}), "fill")]  # fmt: skip
    assert named(ended, []) == ({"sim:0", "sim:1"}, [])
    assert named(ended, [], stays=True) == ({"switch"}, [])


def test_a_part_that_ends_cells_early_ends_none_late():
    early = [case(n, frozenset({"sim:0", "sim:1"}), "allocate") for n in (0, 1)]
    late = case(2, frozenset({"sim:0", "sim:2"}), "verify")
    blamed, _ = named([*early, late], [])
    assert "sim:1" in blamed


def test_parts_that_no_cell_tells_apart_are_named_together():
    one, two = cells(a="sim:0 sim:0-switch", b="sim:0 sim:0-switch")
    (cause,), _ = causes([one, two], [])
    assert (cause.blame.part, cause.blame.others) == ("sim:0", ("sim:0-switch",))
    assert cause.blame.doubt == " (or sim:0-switch: the measurements cannot tell which)"


def test_what_was_seen_in_trouble_is_named_before_its_device():
    bad = cells(a="sim:0 sim:0-switch")
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


@given(st.dictionaries(st.integers(0, 7), st.integers(-5, 5)))
def test_nothing_that_costs_more_than_it_explains_is_chosen(worth):
    def loss(chosen):
        return 1.0 * len(chosen) - sum(worth[one] for one in chosen)

    assert set(fewest(list(worth), remembered(loss), most=9)) == {
        one for one, value in worth.items() if value > 1
    }
