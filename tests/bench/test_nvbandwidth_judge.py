"""Each bar holds what it should, ends included."""

import pytest

import nvbandwidth_judge as judge
from nvbandwidth_figures import DEVICE_TESTS, HOST_TESTS, Key
from nvbandwidth_kit import BIDIRECTIONAL, both, cell, ours, result, run_of
from nvbandwidth_plan import TUNED_BARS


def test_device_bars():
    def verdicts(test, *ratios):
        return list(map(judge.device_bar(test).judge, ratios))

    assert verdicts("device_local_copy", 0.9899, 0.99, 2) == ["MISSED", "ok", "ok"]
    assert verdicts("all_to_one_read_sm", 0.9979, 0.998) == ["MISSED", "ok"]
    assert verdicts("host_device_latency_sm", 0.969, 1.03, 1.04) == ["MISSED", "ok", "MISSED"]


def test_devices_compare_the_figures_both_have():
    left, right = both()
    del right[Key("device_local_copy", "", "0", "1")]
    left[Key("all_to_one_read_sm", "", "0", "1")] *= 0.9
    rows = {row.test: row for row in judge.compare_devices(left, right)}
    assert tuple(rows) == DEVICE_TESTS
    assert rows["device_local_copy"].verdict == "not measured"
    assert [str(key) for key in rows["device_local_copy"].alone] == ["0,1"]
    assert rows["all_to_one_read_sm"].verdict == "MISSED"
    assert min(rows["all_to_one_read_sm"].ratios) == pytest.approx(0.9)
    assert len(rows[BIDIRECTIONAL].ratios) == 6
    assert rows[BIDIRECTIONAL].verdict == "ok"


@pytest.mark.parametrize(
    ("mine", "other", "verdict", "clause"),
    [
        ([100, 99], [100, 100], "ok", "ratio"),
        ([95, 95], [100, 94, 100], "ok", "their spread"),
        ([93, 93], [100, 94, 100], "MISSED", ""),
        ([95], [100], "MISSED", ""),
        ([], [100], "not measured", ""),
    ],
)
def test_host_cells_hold_by_either_clause(mine, other, verdict, clause):
    key = Key(HOST_TESTS[0], "", "0", "0")
    rows = judge.compare_hosts([{key: v} for v in mine], [{key: v} for v in other])
    assert len(rows) == len(HOST_TESTS), "a test without figures has a row"
    row = next(row for row in rows if row.key == key)
    assert (row.verdict, row.clause) == (verdict, clause)


def test_tuned_bars():
    keys = {test: Key(test, "", "0", "1") for test in TUNED_BARS}
    mine = [dict.fromkeys(keys.values(), 1.0045)]
    rows = judge.compare_tuned(mine, [dict.fromkeys(keys.values(), 1.0)], TUNED_BARS)
    assert [row.verdict for row in rows] == ["MISSED", "ok", "MISSED"]


def test_spread():
    assert judge.spread([1.0, 1.1, 0.9]) == pytest.approx(0.2)
    assert judge.spread([1.0]) is None
    assert judge.spread([0.0, 0.0]) is None


def test_worst():
    ok, missed, absent = "ok", "MISSED", "not measured"
    found = [judge.worst(some) for some in ([], [ok], [ok, absent], [absent, missed, ok])]
    assert found == [absent, ok, absent, missed]


def test_suite_counts_what_is_inexact_unverified_or_failed():
    test = "device_to_device_memcpy_read_ce"
    cells = [
        cell(test, "0", "1"),
        cell(test, "1", "0", width=0.02),
        cell(test, "1", "2", verified=None),
        cell(test, "2", "1", status="error", summary=None, verified=None),
    ]
    chase = "host_device_latency_sm"
    run = run_of([result(test, cells), result(chase, [cell(chase, "0", "0")])])
    found = judge.examine_suite(1, 20.0, run)
    assert (found.cells, found.exact, found.not_verified, found.not_pass) == (5, 3, 2, 1)
    assert found.verdict == "MISSED"
    assert judge.examine_suite(1, 25.0, ours()).verdict == "ok"
    assert judge.examine_suite(1, 25.1, ours()).verdict == "MISSED"


def test_spreads_have_a_limit_or_are_held_to_theirs_cell_by_cell():
    steady, host = DEVICE_TESTS[0], HOST_TESTS[0]
    a, b = Key(host, "", "0", "0"), Key(host, "", "0", "1")
    mine = [{Key(steady, "", "0", "1"): v, a: v, b: v} for v in (100.0, 100.9)]
    other = [{a: 100.0, b: 100.0}, {a: 100.5, b: 102.0}]
    rows = {row.test: row for row in judge.compare_spreads(mine, other)}
    assert rows[steady].verdict == "ok"
    assert (rows[host].verdict, rows[host].wider, rows[host].cells) == ("MISSED", 1, 2)
    assert rows[host].theirs == pytest.approx(2 / 101)
    assert rows[DEVICE_TESTS[1]].verdict == "not measured"


def test_as_is_held_to_one_percent_or_to_their_own_differences():
    steady, host = Key("device_local_copy", "", "0", "1"), Key(HOST_TESTS[0], "", "0", "0")
    others = [{steady: 100.0, host: value} for value in (100.0, 104.0, 98.0)]

    def verdicts(mine, host_value):
        rows = judge.compare_as([{steady: mine, host: host_value}], others)
        return [row.verdict for row in rows if row.key in (steady, host)]

    assert verdicts(100.99, 94.01) == ["ok", "ok"]
    assert verdicts(98.99, 106.01) == ["MISSED", "MISSED"]
    assert {row.verdict for row in judge.compare_as([], others)} == {"not measured"}


def test_the_latency_of_host_memory_crosses_to_the_host():
    key = Key("host_device_latency_sm", "", "0", "0")
    others = [{key: value} for value in (1.0, 1.02)]
    row = next(row for row in judge.compare_as([{key: 1.025}], others) if row.key == key)
    assert (row.bar, row.verdict) == ("within their spread", "ok")


def test_single_runs_are_held_against_the_other_rounds():
    key = Key(HOST_TESTS[0], "", "0", "0")
    theirs = [{key: value} for value in (100.0, 100.1, 100.2, 104.0)]
    assert judge.misses(theirs, theirs) == [0, 0, 0, 1]
    assert judge.misses([{key: 104.0}] * 4, theirs) == [0, 0, 0, 1]
