"""What the room's commands write."""

from __future__ import annotations

from linkgauge.report.formats import Document

_REPORT = "linkgauge.report"
COMPARED = Document(
    "a run comparison",
    f"{_REPORT}.run_comparison_text:run_comparison_lines",
    {
        "json": f"{_REPORT}.run_comparison_text:run_comparison_document",
        "csv": f"{_REPORT}.run_comparison_text:run_comparison_csv",
        "markdown": f"{_REPORT}.run_comparison_markdown:run_comparison_markdown",
    },
)
EVERY_CELL = COMPARED._replace(blocks=f"{_REPORT}.run_comparison_text:every_cell_lines")
GATE = Document(
    "a gate",
    f"{_REPORT}.gate_text:gate_lines",
    {
        "json": f"{_REPORT}.gate_text:gate_document",
        "csv": f"{_REPORT}.gate_text:gate_csv",
        "markdown": f"{_REPORT}.gate_ci:gate_markdown",
        "junit": f"{_REPORT}.gate_ci:gate_junit",
    },
)
