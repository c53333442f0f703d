"""Measures a collective over more and more devices, and finds where it stops scaling."""

from __future__ import annotations

from linkgauge.report.formats import JSON, Document

SCALING = Document(
    "a scaling",
    f"{__name__}.sections:blocks",
    {"json": JSON, "csv": f"{__name__}.sections:scale_csv"},
    "Scaling",
    "linkgauge.model.documents.scaling:Scaling",
)
