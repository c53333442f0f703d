"""The runs that are remembered: listed, and how figures went over them."""

from linkgauge.registry import Room

ROOM = Room("history", commands={"history": f"{__name__}.command:history"})
