"""`linkgauge as nvbandwidth` where little was measured, and of numbers written oddly."""

import pytest

from compat_kit import document, interrupted_after, speak
from linkgauge.compat import nvbandwidth as tool_module
from linkgauge.compat.nvbandwidth_cases import CASES

QUICK = ("-b", "1", "-i", "2")


@pytest.fixture
def nvbandwidth(capfd):
    def run(*arguments):
        return speak(capfd, "nvbandwidth", *map(str, arguments))

    return run


def test_after_ctrl_c_what_was_measured_is_told(nvbandwidth, monkeypatch):
    monkeypatch.setattr(tool_module, "measure", interrupted_after(3))
    done = nvbandwidth("-j", *QUICK, "-t", "0", "1")
    assert done.code == 130
    (cut,) = document(done)["testcases"]
    assert (cut["name"], cut["status"]) == ("host_to_device_memcpy_ce", "Error")
    assert cut["error"] == "interrupted after 3 cells"
    assert [figure != "N/A" for figure in cut["bandwidth_matrix"][0]] == [True] * 3 + [False] * 5


def test_after_ctrl_c_before_the_first_cell_the_list_is_empty(nvbandwidth, monkeypatch):
    monkeypatch.setattr(tool_module, "measure", interrupted_after(0))
    assert document(nvbandwidth("-j", *QUICK, "-t", "0"))["testcases"] == []


def test_leading_zeros_change_no_number(nvbandwidth):
    (test,) = document(nvbandwidth("-j", *QUICK, "-t", "0000000000034"))["testcases"]
    assert test["name"] == CASES[34].name
    (test,) = document(nvbandwidth("-j", *QUICK, "-t", "000000000099"))["testcases"]
    assert test["status"] == "Not Found"
    assert nvbandwidth("-t", "0", "-b", f"{'0' * 31}1{'9' * 30}").code == 1
    assert nvbandwidth("-t", "0", "-b", "9" * 5000).code == 1
