"""What the room's commands write."""

from __future__ import annotations

from linkgauge.report.formats import Document

_ROOM = "linkgauge.rooms.gate"
_SECTIONS, _PROGRAMS = f"{_ROOM}.sections", f"{_ROOM}.words"
COMPARED = Document(
    "a comparison of runs",
    f"{_SECTIONS}:few_cells",
    {
        "json": f"{_PROGRAMS}:comparison_json",
        "csv": f"{_PROGRAMS}:comparison_csv",
        "markdown": f"{_SECTIONS}:every_cell",
    },
)
EVERY_CELL = COMPARED._replace(blocks=f"{_SECTIONS}:every_cell")
GATE = Document(
    "the gate's judgement",
    f"{_SECTIONS}:gate",
    {
        "json": f"{_PROGRAMS}:gate_json",
        "csv": f"{_PROGRAMS}:gate_csv",
        "markdown": f"{_SECTIONS}:gate",
        "junit": f"{_PROGRAMS}:gate_junit",
    },
)
BASELINE = Document("a baseline", f"{_SECTIONS}:baseline")
