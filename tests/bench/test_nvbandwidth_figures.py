"""Both tools' figures come under the same names, in the same unit."""

import json

import pytest
from msgspec.structs import replace

import nvbandwidth_figures as figures
from linkgauge.model.notation import parse_transfers
from nvbandwidth_figures import DEVICE_TESTS, HOST_TESTS, TESTS, Key
from nvbandwidth_kit import BIDIRECTIONAL, both, cell, result, run_of


def test_all_35_tests_are_of_one_kind_or_the_other():
    assert len(TESTS) == 35
    assert sorted(DEVICE_TESTS + HOST_TESTS) == sorted(TESTS)
    assert "host_device_latency_sm" in DEVICE_TESTS
    assert len(HOST_TESTS) == 16


def test_both_tools_name_the_same_figures_in_the_same_unit():
    left, right = both()
    assert left.keys() == right.keys()
    assert left == pytest.approx(right)
    assert right[Key("host_to_device_memcpy_ce", "", "0", "1")] == pytest.approx(50e9)
    assert right[Key("device_to_device_latency_sm", "", "1", "0")] == pytest.approx(700e-9)


def test_three_matrices_are_the_two_directions_and_the_total():
    rows = [["N/A", "1"], ["2", "N/A"], ["N/A", "3"], ["4", "N/A"], ["N/A", "5"], ["6", "N/A"]]
    case = {"name": BIDIRECTIONAL, "status": "Passed", "bandwidth_matrix": rows}
    read = figures.read_nvbandwidth({"nvbandwidth": {"testcases": [case]}}).figures
    assert {str(key): value / 1e9 for key, value in read.items()} == {
        "0,1 read1": 1, "1,0 read1": 2, "0,1 read2": 3, "1,0 read2": 4, "0,1": 5, "1,0": 6,
    }  # fmt: skip


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


def test_cells_that_did_not_pass_have_no_figure():
    test = "device_to_device_memcpy_read_ce"
    wrong = cell(test, "0", "1", status="fail", reason="wrong at byte 7")
    absent = cell(test, "1", "0", status="skip", reason="no path", summary=None)
    read = figures.read_linkgauge(run_of([result(test, [wrong, absent])]))
    assert not read.figures
    assert read.problems == (f"{test} 0,1: fail: wrong at byte 7",)


@pytest.mark.parametrize(
    ("count", "definition", "compared"),
    [(1, "sustained", True), (3, "span", True), (3, None, True), (3, "sustained", False),
     (3, "serial", False)],
)  # fmt: skip
def test_totals_of_another_definition_are_not_compared(count, definition, compared):
    test = "all_to_one_read_ce"
    transfers = parse_transfers("cuda:1 -> cuda:0 by cuda:0.ce") * count
    one = replace(cell(test, "0", "0"), transfers=transfers, definition=definition)
    assert bool(figures.read_linkgauge(run_of([result(test, [one])])).figures) == compared


def test_the_last_whole_document_counts():
    first, last = (json.dumps({"nvbandwidth": {"error": word}}) + "\n" for word in "ab")
    assert figures.last_document("") is None
    assert figures.last_document("{broken") is None
    cut = last.replace("}", "")
    for text in (f"warning {{x}}\n{last}", first + last, last + cut, last + '{"a": {"b": 2}}'):
        assert figures.last_document(text) == {"nvbandwidth": {"error": "b"}}


def test_keys_are_told_by_where_they_stand():
    document = {"a": 1, "b": {"c": [{"d": 2}, {"e": [3]}]}}
    assert figures.key_paths(document) == {"a", "b", "b.c", "b.c[].d", "b.c[].e"}
