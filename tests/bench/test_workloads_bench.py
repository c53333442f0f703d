"""bench/workloads.py: which bars there are, and when one is held."""

import pytest

from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult
from linkgauge.model.transfer import Report
from linkgauge.model.workload import Demands, Rates, WorkDone, Workload
from workloads import Alone, Bar, Measured, bars, report

ALONE = Alone({"bf16": 800e12}, 4e12, 55e9)


def measured(kind, seconds, demands, **more):
    asked = Workload(kind, **{name: more.pop(name) for name in ("batch",) if name in more})
    done = WorkDone(seconds, 1, demands, Rates(), **more)
    by = parse_transfers("null -> null by torch:cuda:0.sm")
    place = kind, str(asked.batch), by, Report.RATE, "pass"
    return Measured(CellResult(*place, operation="workload", workload=asked), asked, done)


def test_each_bar_holds_a_workload_against_what_the_gpu_reaches_alone():
    found = [
        measured("prefill", 1.0, Demands(operations=300e12), batch=1),
        measured("prefill", 1.0, Demands(operations=400e12), batch=8),
        measured("decode", 1.0, Demands(memory_bytes=2e12)),
        measured("streamed", 1.0, Demands(to_device=54e9)),
        measured("training", 1.0, Demands(), split_error=0.04),
    ]
    prefill, decode, streamed, split = bars(found, ALONE)
    assert (prefill.reached, prefill.held) == (pytest.approx(0.5), True)  # the best batch
    assert (decode.reached, decode.held) == (pytest.approx(0.5), False)
    assert streamed.held
    assert (split.reached, split.held) == (0.04, False)


def test_the_table_says_what_was_missed(capsys):
    report([Bar("decode bf16", 0.5, 0.6, said="1 ms"), Bar("split", 0.01, most=0.03)], ALONE)
    lines = capsys.readouterr().out.splitlines()
    assert "decode bf16    50.0%  >= 60%  MISSED 1 ms" in lines
    assert any(line.startswith("split") and "held" in line for line in lines)
