"""Offers kept runs in Python and as tables."""

from linkgauge.registry import Room

ROOM = Room("notebook", commands={"export": f"{__name__}.export:export"})
