"""Is a node as healthy as it was: some minutes of measuring, and one answer."""

from linkgauge.registry import Room

ROOM = Room("check", commands={"check": f"{__name__}.command:check"})
