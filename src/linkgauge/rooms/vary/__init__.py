"""Measures the same benchmarks under several settings, in rounds, and compares them."""

from __future__ import annotations

from linkgauge.report.formats import JSON, Document

VARIATION = Document(
    "a variation",
    f"{__name__}.sections:blocks",
    {"json": JSON, "csv": f"{__name__}.sections:variation_csv"},
    "Settings compared",
    "linkgauge.model.documents.variation:Variation",
)
