"""Beside nvbandwidth: both tools have the same figures, and each bar holds what it should."""

import json

import pytest

import nvbandwidth_figures as figures
import nvbandwidth_judge as judge
from command_kit import called
from nvbandwidth_figures import DEVICE_TESTS, HOST_TESTS, TESTS, Key
from recorded_kit import HEALTHY, recorded_run

BIDIRECTIONAL = "device_to_device_bidirectional_memcpy_read_sm"


@pytest.fixture(scope="module")
def theirs():
    """Figures of what nvbandwidth prints of two devices, as `linkgauge as` prints it."""
    words = ("nvbandwidth", "-j", "-b", "64", "-i", "3", "-t", *TESTS)
    printed = called("as", "--machine", "riscv-2gpu", *words).stdout
    return figures.read_nvbandwidth(json.loads(printed)).figures


def test_device_bars():
    def verdicts(test, *ratios):
        return list(map(judge.device_bar(test).judge, ratios))

    assert verdicts("device_local_copy", 0.9899, 0.99, 2) == ["MISSED", "ok", "ok"]
    assert verdicts("all_to_one_read_sm", 0.9979, 0.998) == ["MISSED", "ok"]
    assert verdicts("host_device_latency_sm", 0.969, 1.03, 1.04) == ["MISSED", "ok", "MISSED"]


def test_devices_compare_the_figures_both_have(theirs):
    left, right = dict(theirs), dict(theirs)
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


def test_as_is_held_to_one_percent_or_to_their_own_differences():
    steady, host = Key("device_local_copy", "", "0", "1"), Key(HOST_TESTS[0], "", "0", "0")
    others = [{steady: 100.0, host: value} for value in (100.0, 104.0, 98.0)]

    def verdicts(mine, host_value):
        rows = judge.compare_as([{steady: mine, host: host_value}], others)
        return [row.verdict for row in rows if row.key in (steady, host)]

    assert verdicts(100.99, 94.01) == ["ok", "ok"]
    assert verdicts(98.99, 106.01) == ["MISSED", "MISSED"]
    assert {row.verdict for row in judge.compare_as([], others)} == {"not measured"}


def test_both_tools_name_the_same_figures_in_the_same_unit(theirs):
    """Of two other devices, which are faster or slower by a small factor."""
    ours = figures.read_linkgauge(recorded_run(HEALTHY[0])).figures
    assert ours.keys() == theirs.keys()
    assert [key for key in ours if not 0.1 < ours[key] / theirs[key] < 10] == []


def test_what_has_no_figure_is_told():
    cases = [
        {"name": "all_to_one_read_ce", "status": "Waived"},
        {"name": BIDIRECTIONAL, "status": "Passed", "bandwidth_matrix": [["1"]]},
        {"name": "device_local_copy", "status": "Passed", "bandwidth_matrix": [["fast"]]},
        {"name": "all_to_one_write_ce", "status": "Passed", "bandwidth_matrix": [["0.00"]]},
        {"name": "some_new_test", "status": "Error"},
    ]
    read = figures.read_nvbandwidth({"nvbandwidth": {"testcases": cases, "error": "lost"}})
    assert not read.figures
    told = [problem.split(":")[0].split()[0] for problem in read.problems]
    assert told == ["lost", *(cases[place]["name"] for place in (1, 2, 3, 0))]
