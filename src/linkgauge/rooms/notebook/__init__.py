"""Writes kept runs as tables."""

from linkgauge.registry import Room

ROOM = Room("notebook", commands={"export": f"{__name__}.export:export"})
