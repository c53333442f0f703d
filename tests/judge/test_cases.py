"""Cells as the search for a cause sees them."""

import pytest
from msgspec.structs import replace

from doctor_kit import inventory, machine, measured
from linkgauge.judge.cases import cases_of
from linkgauge.judge.findings import Evidence
from linkgauge.model.transfer import Report


@pytest.mark.parametrize(
    ("report", "better", "times"),
    [
        (Report.FIRST, "higher", (2.0, 0.5)),
        (Report.LATENCY, "lower", (0.5, 2.0)),
        (Report.HIDDEN, "higher", ()),  # a share is no time, and scatters most near 0
    ],
)
def test_samples_are_times_or_are_turned_into_times(report, better, times):
    result = measured()
    cell = replace(result.cells[0], report=report, samples=(0.5, 2.0), operation="timed-copy")
    results = (replace(result, better=better, cells=(cell,)),)
    (case,) = cases_of(Evidence(machine(inventory()), None, results))
    assert case.times == times
