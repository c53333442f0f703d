"""Judges figures of other tools, from their output and from texts that describe the machine."""

from linkgauge.registry import Room

ROOM = Room(
    "judge_files",
    commands={"judge": f"{__name__}.command:judge_files"},
    checks=tuple(
        f"{__name__}.checks:check_{name}"
        for name in ("hosts", "reported", "settings", "peers", "links", "network")
    ),
    sections=(f"{__name__}.section:SECTION",),
    machines={"texts": f"{__name__}.descriptions:given"},
)
