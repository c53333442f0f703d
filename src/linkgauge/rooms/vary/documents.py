"""What the room's command writes and keeps."""

from __future__ import annotations

from linkgauge.report.formats import JSON, Document

_SECTIONS = "linkgauge.rooms.vary.sections"
VARIATION = Document(
    "a variation",
    f"{_SECTIONS}:blocks",
    {"json": JSON, "csv": f"{_SECTIONS}:variation_csv"},
    "Settings compared",
    "linkgauge.model.variation:Variation",
)
