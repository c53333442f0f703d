"""A line for each run of the history."""

import pytest
from msgspec.structs import replace

from linkgauge.model.history import PastRun
from linkgauge.report.history_text import history_lines
from linkgauge.report.wrapping import plain_lines

RUN = PastRun(
    number=1, id="r", label="nightly", host="box", accelerators="NVIDIA H200", profile="quick",
    started="2026-01-20T12:00:00Z", finished="2026-01-20T12:01:00Z", simulated=False,
    profiled=False, status="pass", cells=2, passed=2, low=0, path="/far/away", setup="", state=1,
    machine=1,
)  # fmt: skip


def line(**facts):
    return plain_lines(history_lines([replace(RUN, **facts)]))[1]


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({}, "2 of 2 cells passed"),
        ({"passed": 1, "low": 1, "status": "fail"}, "1 of 2 cells passed, 1 low, fail"),
        ({"cells": 0, "passed": 0, "status": "skip"}, "nothing measured"),
        ({"cells": 0, "passed": 0, "finished": None}, "nothing measured, interrupted"),
        ({"passed": 0, "status": "skip"}, "nothing measured of 2 cells"),
        ({"passed": 0, "status": "error"}, "0 of 2 cells passed, error"),
    ],
)
def test_how_a_run_went(facts, says):
    assert line(**facts).split("quick")[1].strip() == f"{says}  /far/away"


def test_a_folder_below_the_current_one_is_relative_to_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert line(path=str(tmp_path / "results/a/b/c")).endswith("  results/a/b/c")
    assert line(path=str(tmp_path.parent)).endswith(f"  {tmp_path.parent}")
    assert line(path=None).endswith("passed")
