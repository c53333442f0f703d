"""The cells of a run as checks of figures see them."""

from msgspec.structs import replace

from doctor_kit import inventory, machine, measured, reading
from linkgauge.judge.blame.cases import cases_of
from linkgauge.judge.findings import Evidence


def test_what_cells_use_is_found_once_and_each_verdict_is_the_present_one():
    of, before = machine(inventory()), measured(reading(), reading("cuda:1"))
    after = replace(before, cells=tuple(replace(c, verdict="low") for c in before.cells))
    first, second = (cases_of(Evidence(of, results=(one,))) for one in (before, after))
    assert [case.cell.verdict for case in (*first, *second)] == ["ok", "ok", "low", "low"]
    assert all(one.touched is other.touched for one, other in zip(first, second, strict=True))


def test_other_evidence_on_the_same_machine_has_its_own_cells():
    of, one, two = machine(inventory()), measured(reading()), measured(reading(), reading("cuda:1"))
    counts = [
        len(cases_of(Evidence(of, results=some))) for some in ((two,), (), (one,), (one, two))
    ]
    assert counts == [2, 0, 1, 3]
