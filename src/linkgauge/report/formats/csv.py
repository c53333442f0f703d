"""CSV: every raw sample of a run, one per line; of an export, its cells or these."""

from __future__ import annotations

from . import Format, late

FORMAT = Format(
    "csv",
    "Write CSV to stdout, and all else to stderr.",
    {
        "run": late("report.files", "samples_csv"),
        "scaling": late("report.scale_text", "scale_csv"),
        "summary": late("report.summary_text", "summary_csv"),
        "samples": late("report.summary_text", "samples_csv"),
        "run comparison": late("report.run_comparison_text", "run_comparison_csv"),
        "variation": late("report.variation_text", "variation_csv"),
        "gate": late("report.gate_text", "gate_csv"),
        "comparisons": late("report.comparison_text", "comparison_csv"),
        "history": late("report.history_text", "history_csv"),
        "trends": late("report.trend_text", "trend_csv"),
    },
)
