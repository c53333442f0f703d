"""Markdown: a table for an issue or a wiki."""

from __future__ import annotations

from . import Format, late

FORMAT = Format(
    "markdown",
    "A table in Markdown.",
    {
        "summary": late("report.markdown_text", "summary_markdown"),
        "run comparison": late("report.run_comparison_markdown", "run_comparison_markdown"),
        "gate": late("report.gate_ci", "gate_markdown"),
    },
)
