"""Parquet: a table that pandas, Polars, DuckDB and Spark read."""

from __future__ import annotations

from . import Format, late

FORMAT = Format(
    "parquet",
    "A Parquet file, which needs -o.",
    {
        "summary": late("report.tables", "summary_parquet"),
        "samples": late("report.tables", "samples_parquet"),
    },
)
