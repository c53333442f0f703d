"""Both tools' figures come under the same names, in the same unit."""

import pytest

import nvbandwidth_figures as figures
from nvbandwidth_figures import Key
from nvbandwidth_kit import BIDIRECTIONAL, both


def test_both_tools_name_the_same_figures_in_the_same_unit():
    left, right = both()
    assert left.keys() == right.keys()
    assert left == pytest.approx(right)
    assert right[Key("host_to_device_memcpy_ce", "", "0", "1")] == pytest.approx(50e9)
    assert right[Key("device_to_device_latency_sm", "", "1", "0")] == pytest.approx(700e-9)


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
