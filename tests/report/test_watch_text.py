"""A watch's events as lines for people and for programs; what a machine names is escaped."""

import json

import pytest

from linkgauge.model.history import CellOf
from linkgauge.model.watch import (
    Begun,
    Degraded,
    Ended,
    Idle,
    LeftAlone,
    Probed,
    Problem,
    Recovered,
)
from linkgauge.report.watch_text import event_json, event_line
from report.test_output import text_console

TIME = "2026-11-24T17:20:19.123Z"
CELL = CellOf("host_to_device_memcpy_ce", "cuda", 64 << 20, "0", "3", "host:0 -> cuda:3 by ce")
SLOW = {
    "time": TIME, "cell": CELL, "why": "history", "unit": "B/s", "simulated": False,
    "figure": 26.1e9, "usual": 54.9e9, "earlier": 60, "expected": 56.9e9,
}  # fmt: skip
PROBE = Probed(
    time=TIME, number=3, cells=12, seconds=0.5, busy=1.5, elapsed=30.0, duty=0.05, degraded=1,
    left_alone={"cuda:1": "in use (process 7)"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            Begun(time=TIME, machine="node17", simulated=False, cells=72, every=3600, budget=0.001),
            ("watching 72 cells of node17: a probe every 1 h, devices busy for at most 0.1% of the "
             "time"),
        ),
        (
            Degraded(**SLOW),
            ("DEGRADED  host_to_device_memcpy_ce (0, 3) 64 MiB  26.10 GB/s, 48% of its usual "
             "54.90 GB/s (60 earlier), 46% of the expected 56.90 GB/s"),
        ),
        (
            Recovered(**{**SLOW, "figure": 54.9e9, "simulated": True}, seconds=5400),
            ("recovered  host_to_device_memcpy_ce (0, 3) 64 MiB  54.90 GB/s, 100% of its usual "
             "54.90 GB/s (60 earlier), 96% of the expected 56.90 GB/s, after 1 h 30 min  "
             "SIMULATED"),
        ),
        (
            Degraded(time=TIME, cell=CELL, why="fail", unit="B/s", simulated=False,
                     reason="wrong\nat 7"),
            "DEGRADED  host_to_device_memcpy_ce (0, 3) 64 MiB  fail: wrong�at 7",
        ),
        (LeftAlone(time=TIME, device="cuda:1", why="in use"), "left alone  cuda:1: in use"),
        (Idle(time=TIME, device="cuda:1"), "idle again  cuda:1"),
        (Problem(time=TIME, reason="no history"), "problem  no history"),
        (
            Ended(time=TIME, probes=60, cells=3304, busy=7.03, elapsed=600, duty=0.0117),
            ("ended: 60 probes, 3304 cells measured, devices busy for 7.03 s of 10 min (1.2%); "
             "nothing is degraded"),
        ),
        (
            Ended(time=TIME, probes=1, cells=1, busy=0.01, elapsed=60, duty=0.00002,
                  degraded=(CELL,)),
            ("ended: 1 probe, 1 cell measured, devices busy for 10 ms of 1 min (0.002%); degraded: "
             "host_to_device_memcpy_ce (0, 3)"),
        ),
    ],
)  # fmt: skip
def test_lines_for_people(event, line):
    console = text_console(width=1000)
    console.print(event_line(event))
    assert console.file.getvalue() == f"2026-11-24 17:20:19Z  {line}\n"


def test_probes_are_for_programs_alone():
    assert event_line(PROBE) is None
    found = json.loads(event_json(PROBE))
    assert (found["event"], found["cells"], found["left_alone"]) == (
        "probe", 12, {"cuda:1": "in use (process 7)"},
    )  # fmt: skip


def test_cells_are_objects():
    found = json.loads(event_json(Degraded(**SLOW)))
    assert found["event"] == "degraded"
    assert found["cell"]["benchmark"] == "host_to_device_memcpy_ce"
    assert (found["cell"]["row"], found["cell"]["column"]) == ("0", "3")
    ended = Ended(time=TIME, probes=1, cells=1, busy=0, elapsed=1, duty=0, degraded=(CELL,))
    assert json.loads(event_json(ended))["degraded"][0]["column"] == "3"
