"""What is measured is held against what its user asked for."""

import pytest

from linkgauge.judge.thresholds import hold, objection
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, Part, Result
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report

BOTH = parse_transfers("fake:0 -> host:0/staging by sm & host:0/staging -> null by cpu")


def measured(device_rate, host_rate):
    rates = (device_rate, host_rate)
    return CellResult(
        "r", "c", BOTH, Report.SUM, "pass", bytes=100, loops=2, samples=(sum(rates),),
        parts=tuple(Part(n, 100, (rate,), summarize([rate])) for n, rate in enumerate(rates)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("least_device", "least_host", "who"),
    [(0, 0, None), (100, 10, None), (101, 0, "device"), (0, 11, "host"), (101, 11, "device")],
)
def test_a_side_that_is_too_slow_is_objected_to(least_device, least_host, who):
    said = objection(measured(100.0, 10.0), least_device, least_host)
    assert (said and said.split()[0]) == who


def test_what_has_no_figures_is_not_judged():
    unmeasured = CellResult("r", "c", BOTH[:1], Report.FIRST, "skip", "why")
    assert objection(unmeasured, 1, 1) is None


def test_a_passed_cell_with_an_objection_fails_for_it():
    skipped = CellResult("r", "d", BOTH[:1], Report.FIRST, "skip", "why", kind="unsupported")
    result = Result(benchmark="b", title="t", backend="x", size=100, unit="B/s", better="higher",
                    status="pass", cells=(measured(100.0, 10.0), skipped))  # fmt: skip
    held = hold(result, lambda cell: "too slow")
    assert (held.status, hold(result, None)) == ("fail", result)
    assert [(cell.status, cell.reason, cell.kind) for cell in held.cells] == [
        ("fail", "too slow", "limit"),
        ("skip", "why", "unsupported"),
    ]
