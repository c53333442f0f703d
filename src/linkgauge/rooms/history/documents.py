"""What the room's command writes."""

from __future__ import annotations

from linkgauge.report.formats import Document

_REPORT = "linkgauge.report"
HISTORY = Document(
    "a history",
    f"{_REPORT}.history_text:history_lines",
    {
        "json": f"{_REPORT}.history_text:history_document",
        "csv": f"{_REPORT}.history_text:history_csv",
    },
)
TRENDS = Document(
    "trends",
    f"{_REPORT}.trend_text:trend_lines",
    {"json": f"{_REPORT}.trend_text:trend_document", "csv": f"{_REPORT}.trend_text:trend_csv"},
)
