"""Shows the history of runs: lists, and trends of figures."""

from linkgauge.registry import Room

ROOM = Room("history", commands={"history": f"{__name__}.command:history"})
