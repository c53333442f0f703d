"""CSV: every raw sample of a run, one per line."""

from __future__ import annotations

from . import Format, late

FORMAT = Format(
    "csv",
    "Write the raw samples to stdout, and all else to stderr.",
    {
        "run": late("report.files", "samples_csv"),
        "scaling": late("report.scale_text", "scale_csv"),
        "comparisons": late("report.comparison_text", "comparison_csv"),
    },
)
