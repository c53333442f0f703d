"""What the room's command writes and keeps."""

from __future__ import annotations

from linkgauge.report.formats import JSON, Document

_SECTIONS = "linkgauge.rooms.scale.sections"
SCALING = Document(
    "a scaling",
    f"{_SECTIONS}:blocks",
    {"json": JSON, "csv": f"{_SECTIONS}:scale_csv"},
    "Scaling",
    "linkgauge.model.scaling:Scaling",
)
