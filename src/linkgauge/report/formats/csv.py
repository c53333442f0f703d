"""CSV: every raw sample of a run, a line each."""

from __future__ import annotations

from . import Format, late

FORMAT = Format(
    "csv",
    "Raw samples on stdout, all else on stderr.",
    {"run": late("report.files", "samples_csv")},
)
