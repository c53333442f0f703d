"""An interval claims what fresh processes have shown, and no more."""

import pytest

from linkgauge.engine.coverage import proven_coverage
from linkgauge.model.notation import parse_transfers
from linkgauge.model.transfer import Report


@pytest.mark.parametrize(
    "text",
    ["cuda:0 -> cuda:0 by ce", "cuda:0 -> cuda:1 by ce", "cuda:0 -> cuda:1 by sm"],
)
def test_what_was_shown_to_hold_says_95_percent(text):
    assert proven_coverage(parse_transfers(text), Report.FIRST, simulated=False) == 0.95


@pytest.mark.parametrize(
    ("text", "report"),
    [
        ("host:0 -> host:0 by cpu", Report.FIRST),
        ("host:0 -> opencl:0 by ce", Report.FIRST),
        ("cuda:0 -> host:0 by sm", Report.FIRST),
        ("host:0 -> cuda:0 by ce", Report.FIRST),
        ("host:0 -> null by cuda:0.sm", Report.LATENCY),
        ("cuda:0 -> cuda:1 by ce & host:0 -> host:0 by cpu", Report.TOTAL),
    ],
)
def test_what_was_not_says_less(text, report):
    transfers = parse_transfers(text)
    assert proven_coverage(transfers, report, simulated=False) < 0.95
    assert proven_coverage(transfers, report, simulated=True) == 0.95
