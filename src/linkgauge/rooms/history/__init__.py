"""Lists the runs in the history, and shows trends of their figures."""

from __future__ import annotations

from linkgauge.report.formats import JSON, Document

HISTORY = Document(
    "a history",
    f"{__name__}.trends:history_blocks",
    {"json": JSON, "csv": f"{__name__}.trends:history_csv"},
)
TRENDS = Document(
    "trends",
    f"{__name__}.trends:blocks",
    {"json": JSON, "csv": f"{__name__}.trends:trend_csv"},
)
WHOLE_TRENDS = TRENDS._replace(blocks=f"{__name__}.trends:all_blocks")
