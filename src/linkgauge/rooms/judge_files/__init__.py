"""Judges what other tools measured, by their output and by what texts tell of the machine."""

from linkgauge.registry import Room

ROOM = Room(
    "judge_files",
    commands={"judge": f"{__name__}.command:judge_files"},
    checks=(f"{__name__}.checks:check_settings",),
    sections=(f"{__name__}.section:SECTION",),
    machines={"texts": f"{__name__}.descriptions:given"},
)
