"""What the room's command writes."""

from __future__ import annotations

from linkgauge.report.formats import JSON, Document

_ROOM = "linkgauge.rooms.history"
HISTORY = Document(
    "a history",
    f"{_ROOM}.trends:history_blocks",
    {"json": JSON, "csv": f"{_ROOM}.trends:history_csv"},
)
TRENDS = Document(
    "trends",
    f"{_ROOM}.trends:blocks",
    {"json": JSON, "csv": f"{_ROOM}.trends:trend_csv"},
)
WHOLE_TRENDS = TRENDS._replace(blocks=f"{_ROOM}.trends:all_blocks")
