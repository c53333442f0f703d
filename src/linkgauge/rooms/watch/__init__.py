"""Measures every link briefly at intervals (probes), and reports links that get worse."""

from linkgauge.registry import Room

ROOM = Room("watch", commands={"watch": f"{__name__}.command:watch"})
