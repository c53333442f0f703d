"""JUnit XML: what CI systems show as test results."""

from __future__ import annotations

from . import Format, late

FORMAT = Format(
    "junit",
    "JUnit XML: a test case for each cell.",
    {
        "summary": late("report.junit_text", "summary_junit"),
        "gate": late("report.gate_ci", "gate_junit"),
    },
)
